"""Which integers stand for buckets, so that Spark's hash spreads them evenly over partitions."""

from functools import lru_cache

_EVEN = 64  # partitions that divide this number get the same number of buckets each


@lru_cache
def bucket_values(count: int) -> tuple[int, ...]:
    """As many integers, whose hashes take all remainders of 64 in turn.

    They depend on the count alone: a bucket's state is found under its value at every restart.

    >>> [spark_hash(value) % 4 for value in bucket_values(8)]
    [0, 1, 2, 3, 0, 1, 2, 3]
    """
    waiting: dict[int, list[int]] = {remainder: [] for remainder in range(_EVEN)}
    candidate = 0
    found: list[int] = []
    while len(found) < count:
        wanted = waiting[len(found) % _EVEN]
        if wanted:
            found.append(wanted.pop(0))
            continue
        waiting[spark_hash(candidate) % _EVEN].append(candidate)
        candidate += 1
    return tuple(found)


def spark_hash(value: int, seed: int = 42) -> int:
    """Murmur3 of a 32-bit integer as Spark's hash() gives it, not negative.

    >>> spark_hash(1) - 2**32
    -559580957
    """
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = (seed ^ k) & mask
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return h ^ h >> 16
