"""Winning bids (q9), what follows them by category (q4), and the last prices of a seller (q6).

SQL needs a rank over a join for them, and results that are taken back; a state processor for each
auction needs neither. It keeps the best bid so far until the watermark has passed the end of the
auction, and then it is final. Needs RocksDB, as every `transformWithState` does.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

LAST = 10  # prices of a seller
_OFFER = "seller LONG, category LONG, opens LONG, expires LONG"
_BID = "price LONG, placed LONG, bidder LONG"
_WON = f"at TIMESTAMP, auction LONG, {_OFFER}, {_BID}"
_SOLD = "seller LONG, auction LONG, average DOUBLE"
# Executors of a cluster have no benchmarks to import.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def winners(auction: DataFrame, bid: DataFrame) -> DataFrame:
    """Auctions that are over with their best bids, of which the earlier wins; both have watermarks.

    Times are whole microseconds but for `at`, which is the event time of the result: what follows
    would take for late what is as old as the auction's end.
    """
    micros = F.unix_micros
    offers = auction.select(
        "at", F.col("id").alias("auction"), F.lit(True).alias("offered"), "seller", "category",
        micros("at").alias("opens"), micros("expires").alias("expires"),
        *(F.lit(0).cast("long").alias(name) for name in ("price", "placed", "bidder")),
    )  # fmt: skip
    bids = bid.select(
        "at", "auction", F.lit(False).alias("offered"),
        *(F.lit(0).cast("long").alias(name) for name in ("seller", "category", "opens", "expires")),
        "price", micros("at").alias("placed"), "bidder",
    )  # fmt: skip
    both = offers.unionByName(bids).groupBy("auction")
    return both.transformWithStateInPandas(
        Closing(), _WON, "append", "EventTime", eventTimeColumnName="at"
    )


def last_prices(won: DataFrame) -> DataFrame:
    """The average of each seller's last ten winning prices, for each auction that is won."""
    by = won.groupBy("seller")
    return by.transformWithStateInPandas(LastPrices(), _SOLD, "append", "None")


class Closing(StatefulProcessor):
    """The best bid of an auction, kept until the watermark passes the auction's end."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._offer = handle.getValueState("offer", _OFFER)
        self._best = handle.getValueState("best", _BID)
        self._early = handle.getListState("early", _BID)  # bids that came before their auction

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        frame = pd.concat(list(rows))
        offered = frame[frame["offered"]]
        bids = list(_rows(frame[~frame["offered"]], _BID))
        if len(offered):
            (offer,) = _rows(offered, _OFFER)
            self._offer.update(offer)
            self._handle.registerTimer(_passed_ms(offer[-1]))
            bids += self._taken_early()
        elif self._offer.exists():
            offer = _plain(self._offer.get())
        else:
            # Without an auction that is on its way they are forgotten once it would be late.
            self._early.appendList(bids)
            self._handle.registerTimer(_passed_ms(max(placed for _, placed, _ in bids)))
            return
        self._keep_best(offer, bids)
        yield from ()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        passed_ms = expiredTimerInfo.getExpiryTimeInMs()
        if not self._offer.exists():
            left = [bid for bid in self._taken_early() if _passed_ms(bid[1]) > passed_ms]
            if left:
                self._early.appendList(left)
        elif _passed_ms((offer := _plain(self._offer.get()))[-1]) <= passed_ms:
            if self._best.exists():
                at = pd.Timestamp(timerValues.getCurrentWatermarkInMs(), unit="ms")
                yield _frame([(at, key[0], *offer, *_plain(self._best.get()))], _WON)
            self._offer.clear()
            self._best.clear()

    def _taken_early(self) -> list[tuple[int, ...]]:
        if not self._early.exists():
            return []
        found = list(map(_plain, self._early.get()))
        self._early.clear()
        return found

    def _keep_best(self, offer: tuple[int, ...], bids: list[tuple[int, ...]]) -> None:
        *_, opens, expires = offer
        valid = [bid for bid in bids if opens <= bid[1] <= expires]
        if valid:
            known = [_plain(self._best.get())] if self._best.exists() else []
            self._best.update(min(known + valid, key=_worth))


class LastPrices(StatefulProcessor):
    """The last winning prices of a seller."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._prices = handle.getValueState("prices", "prices ARRAY<BIGINT>")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        # A batch has all auctions that end between two watermarks, in any order.
        frame = pd.concat(list(rows)).sort_values(["expires", "auction"])
        (prices,) = (self._prices.get() if self._prices.exists() else None) or ([],)
        found = []
        for auction, price in zip(frame["auction"].tolist(), frame["price"].tolist(), strict=True):
            prices = [*prices, price][-LAST:]
            found.append((key[0], auction, sum(prices) / len(prices)))
        self._prices.update((prices,))
        yield _frame(found, _SOLD)


def _worth(bid: tuple[int, ...]) -> tuple[int, ...]:
    """What is least for the bid that wins."""
    price, placed, bidder = bid
    return -price, placed, bidder


def _passed_ms(at_us: int) -> int:
    """The first whole millisecond after a moment."""
    return at_us // 1000 + 1


def _names(columns: str) -> list[str]:
    return [column.split()[0] for column in columns.split(", ")]


def _rows(frame: pd.DataFrame, columns: str) -> Iterator[tuple[int, ...]]:
    return map(_plain, frame[_names(columns)].itertuples(index=False, name=None))


def _plain(row: Any) -> tuple[int, ...]:
    return tuple(map(int, row))


def _frame(rows: list[tuple[Any, ...]], columns: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=_names(columns))
