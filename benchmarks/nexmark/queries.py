"""The queries of Nexmark, as far as Spark Structured Streaming can express them.

Each is one function from frames to a frame, used by plain queries and by operators of a topology
alike. Times have a watermark of `DELAY_S`. What they must give is in
tests/spark/nexmark_expected.py. Queries that cannot be compared are in `MISSING`, with the reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.nexmark import winners

DELAY_S = 4
DAY = "1 day"
_CENTS = "0.908 * price"


@dataclass(frozen=True)
class Query:
    """One query: what it reads, the stream, and the mode in which results come."""

    name: str
    reads: tuple[str, ...]
    stream: Callable[..., DataFrame]
    mode: str = "append"
    key: tuple[str, ...] = ()  # of results that are updated
    needs_rocksdb: bool = False


def timed(frame: DataFrame) -> DataFrame:
    """With the watermark that every query has."""
    return frame.withWatermark("at", f"{DELAY_S} seconds")


def _sql(text: str) -> Callable[..., DataFrame]:
    """A query of one table that keeps nothing."""

    def stream(bid: DataFrame) -> DataFrame:
        return bid.sparkSession.sql(text.format(bid="{bid}"), bid=bid)

    return stream


def _stateless(name: str, text: str) -> Query:
    return Query(name, ("bid",), _sql(text))


def q3(person: DataFrame, auction: DataFrame) -> DataFrame:
    """Who sells in category 10, near the coast?"""
    local = person.where("state IN ('OR', 'ID', 'CA')").select("id", "name", "city", "state")
    offered = auction.where("category = 10").select(F.col("id").alias("auction"), "seller")
    joined = local.join(offered, local.id == offered.seller)
    return joined.select("name", "city", "state", "auction")


def q4(auction: DataFrame, bid: DataFrame) -> DataFrame:
    """The average winning price of each category so far."""
    won = winners.winners(timed(auction), timed(bid)).groupBy("category")
    return won.agg(F.count("*").alias("auctions"), F.avg("price").alias("average"))


def q5(bid: DataFrame) -> DataFrame:
    """Which auctions got the most bids in the last ten seconds, every two?"""
    return _hottest(
        timed(bid).groupBy("auction", F.window("at", "10 seconds", "2 seconds")).count()
    )


def _hottest(counted: DataFrame) -> DataFrame:
    found = counted.groupBy(F.window(F.window_time("window"), "2 seconds").alias("slide")).agg(
        F.max("count").alias("most"),
        F.collect_list(F.struct("auction", "count")).alias("all"),
    )
    hot = found.select("slide", "most", F.explode("all").alias("one")).where("one.count = most")
    return hot.select(F.col("slide.end").alias("until"), "one.auction", "most")


def q6(auction: DataFrame, bid: DataFrame) -> DataFrame:
    """The average of each seller's last ten winning prices, whenever there is one more."""
    return winners.last_prices(winners.winners(timed(auction), timed(bid)))


def q7(bid: DataFrame) -> DataFrame:
    """The highest bid of each ten seconds; of equal ones the largest auction and bidder."""
    best = F.max(F.struct("price", "auction", "bidder")).alias("best")
    found = timed(bid).groupBy(F.window("at", "10 seconds")).agg(best)
    return found.select(F.col("window.end").alias("until"), "best.*")


def q8(person: DataFrame, auction: DataFrame) -> DataFrame:
    """Who came and sold something within the same ten seconds?"""
    came = timed(person).select("id", "name", F.window("at", "10 seconds").alias("window"))
    sold = timed(auction).groupBy("seller", F.window("at", "10 seconds").alias("window")).count()
    both = came.join(sold, (came.id == sold.seller) & (came.window == sold.window))
    return both.select("id", "name", F.col("count").alias("auctions"))


def q9(auction: DataFrame, bid: DataFrame) -> DataFrame:
    """The winning bid of each auction, when it is over."""
    won = winners.winners(timed(auction), timed(bid))
    ended, placed = (F.timestamp_micros(name).alias(name) for name in ("expires", "placed"))
    return won.select("auction", "seller", "category", ended, "price", "bidder", placed)


def q11(bid: DataFrame) -> DataFrame:
    """Bids of each session of a bidder, which ends after ten seconds without one."""
    found = timed(bid).groupBy("bidder", F.session_window("at", "10 seconds")).count()
    begin, end = (F.col(f"session_window.{side}").alias(f"{side}_at") for side in ("start", "end"))
    return found.select("bidder", "count", begin, end)


_RANGES = {
    "low": "price < 10000",
    "middle": "price BETWEEN 10000 AND 999999",
    "high": "price > 999999",
}


def _counts() -> list[str]:
    return [f"count(CASE WHEN {test} THEN 1 END) AS {name}" for name, test in _RANGES.items()]


def _distinct(of: str) -> list[str]:
    """Spark has no count(DISTINCT) for streams, but a set has a size."""
    return [
        f"size(collect_set(CASE WHEN {test} THEN {of} END)) AS {name}_{of}s"
        for name, test in {"all": "true", **_RANGES}.items()
    ]


def _report(by: Sequence[str], aggregates: Sequence[str]) -> Callable[[DataFrame], DataFrame]:
    def stream(bid: DataFrame) -> DataFrame:
        grouped = timed(bid).groupBy(*by, F.window("at", DAY))
        found = grouped.agg(*(F.expr(one) for one in aggregates))
        return found.select(*by, F.col("window.start").alias("day"), *_names(aggregates))

    return stream


def _names(aggregates: Sequence[str]) -> list[str]:
    return [one.rpartition(" AS ")[2] for one in aggregates]


def _reported(name: str, by: Sequence[str], aggregates: Sequence[str]) -> Query:
    return Query(name, ("bid",), _report(by, aggregates), "update", (*by, "day"))


def q13(bid: DataFrame) -> DataFrame:
    """Bids with a value from a table that does not change."""
    table = bid.sparkSession.range(1000).selectExpr("id", "concat('side-', id) AS value")
    joined = bid.join(F.broadcast(table), F.expr("auction % 1000 = id"))
    return joined.select("auction", "bidder", "price", "value")


def q18(bid: DataFrame) -> DataFrame:
    """The last bid of each bidder on each auction."""
    last = F.max(F.struct("at", "price", "channel")).alias("last")
    return bid.groupBy("bidder", "auction").agg(last).select("bidder", "auction", "last.*")


def q19(bid: DataFrame) -> DataFrame:
    """The ten highest bids of each auction."""
    one = F.struct("price", "at", "bidder")
    best = bid.groupBy("auction").agg(F.max_by(one, one, 10).alias("best"))
    ranked = best.select("auction", F.posexplode("best").alias("place", "one"))
    return ranked.select("auction", F.expr("place + 1").alias("rank"), "one.*")


def q20(bid: DataFrame, auction: DataFrame) -> DataFrame:
    """Bids with their auctions, of category 10."""
    wanted = auction.where("category = 10").select("id", "item", "seller")
    joined = bid.join(wanted, bid.auction == wanted.id)
    return joined.select("auction", "bidder", "price", "item", "seller")


_COUNTS = ["count(*) AS bids", *_counts()]
_DISTINCT = [*_distinct("bidder"), *_distinct("auction")]
_PRICES = ["min(price) AS least", "max(price) AS most", "sum(price) AS total"]

QUERIES = (
    _stateless("q0", "SELECT * FROM {bid}"),
    _stateless("q1", f"SELECT auction, bidder, {_CENTS} AS price, at FROM {{bid}}"),
    _stateless("q2", "SELECT auction, price FROM {bid} WHERE auction % 123 = 0"),
    Query("q3", ("person", "auction"), q3),
    Query("q4", ("auction", "bid"), q4, "update", ("category",), needs_rocksdb=True),
    Query("q5", ("bid",), q5),
    Query("q6", ("auction", "bid"), q6, needs_rocksdb=True),
    Query("q7", ("bid",), q7),
    Query("q8", ("person", "auction"), q8),
    Query("q9", ("auction", "bid"), q9, needs_rocksdb=True),
    _stateless(
        "q10", "SELECT *, date_format(at, 'yyyy-MM-dd') AS dt, date_format(at, 'HH:mm') AS hm "
        "FROM {bid}",
    ),
    Query("q11", ("bid",), q11),
    Query("q13", ("bid",), q13),
    _stateless(
        "q14",
        f"""SELECT auction, bidder, {_CENTS} AS price, extra,
              CASE WHEN hour(at) BETWEEN 8 AND 18 THEN 'day' WHEN hour(at) <= 6 OR hour(at) >= 20
                   THEN 'night' ELSE 'other' END AS time,
              length(regexp_replace(extra, '[^c]', '')) AS c_count
            FROM {{bid}} WHERE {_CENTS} > 1000000 AND {_CENTS} < 50000000""",
    ),
    _reported("q15", (), [*_COUNTS, *_DISTINCT]),
    _reported("q16", ("channel",), [*_COUNTS, *_DISTINCT]),
    _reported("q17", ("auction",), [*_COUNTS, *_PRICES]),
    Query("q18", ("bid",), q18, "update", ("bidder", "auction")),
    Query("q19", ("bid",), q19, "update", ("auction", "rank")),
    Query("q20", ("bid", "auction"), q20),
    _stateless(
        "q21",
        """SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0'
             WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
             ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
           FROM {bid} WHERE url LIKE '%channel_id=%' OR lower(channel) IN
             ('apple', 'google', 'facebook', 'baidu')""",
    ),
    _stateless(
        "q22",
        """SELECT auction, bidder, price, channel, split(url, '/')[3] AS dir1,
             split(url, '/')[4] AS dir2, split(url, '/')[5] AS dir3 FROM {bid}""",
    ),
)  # fmt: skip
BY_NAME = {query.name: query for query in QUERIES}
MISSING = {"q12": "windows of processing time: no two runs have the same results to compare"}
