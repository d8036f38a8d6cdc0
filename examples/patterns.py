"""Frequent pattern detection over a window of tweets, with the loop of Fu et al. 2017, s. V-A.

penstock run examples/patterns.py:patterns --apart --master 'local[4]' --once

tweets -> generate -> detect -> report, where detect also receives its own messages: a change of one
itemset concerns others, which live in other key groups. It runs apart only. An itemset is maximal
if it is frequent and none of its supersets is. Whether a superset is frequent is known elsewhere;
so one that becomes frequent, or ceases to be, tells the itemsets that lack one of its items, and
that message comes back through the loop.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock import Files, Generator, RateProfile, Topology, constant
from penstock.model.sinks import Sink
from penstock.workloads.generator import uniform

CANDIDATES = "itemset STRING, kind STRING, delta BIGINT"
DETECTED = f"{CANDIDATES}, number BIGINT"  # of changes of maximal itemsets; 0 for what is heard
STATE = "counts BINARY"
SEEN, SUPERSET, MAXIMAL = "seen", "superset", "maximal"  # kinds of messages
LARGEST = 3  # items of a candidate
BUCKETS = 64
BUCKET = f"pmod(hash(itemset), {BUCKETS})"

Message = tuple[str, str, int]


@dataclass(frozen=True)
class Tweets:
    """Sets of items, popular ones more often; a function of the tweet's number."""

    items: int = 30
    window: int = 400  # tweets
    seed: int = 3

    def of(self, tweet: int) -> tuple[int, ...]:
        """The items of a tweet."""
        length = 2 + int(uniform(np.array([tweet]), 31 * self.seed)[0] * 4)
        draws = uniform(np.arange(length) + 16 * tweet, 31 * self.seed + 1)
        return tuple(sorted({int(self.items * draw**3) for draw in draws.tolist()}))

    def changes(self, tweet: int) -> Iterator[tuple[tuple[int, ...], int]]:
        """What enters the window with a tweet, and what leaves it."""
        yield self.of(tweet), 1
        if tweet >= self.window:
            yield self.of(tweet - self.window), -1


def candidates(items: tuple[int, ...]) -> Iterator[str]:
    """All nonempty itemsets of a tweet, up to a size."""
    for size in range(1, min(LARGEST, len(items)) + 1):
        for chosen in combinations(items, size):
            yield named(chosen)


def named(items: Iterable[int]) -> str:
    """An itemset as text."""
    return ",".join(map(str, items))


def parents(itemset: str) -> Iterator[str]:
    """The itemsets that lack one item of it."""
    items = itemset.split(",")
    if len(items) > 1:
        for missing in range(len(items)):
            yield ",".join(items[:missing] + items[missing + 1 :])


class Generate:
    """Tweets to candidates: what enters the window counts up, what leaves it down."""

    def __init__(self, tweets: Tweets) -> None:
        self._tweets = tweets

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Candidates with their counts, equal ones of a batch as one."""
        for batch in batches:
            counts: Counter[str] = Counter()
            for tweet in batch.column("row").to_pylist():
                for items, sign in self._tweets.changes(tweet):
                    for itemset in candidates(items):
                        counts[itemset] += sign
            rows = [(itemset, SEEN, count) for itemset, count in counts.items() if count]
            yield _batch(rows)


@dataclass
class Record:
    """What a detector knows of an itemset."""

    count: int = 0
    supersets: int = 0  # frequent ones that have one item more

    def flags(self, threshold: int) -> tuple[bool, bool]:
        """Whether it is frequent, and whether it is maximal."""
        frequent = self.count >= threshold
        return frequent, frequent and self.supersets <= 0


def detect(
    records: dict[str, Record], messages: Iterable[Message], threshold: int
) -> list[Message]:
    """Take messages in, all of a batch at once, and report what changed by them."""
    touched: dict[str, tuple[bool, bool]] = {}
    for itemset, kind, delta in messages:
        record = records.setdefault(itemset, Record())
        touched.setdefault(itemset, record.flags(threshold))
        if kind == SEEN:
            record.count += delta
        elif kind == SUPERSET:
            record.supersets += delta
    sent: list[Message] = []
    for itemset, (frequent, maximal) in touched.items():
        record = records[itemset]
        now_frequent, now_maximal = record.flags(threshold)
        if now_frequent != frequent:
            change = int(now_frequent) - int(frequent)
            sent += [(parent, SUPERSET, change) for parent in parents(itemset)]
        if now_maximal != maximal:
            sent.append((itemset, MAXIMAL, int(now_maximal) - int(maximal)))
        if record == Record():
            del records[itemset]
    return sent


class Detector:
    """The detector of one bucket of itemsets, with its state as one value.

    What it reports of the bucket is numbered 1, 2, 3, so that a reader can tell that nothing of it
    was lost and nothing came twice. The number outlives the itemsets.
    """

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def __call__(
        self, key: Any, frames: Iterator[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        """A batch of messages of the bucket."""
        reported, kept = json.loads(state.get[0]) if state.exists else (0, {})
        records = {itemset: Record(*numbers) for itemset, numbers in kept.items()}
        messages = [
            message
            for frame in frames
            for message in zip(frame["itemset"], frame["kind"], frame["delta"], strict=True)
        ]
        sent = detect(records, messages, self._threshold)
        counts = {itemset: [int(r.count), int(r.supersets)] for itemset, r in records.items()}
        found = pd.DataFrame(sent, columns=["itemset", "kind", "delta"]).astype({"delta": "int64"})
        report = found["kind"] == MAXIMAL
        found["number"] = np.where(report, reported + report.cumsum(), 0).astype("int64")
        state.update((json.dumps([reported + int(report.sum()), counts]).encode(),))
        yield found


def maximal_patterns(tweets: Tweets, count: int, threshold: int) -> set[str]:
    """The maximal frequent itemsets after so many tweets, computed at once."""
    counts: Counter[str] = Counter()
    for tweet in range(max(0, count - tweets.window), count):
        counts.update(candidates(tweets.of(tweet)))
    frequent = {itemset for itemset, seen in counts.items() if seen >= threshold}
    return frequent - {parent for itemset in frequent for parent in parents(itemset)}


def _batch(rows: list[Message]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    kinds = [pa.string(), pa.string(), pa.int64()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["itemset", "kind", "delta"])


def frequent_patterns(
    rate: RateProfile,
    patterns: Sink,
    *,
    max_latency: str = "10s",
    tweets: Tweets = Tweets(),
    threshold: int = 40,
    rows: int | None = None,
    max_rows: int | None = None,
) -> Topology:
    """The topology; its sink gets itemsets that become maximal (+1) or cease to be (-1).

    These changes are numbered from 1 in each bucket of itemsets.
    """
    made = Topology("frequent-patterns", max_latency=max_latency)
    made.source("tweets", Generator(rate, keys=1, rows=rows, lanes=2, max_rows=max_rows))
    made.feedback("heard", "detect", DETECTED)

    @made.operator("tweets", separate=True)
    def generate(tweets_: Any) -> Any:
        return tweets_.mapInArrow(Generate(tweets), CANDIDATES)

    @made.operator(["generate", "heard"])
    def detect(generate: Any, heard: Any) -> Any:
        told = heard.where(f"kind = '{SUPERSET}'").drop("number")
        by_bucket = generate.unionByName(told).selectExpr(f"{BUCKET} AS bucket", "*")
        return by_bucket.groupBy("bucket").applyInPandasWithState(
            Detector(threshold), DETECTED, STATE, "append", "NoTimeout"
        )

    report = f"SELECT itemset, delta, {BUCKET} AS bucket, number FROM detect"
    made.add("report", f"{report} WHERE kind = '{MAXIMAL}'", "detect", separate=True)
    made.sink("patterns", "report", patterns)
    return made


patterns = frequent_patterns(
    constant(100), Files("out/patterns", overwrite=True), rows=2_000, max_rows=500
)
