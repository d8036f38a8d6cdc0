"""Sets of operators as bits of an integer: cheap to union, compare, hash and keep by the 10,000."""

from collections.abc import Iterable, Iterator

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
