"""Nexmark's queries as one topology: the same rows as plain SQL over all events."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark.events import FIRST_ID, ROUND, Events
from benchmarks.nexmark.programs import expected, results, topology
from benchmarks.nexmark.queries import BY_NAME, MISSING

EVENTS, FILES = 20_000, 3
IN_EVERY_RUN = ("q2", "q7")


def test_events_are_a_function_of_their_numbers() -> None:
    made, again = Events(seed=3), Events(seed=3)
    whole = made.tables(0, 10 * ROUND)
    assert {kind: len(table) for kind, table in whole.items()} == {
        "person": 10, "auction": 30, "bid": 460,
    }  # fmt: skip
    half = again.tables(5 * ROUND, 5 * ROUND)
    assert half["bid"].equals(whole["bid"].slice(230))
    assert not Events(seed=4).tables(0, 10 * ROUND)["bid"].equals(whole["bid"])


def test_bids_go_to_auctions_that_are_there_and_to_hot_ones_most() -> None:
    events = Events().tables(0, 1_000 * ROUND)
    auctions = events["auction"]["id"].to_pylist()
    assert auctions == list(range(FIRST_ID, FIRST_ID + 3_000))
    assert set(events["bid"]["auction"].to_pylist()) <= set(auctions)
    counted = Counter(events["bid"]["auction"].to_pylist())
    hot = sum(count for auction, count in counted.items() if (auction - FIRST_ID) % 100 == 0)
    assert 0.48 < hot / 46_000 < 0.54


def test_every_query_is_there_or_said_why_not() -> None:
    assert {f"q{number}" for number in range(23)} == set(BY_NAME) | set(MISSING)


@pytest.mark.spark
@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize(
    "names", [IN_EVERY_RUN, pytest.param(tuple(BY_NAME), marks=pytest.mark.long)]
)
def test_results_equal_those_of_a_batch(names: tuple[str, ...], tmp_path: Path) -> None:
    Events(per_s=500.0).write(tmp_path / "events", EVENTS, FILES)
    made = topology(names, tmp_path / "events", tmp_path / "out")
    summary = made.run(
        once=True, checkpoint=tmp_path / "checkpoint", key_groups=2, period_s=1, master="local[2]"
    )
    kinds = {kind for name in names for kind in BY_NAME[name].reads}
    rounds = EVENTS // ROUND
    # However many queries read an event, it is one.
    assert summary.results == rounds * sum({"person": 1, "auction": 3, "bid": 46}[k] for k in kinds)
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        for query in map(BY_NAME.__getitem__, names):
            found = results(spark, query, tmp_path / "out")
            assert found == expected(spark, query, tmp_path / "events", kinds), query.name
            assert found, query.name
    finally:
        spark.stop()
