"""What streams and lanes are called."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice


@dataclass(frozen=True)
class Names:
    """Names by row; a lane beyond the given ones is new and gets the first name that is free."""

    streams: Sequence[str]
    lanes: Sequence[str]

    def of_new(self, new_lanes: int) -> list[str]:
        """Names for so many new lanes."""
        if new_lanes == 0:
            return []
        taken = set(self.lanes)
        free = (name for number in count(1) if (name := f"lane-{number}") not in taken)
        return list(islice(free, new_lanes))


def numbered(streams: int, lanes: int) -> Names:
    """Rows as names, for problems whose streams have none."""
    return Names(_Rows("stream", streams), _Rows("lane", lanes))


class _Rows(Sequence[str]):
    """Names made when asked for: a million of them would cost more than the decision."""

    def __init__(self, kind: str, length: int) -> None:
        self._kind, self._length = kind, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        if not 0 <= row < self._length:
            raise IndexError(row)
        return f"{self._kind}-{row + 1}"
