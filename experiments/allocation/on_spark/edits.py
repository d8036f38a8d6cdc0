"""Job 1 of Madsen et al. 2017: the articles edited most, over a generated stream of edits.

Popularity follows Zipf's law, as edits of Wikipedia do. Edits carry no place, so they are spread
evenly over the cells of a map, as in the paper.
"""

from typing import Any

from penstock.model.sinks import Sink
from penstock.model.topology import Topology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import RateProfile

CELLS = 1_024
BUCKETS = 64

LOCATED = f"""
    SELECT key AS article, pmod(xxhash64(row), {CELLS}) AS cell, at FROM edits
"""

COUNTED = """
    SELECT article, window, count(*) AS edits
    FROM {{timed}} GROUP BY article, window(at, '{span} seconds')
"""

BEST = """
    SELECT pmod(article, {buckets}) AS bucket, window(window, '{span} seconds') AS window,
           slice(sort_array(collect_list(struct(edits, article)), false), 1, {k}) AS best
    FROM counted
    GROUP BY pmod(article, {buckets}), window(window, '{span} seconds')
"""

BEST_OF_ALL = """
    SELECT window(window, '{span} seconds').start AS since,
           slice(sort_array(flatten(collect_list(best)), false), 1, {k}) AS best
    FROM best
    GROUP BY window(window, '{span} seconds')
"""


def top_edits(
    rate: RateProfile,
    out: Sink,
    *,
    articles: int = 20_000,
    skew: float = 0.6,
    k: int = 10,
    span_s: int = 60,
    rows: int | None = None,
    lanes: int = 2,
    max_rows: int | None = None,
    max_latency: str = "30s",
    seed: int = 4,
) -> Topology:
    """edits -> located -> counted (by article) -> best (of a bucket) -> best of all, per window."""
    made = Topology("top-edits", max_latency=max_latency)
    stream = Generator(
        rate, keys=articles, skew=skew, seed=seed, rows=rows, lanes=lanes, max_rows=max_rows
    )
    made.source("edits", stream)
    made.add("located", LOCATED, upstream="edits")
    words = {"span": span_s, "k": k, "buckets": BUCKETS}

    @made.operator("located", key=["article"])
    def counted(located: Any) -> Any:
        timed = located.withWatermark("at", "1 second")
        return timed.sparkSession.sql(COUNTED.format(**words), timed=timed)

    made.add("best", BEST.format(**words), upstream="counted")
    made.add("best_of_all", BEST_OF_ALL.format(**words), upstream="best")
    made.sink("out", "best_of_all", out)
    return made
