"""The workloads of Fu et al. 2017 do real work: what they find is what is there."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa

from examples.logos import Aggregate, Extract, Match, Video, Waiting, shown
from examples.patterns import (
    MAXIMAL,
    SEEN,
    SUPERSET,
    Detector,
    Generate,
    Message,
    Record,
    Tweets,
    candidates,
    detect,
    maximal_patterns,
    parents,
)
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

FRAMES = 40


def test_the_chain_finds_the_logos_that_frames_show() -> None:
    stream = Generator(constant(10.0), keys=1)
    batches = iter([stream.batch(0, 25, 0.0), stream.batch(25, FRAMES, 0.0)])
    none = Waiting()
    seen = pa.Table.from_batches(
        list(Aggregate(none)(Match(none)(Extract(Video(7), none)(batches))))
    )
    found = set(zip(seen["frame"].to_pylist(), seen["logo"].to_pylist(), strict=True))
    wanted = shown(FRAMES, 7)
    assert len(wanted) > 10
    assert len(found & wanted) >= 0.95 * len(wanted)
    assert len(found - wanted) <= 0.05 * len(wanted)


def test_frames_and_waits_are_functions_of_their_number() -> None:
    assert (Video(7).image(3) == Video(7).image(3)).all()
    assert (Video(7).image(3) != Video(8).image(3)).any()
    rows = np.arange(20_000)
    waits = Waiting(0.1, 2).times_s(rows)
    assert (waits[5:9] == Waiting(0.1, 2).times_s(rows[5:9])).all()
    np.testing.assert_allclose([waits.mean(), waits.std()], 0.1, rtol=0.03)


def test_patterns_settle_at_what_the_window_holds_whatever_the_batches() -> None:
    tweets, count, threshold = Tweets(items=15, window=150), 600, 4
    wanted = maximal_patterns(tweets, count, threshold)
    assert max(itemset.count(",") for itemset in wanted) == 2, "some have three items"
    for size in (1, 17, 600):
        assert _run(tweets, count, threshold, size) == wanted


def test_an_itemset_that_is_forgotten_leaves_no_record() -> None:
    records: dict[str, Record] = {}
    assert detect(records, [("1", SEEN, 2)], 2) == [("1", MAXIMAL, 1)]
    assert detect(records, [("1", SUPERSET, 1)], 2) == [("1", MAXIMAL, -1)]
    assert detect(records, [("1", SUPERSET, -1), ("1", SEEN, -2)], 2) == []
    assert records == {}


class State:
    """One value, as Spark keeps it for a key."""

    exists = False

    def update(self, value: tuple[bytes]) -> None:
        self.get, self.exists = value, True


def test_changes_are_numbered_on_though_their_itemsets_are_forgotten() -> None:
    state, detector = State(), Detector(2)

    def changes(*messages: Message) -> list[tuple[str, str, int, int]]:
        frame = pd.DataFrame(messages, columns=["itemset", "kind", "delta"])
        (found,) = detector((0,), iter([frame]), state)
        return list(found.itertuples(index=False, name=None))

    assert changes(("1", SEEN, 2), ("1,2", SEEN, 2)) == [
        ("1", MAXIMAL, 1, 1), ("2", SUPERSET, 1, 0), ("1", SUPERSET, 1, 0), ("1,2", MAXIMAL, 1, 2),
    ]  # fmt: skip
    assert changes(("1", SEEN, -2), ("1,2", SEEN, -2))[0] == ("1", MAXIMAL, -1, 3)
    assert json.loads(state.get[0]) == [4, {}]
    assert changes(("1", SEEN, 2)) == [("1", MAXIMAL, 1, 5)]


def test_the_generator_counts_what_enters_and_what_leaves() -> None:
    tweets = Tweets(window=5)
    rows = pa.RecordBatch.from_pydict({"row": pa.array([7, 8])})
    (batch,) = Generate(tweets)(iter([rows]))
    wanted: Counter[str] = Counter()
    for tweet, sign in ((7, 1), (8, 1), (2, -1), (3, -1)):
        for itemset in candidates(tweets.of(tweet)):
            wanted[itemset] += sign
    found = dict(
        zip(*(batch.column(name).to_pylist() for name in ("itemset", "delta")), strict=True)
    )
    assert found == {itemset: count for itemset, count in wanted.items() if count}
    assert list(parents("1,2,3")) == ["2,3", "1,3", "1,2"]
    assert list(parents("1")) == []


def _run(tweets: Tweets, count: int, threshold: int, size: int) -> set[str]:
    """The detector over batches of a size, with what it tells itself coming one batch later."""
    records: dict[str, Record] = {}
    net: Counter[str] = Counter()
    heard: list[Message] = []
    step = Generate(tweets)
    for start in range(0, count + 20 * size, size):
        rows = pa.array(range(min(start, count), min(start + size, count)), pa.int64())
        messages = list(heard)
        for batch in step(iter([pa.RecordBatch.from_arrays([rows], names=["row"])])):
            messages += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        sent = detect(records, messages, threshold)
        heard = [message for message in sent if message[1] == SUPERSET]
        for itemset, kind, delta in sent:
            if kind == MAXIMAL:
                net[itemset] += delta
    assert not heard
    return {itemset for itemset, value in net.items() if value == 1}
