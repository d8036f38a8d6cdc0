"""The queries of Nexmark, as far as Spark Structured Streaming can express them.

Each is one function from frames to a frame, used by plain queries and by operators of a topology
alike; `batch` is the same question as plain SQL over all events, which the results are compared
with. Times have a watermark of `DELAY`. Where windows are left open by it, the batch leaves them
out. Queries that Spark cannot express as a stream are in `MISSING`, with the reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

DELAY_S = 4
DAY = "1 day"
_CENTS = "0.908 * price"


@dataclass(frozen=True)
class Query:
    """One query: what it reads, the stream, the batch, and the mode in which results come."""

    name: str
    reads: tuple[str, ...]
    stream: Callable[..., DataFrame]
    batch: str
    mode: str = "append"
    key: tuple[str, ...] = ()  # of results that are updated


def timed(frame: DataFrame) -> DataFrame:
    """With the watermark that every query has."""
    return frame.withWatermark("at", f"{DELAY_S} seconds")


def _sql(text: str) -> Callable[..., DataFrame]:
    """A query of one table that keeps nothing."""

    def stream(bid: DataFrame) -> DataFrame:
        return bid.sparkSession.sql(text.format(bid="{bid}"), bid=bid)

    return stream


def _stateless(name: str, text: str) -> Query:
    return Query(name, ("bid",), _sql(text), text.format(bid="bid"))


def q3(person: DataFrame, auction: DataFrame) -> DataFrame:
    """Who sells in category 10, near the coast?"""
    local = person.where("state IN ('OR', 'ID', 'CA')").select("id", "name", "city", "state")
    offered = auction.where("category = 10").select(F.col("id").alias("auction"), "seller")
    joined = local.join(offered, local.id == offered.seller)
    return joined.select("name", "city", "state", "auction")


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


def _distinct(of: str, streamed: bool) -> list[str]:
    """Spark has no count(DISTINCT) for streams, but a set has a size."""
    found = []
    for name, test in {"all": "true", **_RANGES}.items():
        value = f"CASE WHEN {test} THEN {of} END"
        count = f"size(collect_set({value}))" if streamed else f"count(DISTINCT {value})"
        found.append(f"{count} AS {name}_{of}s")
    return found


def _report(by: Sequence[str], aggregates: Sequence[str]) -> Callable[[DataFrame], DataFrame]:
    def stream(bid: DataFrame) -> DataFrame:
        grouped = timed(bid).groupBy(*by, F.window("at", DAY))
        found = grouped.agg(*(F.expr(one) for one in aggregates))
        return found.select(*by, F.col("window.start").alias("day"), *_names(aggregates))

    return stream


def _names(aggregates: Sequence[str]) -> list[str]:
    return [one.rpartition(" AS ")[2] for one in aggregates]


def _reported(name: str, by: Sequence[str], streamed: Sequence[str], batch: Sequence[str]) -> Query:
    columns = ", ".join([*by, f"window(at, '{DAY}').start AS day", *batch])
    groups = ", ".join([*by, f"window(at, '{DAY}')"])
    return Query(
        name, ("bid",), _report(by, streamed), f"SELECT {columns} FROM bid GROUP BY {groups}",
        "update", (*by, "day"),
    )  # fmt: skip


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


_COUNT, _PRICES = (
    ["count(*) AS bids"],
    ["min(price) AS least", "max(price) AS most", "sum(price) AS total"],
)
_STATISTICS = [*_COUNT, *_counts(), *_PRICES]
_BOTH = {side: [*_distinct("bidder", side == "stream"), *_distinct("auction", side == "stream")]
         for side in ("stream", "batch")}  # fmt: skip

QUERIES = (
    _stateless("q0", "SELECT * FROM {bid}"),
    _stateless("q1", f"SELECT auction, bidder, {_CENTS} AS price, at FROM {{bid}}"),
    _stateless("q2", "SELECT auction, price FROM {bid} WHERE auction % 123 = 0"),
    Query(
        "q3", ("person", "auction"), q3,
        "SELECT name, city, state, auction.id AS auction FROM person JOIN auction "
        "ON person.id = seller WHERE category = 10 AND state IN ('OR', 'ID', 'CA')",
    ),
    Query(
        "q5", ("bid",), q5,
        """WITH counted AS (SELECT auction, w.end AS until, count(*) AS most FROM (
               SELECT auction, window(at, '10 seconds', '2 seconds') AS w FROM bid)
             GROUP BY auction, w)
           SELECT until, auction, most FROM (
             SELECT *, max(most) OVER (PARTITION BY until) AS best FROM counted)
           WHERE most = best AND until <= {closed}""",
    ),
    Query(
        "q7", ("bid",), q7,
        """SELECT until, best.* FROM (SELECT window(at, '10 seconds').end AS until,
             max(struct(price, auction, bidder)) AS best FROM bid GROUP BY window(at, '10 seconds'))
           WHERE until <= {closed}""",
    ),
    Query(
        "q8", ("person", "auction"), q8,
        """SELECT id, name, auctions FROM
             (SELECT id, name, window(at, '10 seconds') AS w FROM person) JOIN
             (SELECT seller, window(at, '10 seconds') AS v, count(*) AS auctions FROM auction
              GROUP BY seller, window(at, '10 seconds')) ON id = seller AND w = v
           WHERE w.end <= {closed}""",
    ),
    _stateless(
        "q10", "SELECT *, date_format(at, 'yyyy-MM-dd') AS dt, date_format(at, 'HH:mm') AS hm "
        "FROM {bid}",
    ),
    Query(
        "q11", ("bid",), q11,
        # Spark moves a condition on the end of a session below the merging of sessions, where it
        # is another one; it cannot do that to a maximum.
        """SELECT * FROM (
             SELECT bidder, count(*) AS count, min(at) AS start_at,
               max(at) + INTERVAL 10 SECONDS AS end_at
             FROM bid GROUP BY bidder, session_window(at, '10 seconds'))
           WHERE end_at <= {closed}""",
    ),
    Query(
        "q13", ("bid",), q13,
        "SELECT auction, bidder, price, concat('side-', id) AS value FROM bid JOIN range(1000) "
        "ON auction % 1000 = id",
    ),
    _stateless(
        "q14",
        f"""SELECT auction, bidder, {_CENTS} AS price, extra,
              CASE WHEN hour(at) BETWEEN 8 AND 18 THEN 'day' WHEN hour(at) <= 6 OR hour(at) >= 20
                   THEN 'night' ELSE 'other' END AS time,
              length(regexp_replace(extra, '[^c]', '')) AS c_count
            FROM {{bid}} WHERE {_CENTS} > 1000000 AND {_CENTS} < 50000000""",
    ),
    _reported("q15", (), [*_COUNT, *_counts(), *_BOTH["stream"]],
              [*_COUNT, *_counts(), *_BOTH["batch"]]),
    _reported("q16", ("channel",), [*_COUNT, *_counts(), *_BOTH["stream"]],
              [*_COUNT, *_counts(), *_BOTH["batch"]]),
    _reported("q17", ("auction",), _STATISTICS, _STATISTICS),
    Query(
        "q18", ("bid",), q18,
        "SELECT bidder, auction, last.* FROM (SELECT bidder, auction, "
        "max(struct(at, price, channel)) AS last FROM bid GROUP BY bidder, auction)",
        "update", ("bidder", "auction"),
    ),
    Query(
        "q19", ("bid",), q19,
        """SELECT auction, rank, price, at, bidder FROM (SELECT *, row_number() OVER (
             PARTITION BY auction ORDER BY price DESC, at DESC, bidder DESC) AS rank FROM bid)
           WHERE rank <= 10""",
        "update", ("auction", "rank"),
    ),
    Query(
        "q20", ("bid", "auction"), q20,
        "SELECT auction, bidder, price, item, seller FROM bid JOIN auction ON auction = id "
        "WHERE category = 10",
    ),
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
MISSING = {
    "q4": "an average over maxima that change: Spark takes results back only in complete mode",
    "q6": "the last ten results of each seller: a window over rows, which streams do not have",
    "q9": "the winner of each auction: a rank over a join, and an auction's end is no watermark",
    "q12": "windows of processing time: no two runs have the same results to compare",
}
