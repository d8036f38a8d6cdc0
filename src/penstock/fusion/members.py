"""Sets of operators as bits of an integer: cheap to union, compare, hash and keep by the 10,000."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from penstock.model.observation import Floats

Members = int  # bit i is set when the operator of position i is in


def members_of(positions: Iterable[int]) -> Members:
    """The set of these positions.

    >>> members_of([0, 2])
    5
    """
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def positions_of(members: Members) -> Iterator[int]:
    """The positions in a set, ascending."""
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest


def indicator_matrix(sets: Sequence[Members], operators: int) -> Floats:
    """One row for each set, one column for each operator, 1.0 where it is in."""
    width = (operators + 7) // 8
    packed = np.frombuffer(b"".join(s.to_bytes(width, "little") for s in sets), dtype=np.uint8)
    bits = np.unpackbits(packed.reshape(len(sets), width), axis=1, bitorder="little")
    return bits[:, :operators].astype(np.float64)
