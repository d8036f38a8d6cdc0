"""Windows that copy a row only a few times, in each form that could make them, in turn.

Spark's own copies a row into each window. By panes, a row is counted once, in Python. In two steps,
Spark's own tumbling panes are followed by its own windows over them; that equals the others only
while no row is late: a pane that has closed takes no more rows for windows that are still open.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks._sessions import local_session
from benchmarks.windows import (
    WARM_UP,
    Outcome,
    Query,
    Trial,
    check_equal,
    followed,
    our_query,
    outcome,
    own_query,
)

MOST = 5
CASES = tuple(
    f"{panes}-panes{behind}" for panes in (2, 3, MOST) for behind in ("", "-hottest")
)  # fmt: skip
# Keys, rows of each in a pane, rows of a batch, and batches; the last has half a pane in a batch.
LOADS = (
    (1, 10_000, 300_000, 3),
    (100, 100, 300_000, 3),
    (2_000, 5, 300_000, 3),
    (20_000, 0.5, 300_000, 3),
    (200_000, 0.5, 50_000, 12),
)
ROUNDS = 2


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """The time of Spark's own over that of each other form; the quickest of the turns counts."""
    with local_session() as session:
        for hottest in (False, True):
            _turn(session, replace(WARM_UP, hottest=hottest))
        for name in (case,) if case else CASES:
            panes, hottest = int(name.partition("-")[0]), name.endswith("hottest")
            for load in LOADS:
                yield from _compared(session, Trial(name, panes, *load, 1, hottest=hottest))


def _compared(session: SparkSession, trial: Trial) -> Iterator[dict[str, Any]]:
    turns = [_turn(session, trial) for _ in range(ROUNDS)]
    batch_s = {form: min(turn[form].batch_s for turn in turns) for form in turns[0]}
    cpu_s = {form: min(turn[form].cpu_s for turn in turns) for form in turns[0]}
    for form in list(batch_s)[1:]:
        yield {
            "name": f"window-forms/{trial.name}/{trial.keys}-keys/{form}",
            "baseline": round(batch_s["own"], 2), "ours": round(batch_s[form], 2), "unit": "s",
            "ratio": round(batch_s["own"] / batch_s[form], 2),
            "conditions": f"baseline: Spark's window() and groupBy; {trial.panes} windows a row, "
            f"{trial.keys:,} keys, {trial.rows_per_key_and_pane:g} rows per key and pane, "
            f"{trial.batches} batches of {trial.rows_per_batch:,} rows, local[2]; the best of "
            f"{ROUNDS} turns; CPU of the whole query {cpu_s['own']:.1f} and {cpu_s[form]:.1f} s, "
            f"ratio {cpu_s['own'] / cpu_s[form]:.2f}; windows equal",
        }  # fmt: skip


def _turn(session: SparkSession, trial: Trial) -> dict[str, Outcome]:
    forms = {"own": own_query(trial), "panes": our_query(trial)}
    if trial.panes == MOST:  # where it would gain most, and does not
        forms["two-steps"] = _two_steps(trial)
    found = {form: outcome(session, trial, query) for form, query in forms.items()}
    for other in list(found.values())[1:]:
        check_equal(trial, found["own"], other)
    return found


def _two_steps(trial: Trial) -> Query:
    """Panes by Spark's own tumbling windows, then windows over panes."""

    def query(frame: DataFrame) -> DataFrame:
        panes = frame.groupBy("key", F.window("at", "1 second").alias("pane")).agg(
            F.count("*").alias("n"), F.sum("value").alias("total"), F.max("value").alias("most"),
            F.count("value").alias("values"), F.sum(F.col("value").cast("double")).alias("added"),
        )  # fmt: skip
        window = F.window(F.window_time("pane"), f"{trial.panes} seconds", "1 second")
        windows = panes.groupBy("key", window.alias("window")).agg(
            F.sum("n").alias("n"), F.sum("total").alias("total"),
            (F.sum("added") / F.sum("values")).alias("mean"), F.max("most").alias("most"),
        )  # fmt: skip
        return followed(trial, windows)

    return query
