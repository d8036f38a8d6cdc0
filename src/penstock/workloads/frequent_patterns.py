"""Frequent pattern detection over a window of tweets, with the loop of Fu et al. 2017, s. V-A.

tweets -> generate -> detect -> report, where detect also receives its own messages: a change of one
itemset concerns others, which live in other key groups. It runs apart only.
"""

from typing import Any

from penstock.model.sinks import Sink
from penstock.model.topology import Topology
from penstock.workloads.generator import Generator
from penstock.workloads.pattern_steps import (
    BUCKETS,
    CANDIDATES,
    MAXIMAL,
    STATE,
    SUPERSET,
    Detector,
    Generate,
    Tweets,
)
from penstock.workloads.profiles import RateProfile


def frequent_patterns(
    rate: RateProfile,
    patterns: Sink,
    *,
    max_latency: str = "10s",
    tweets: Tweets = Tweets(),  # noqa: B008 - frozen
    threshold: int = 40,
    rows: int | None = None,
    max_rows: int | None = None,
) -> Topology:
    """The topology; its sink gets itemsets that become maximal (+1) or cease to be (-1)."""
    made = Topology("frequent-patterns", max_latency=max_latency)
    made.source("tweets", Generator(rate, keys=1, rows=rows, lanes=2, max_rows=max_rows))
    made.feedback("heard", "detect", CANDIDATES)

    @made.operator("tweets", separate=True)
    def generate(tweets_: Any) -> Any:
        return tweets_.mapInArrow(Generate(tweets), CANDIDATES)

    @made.operator(["generate", "heard"])
    def detect(generate: Any, heard: Any) -> Any:
        messages = generate.unionByName(heard.where(f"kind = '{SUPERSET}'"))
        by_bucket = messages.selectExpr(f"pmod(hash(itemset), {BUCKETS}) AS bucket", "*")
        return by_bucket.groupBy("bucket").applyInPandasWithState(
            Detector(threshold), CANDIDATES, STATE, "append", "NoTimeout"
        )

    made.add("report", f"SELECT itemset, delta FROM detect WHERE kind = '{MAXIMAL}'", "detect",
             separate=True)  # fmt: skip
    made.sink("patterns", "report", patterns)
    return made
