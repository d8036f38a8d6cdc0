"""What Nexmark's queries give over all events: plain Python, which knows nothing of Spark.

Each function takes the rows of the tables that its query reads and the moment up to which windows
are closed, and gives all rows of the result, in any order. Times are whole microseconds.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa

Row = Mapping[str, Any]
Rows = list[Row]
Result = Iterator[tuple[Any, ...]]

SECOND = 1_000_000
DELAY = 4 * SECOND
WINDOW = GAP = 10 * SECOND
SLIDE = 2 * SECOND
DAY = 86_400 * SECOND


def rows_of(table: pa.Table) -> Rows:
    """The rows of a table, times as whole numbers."""
    fields = [f.with_type(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    found: Rows = table.cast(pa.schema(fields)).to_pylist()
    return found


def closed(tables: Iterable[Rows]) -> int:
    """Where the watermark of a query that reads these tables is in the end, in whole ms."""
    last = min(max(row["at"] for row in rows) for rows in tables)
    return last // 1000 * 1000 - DELAY


def q0(bid: Rows, until: int) -> Result:
    names = ("auction", "bidder", "price", "channel", "url")
    for row in bid:
        yield (*(row[name] for name in names), row["at"], row["extra"])


def q1(bid: Rows, until: int) -> Result:
    for row in bid:
        yield row["auction"], row["bidder"], _in_euros(row), row["at"]


def q2(bid: Rows, until: int) -> Result:
    for row in bid:
        if row["auction"] % 123 == 0:
            yield row["auction"], row["price"]


def q3(person: Rows, auction: Rows, until: int) -> Result:
    near = {row["id"]: row for row in person if row["state"] in {"OR", "ID", "CA"}}
    for row in auction:
        if row["category"] == 10 and (seller := near.get(row["seller"])):
            yield seller["name"], seller["city"], seller["state"], row["id"]


def q4(auction: Rows, bid: Rows, until: int) -> Result:
    by_category = defaultdict(list)
    for offer, best in _won(auction, bid, until):
        by_category[offer["category"]].append(best["price"])
    for category, prices in by_category.items():
        yield category, len(prices), sum(prices) / len(prices)


def q5(bid: Rows, until: int) -> Result:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for row in bid:
        end = row["at"] // SLIDE * SLIDE + SLIDE
        for later in range(WINDOW // SLIDE):
            counts[end + later * SLIDE][row["auction"]] += 1
    for end, of in counts.items():
        most = max(of.values())
        if end <= until:
            yield from ((end, auction, most) for auction in of if of[auction] == most)


def q6(auction: Rows, bid: Rows, until: int) -> Result:
    by_seller = defaultdict(list)
    for offer, best in _won(auction, bid, until):
        by_seller[offer["seller"]].append((offer["expires"], offer["id"], best["price"]))
    for seller, sold in by_seller.items():
        sold.sort()
        for number, (_, identity, _) in enumerate(sold):
            last = [price for *_, price in sold[max(0, number - 9) : number + 1]]
            yield seller, identity, sum(last) / len(last)


def q7(bid: Rows, until: int) -> Result:
    for end, rows in _windows(bid, until).items():
        yield end, *max((row["price"], row["auction"], row["bidder"]) for row in rows)


def q8(person: Rows, auction: Rows, until: int) -> Result:
    offered = {
        end: Counter(row["seller"] for row in rows)
        for end, rows in _windows(auction, until).items()
    }
    for end, rows in _windows(person, until).items():
        for row in rows:
            if count := offered.get(end, {}).get(row["id"]):
                yield row["id"], row["name"], count


def q9(auction: Rows, bid: Rows, until: int) -> Result:
    for offer, best in _won(auction, bid, until):
        names = ("id", "seller", "category")
        yield (
            *(offer[name] for name in names), offer["expires"],
            best["price"], best["bidder"], best["at"],
        )  # fmt: skip


def q10(bid: Rows, until: int) -> Result:
    for row, same in zip(bid, q0(bid, until), strict=True):
        at = _utc(row)
        yield *same, f"{at:%Y-%m-%d}", f"{at:%H:%M}"


def q11(bid: Rows, until: int) -> Result:
    by_bidder = defaultdict(list)
    for row in bid:
        by_bidder[row["bidder"]].append(row["at"])
    for bidder, times in by_bidder.items():
        times.sort()
        ends = [at for at, following in pairwise(times) if following > at + GAP] + times[-1:]
        first = 0
        for last in ends:
            behind = bisect_right(times, last)
            if last + GAP <= until:
                yield bidder, behind - first, times[first], last + GAP
            first = behind


def q13(bid: Rows, until: int) -> Result:
    for row in bid:
        yield row["auction"], row["bidder"], row["price"], f"side-{row['auction'] % 1000}"


def q14(bid: Rows, until: int) -> Result:
    for row in bid:
        price, hour = _in_euros(row), _utc(row).hour
        if 1_000_000 < price < 50_000_000:
            time = "day" if 8 <= hour <= 18 else "other" if hour in {7, 19} else "night"
            c_count = row["extra"].count("c")
            yield row["auction"], row["bidder"], price, row["extra"], time, c_count


def q15(bid: Rows, until: int) -> Result:
    for day, rows in _by(bid, _day).items():
        yield day, *_ranges(rows), *_apart(rows, "bidder"), *_apart(rows, "auction")


def q16(bid: Rows, until: int) -> Result:
    for (channel, day), rows in _by(bid, lambda row: (row["channel"], _day(row))).items():
        distinct = (*_apart(rows, "bidder"), *_apart(rows, "auction"))
        yield channel, day, *_ranges(rows), *distinct


def q17(bid: Rows, until: int) -> Result:
    for (auction, day), rows in _by(bid, lambda row: (row["auction"], _day(row))).items():
        prices = [row["price"] for row in rows]
        yield auction, day, *_ranges(rows), min(prices), max(prices), sum(prices)


def q18(bid: Rows, until: int) -> Result:
    for key, rows in _by(bid, lambda row: (row["bidder"], row["auction"])).items():
        at, price, channel = max((row["at"], row["price"], row["channel"]) for row in rows)
        yield *key, at, price, channel


def q19(bid: Rows, until: int) -> Result:
    for auction, rows in _by(bid, lambda row: row["auction"]).items():
        best = sorted(((row["price"], row["at"], row["bidder"]) for row in rows), reverse=True)
        for rank, (price, at, bidder) in enumerate(best[:10], 1):
            yield auction, rank, price, at, bidder


def q20(bid: Rows, auction: Rows, until: int) -> Result:
    wanted = {row["id"]: row for row in auction if row["category"] == 10}
    for row in bid:
        if offer := wanted.get(row["auction"]):
            yield (
                row["auction"], row["bidder"], row["price"], offer["item"], offer["seller"]
            )  # fmt: skip


def q21(bid: Rows, until: int) -> Result:
    known = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    for row in bid:
        named = [part[11:] for part in row["url"].split("&") if part.startswith("channel_id=")]
        identity = known.get(row["channel"].lower(), named[0] if named else None)
        if identity is not None:
            yield row["auction"], row["bidder"], row["price"], row["channel"], identity


def q22(bid: Rows, until: int) -> Result:
    for row in bid:
        _, _, _, *parts = row["url"].split("/")
        yield row["auction"], row["bidder"], row["price"], row["channel"], *parts[:3]


EXPECTED: Mapping[str, Callable[..., Result]] = {
    f.__name__: f
    for f in (
        q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q13, q14, q15, q16, q17, q18, q19, q20,
        q21, q22,
    )
}  # fmt: skip


def _in_euros(row: Row) -> Decimal:
    return Decimal(row["price"]) * Decimal("0.908")


def _utc(row: Row) -> datetime:
    return datetime.fromtimestamp(row["at"] // SECOND, UTC)


def _day(row: Row) -> int:
    return int(row["at"]) // DAY * DAY


def _by(rows: Rows, key: Callable[[Row], Any]) -> dict[Any, Rows]:
    return {one: list(same) for one, same in groupby(sorted(rows, key=key), key)}


def _windows(rows: Rows, until: int) -> dict[int, Rows]:
    """Rows by the end of their window, of those that are closed."""
    found = _by(rows, lambda row: int(row["at"]) // WINDOW * WINDOW + WINDOW)
    return {end: rows for end, rows in found.items() if end <= until}


def _won(auction: Rows, bid: Rows, until: int) -> Iterator[tuple[Row, Row]]:
    """Auctions that have ended with a bid while they were open, and the best: high, early."""
    bids = _by(bid, lambda row: row["auction"])
    for offer in auction:
        if offer["expires"] <= until:
            valid = [
                row for row in bids.get(offer["id"], ())
                if offer["at"] <= row["at"] <= offer["expires"]
            ]  # fmt: skip
            if valid:
                best = min(valid, key=lambda row: (-row["price"], row["at"], row["bidder"]))
                yield offer, best


def _priced(rows: Rows) -> tuple[Rows, Rows, Rows]:
    return (
        [row for row in rows if row["price"] < 10_000],
        [row for row in rows if 10_000 <= row["price"] < 1_000_000],
        [row for row in rows if row["price"] >= 1_000_000],
    )


def _ranges(rows: Rows) -> Iterator[int]:
    return map(len, (rows, *_priced(rows)))


def _apart(rows: Rows, name: str) -> Iterator[int]:
    """How many different values there are, in all and by price."""
    return (len({row[name] for row in some}) for some in (rows, *_priced(rows)))
