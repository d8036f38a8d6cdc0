"""The processor that closes Nexmark's auctions, with bids in any order."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from benchmarks.nexmark.winners import Closing

COLUMNS = ["offered", "seller", "category", "opens", "expires", "price", "placed", "bidder"]
OFFER = (True, 7, 10, 1_000_000, 3_000_500, 0, 0, 0)


class Scene:
    """One auction with a state in memory, whose timers fire as the watermark passes them."""

    def __init__(self) -> None:
        self.timers: set[int] = set()
        self.states: dict[str, Value | Listed] = {}
        self.watermark_ms = 0
        self._closing = Closing()
        self._closing.init(self)  # type: ignore[arg-type]

    def getValueState(self, name: str, _schema: str) -> "Value":
        self.states[name] = made = Value()
        return made

    def getListState(self, name: str, _schema: str) -> "Listed":
        self.states[name] = made = Listed()
        return made

    def registerTimer(self, at_ms: int) -> None:
        self.timers.add(at_ms)

    def batch(self, rows: Iterable[tuple[Any, ...]], watermark_ms: int) -> list[tuple[int, ...]]:
        """Prices and bidders that came out."""
        self.watermark_ms = watermark_ms
        values = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark_ms)
        frame = pd.DataFrame(rows, columns=COLUMNS)
        found = list(self._closing.handleInputRows((1,), iter([frame]), values)) if rows else []
        for at_ms in sorted(at_ms for at_ms in self.timers if at_ms <= watermark_ms):
            self.timers.remove(at_ms)
            info = SimpleNamespace(getExpiryTimeInMs=lambda at_ms=at_ms: at_ms)
            found += self._closing.handleExpiredTimer((1,), values, info)
        return [row for one in found for row in one[["price", "bidder"]].itertuples(index=False)]


class Value:
    """A value that may be missing."""

    def __init__(self) -> None:
        self._row: tuple[int, ...] | None = None

    def exists(self) -> bool:
        return self._row is not None

    def get(self) -> tuple[int, ...] | None:
        return self._row

    def update(self, row: tuple[int, ...]) -> None:
        self._row = row

    def clear(self) -> None:
        self._row = None


class Listed:
    """Values one after another."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []

    def exists(self) -> bool:
        return bool(self._rows)

    def get(self) -> list[tuple[int, ...]]:
        return self._rows

    def appendList(self, rows: list[tuple[int, ...]]) -> None:
        self._rows = self._rows + rows

    def clear(self) -> None:
        self._rows = []


def bid(price: int, placed: int, bidder: int) -> tuple[Any, ...]:
    return (False, 0, 0, 0, 0, price, placed, bidder)


def test_the_highest_bid_wins_and_of_equal_ones_the_earliest() -> None:
    scene = Scene()
    assert scene.batch([OFFER, bid(5, 1_500_000, 1), bid(9, 2_500_000, 2)], 1_000) == []
    assert scene.batch([bid(9, 2_000_000, 3), bid(8, 2_900_000, 4)], 3_000) == []
    assert scene.batch([], 3_001) == [(9, 3)]
    assert not any(state.exists() for state in scene.states.values())


def test_bids_count_while_the_auction_is_open() -> None:
    scene = Scene()
    bids = [bid(1, 3_000_500, 1), bid(90, 3_000_501, 2), bid(80, 999_999, 3)]
    scene.batch([OFFER, *bids], 1_000)
    assert scene.batch([], 5_000) == [(1, 1)]


def test_an_auction_without_a_bid_gives_nothing() -> None:
    scene = Scene()
    assert scene.batch([OFFER], 5_000) == []
    assert not any(state.exists() for state in scene.states.values())


def test_bids_that_come_before_their_auction_wait_for_it() -> None:
    scene = Scene()
    scene.batch([bid(5, 1_500_000, 1)], 0)
    scene.batch([bid(4, 1_600_000, 2)], 900)
    scene.batch([OFFER, bid(3, 1_700_000, 3)], 950)
    assert scene.batch([], 5_000) == [(5, 1)]


@pytest.mark.parametrize("watermark_ms", [1_501, 5_000])
def test_bids_whose_auction_would_be_late_are_forgotten(watermark_ms: int) -> None:
    scene = Scene()
    scene.batch([bid(5, 1_500_000, 1)], 0)
    assert scene.batch([], watermark_ms) == []
    assert not any(state.exists() for state in scene.states.values())
