"""L6 on Spark: job 2 from an allocation without any collocation, by ALBIC and by COLA."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.allocation.on_spark.flights import FLIGHTS_SCHEMA, replay
from experiments.allocation.on_spark.placement import Trial
from experiments.allocation.on_spark.rounds import EXECUTORS, course, draw_rounds
from experiments.claim import Claim, judged
from penstock.control.allocating import AllocationRules

GROUPS, MIGRATIONS = 6, 2
ROUNDS, QUICK_ROUNDS = 10, 4
DAYS = 365


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Job 2 from an allocation without any collocation, by ALBIC, then by COLA."""
    del seeds  # a run on Spark is one sample
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with Trial(delays_by_plane(DAYS), EXECUTORS, GROUPS) as trial:
        nodes = trial.nodes()
        order = {name: index for index, name in enumerate(trial.placement.components)}

        def apart(name: str, group: int) -> str:
            return nodes[(group + order[name]) % len(nodes)]

        trial.place(apart)
        rules = AllocationRules("albic", max_migrations=MIGRATIONS)
        ours = course(trial, rules, rounds)
        trial.place(apart)
        cola = course(trial, AllocationRules("cola", max_migrations=10**6), 2)
    reached, anew = ours.collocation[-1], cola.collocation[-1]
    return judged(
        "L6",
        paper="job 2: ALBIC reaches COLA's collocation step by step, 10 migrations a round against "
        "about 200; the load halves",
        ours=f"measured share of bytes that stay on their executor: {ours.collocation[0]:.0f}% at "
        f"the start, {reached:.0f}% after {rounds} rounds of at most {MIGRATIONS} migrations; "
        f"COLA {anew:.0f}% by {cola.migrations[0]} at once",
        where="spark",
        parts={
            "no collocation at the start": ours.collocation[0] < 5,
            "over 80% collocated in the end": reached > 80,
            f"at most {MIGRATIONS} migrations a round": max(ours.migrations) <= MIGRATIONS,
        },
        figures=draw_rounds(
            folder,
            "allocation-L6-spark",
            "collocation, %",
            {"ALBIC": ours.collocation, "COLA": cola.collocation},
        ),
        numbers={"albic": ours.collocation, "cola": cola.collocation},
    )


def delays_by_plane(days: int, days_per_batch: int = 1) -> Callable[[Any, Path], Any]:
    """Job 2 as a query with two parts that hold state."""

    def start(session: Any, folder: Path) -> Any:
        # Two parts with state behind exchanges of the same key: all traffic is one to one. In a
        # topology of ours they would be one component, and no traffic at all. Spark would leave
        # out a second exchange by the plane, so the number of its key group is spelt out.
        session.conf.set("spark.sql.streaming.statefulOperator.useStrictDistribution", "false")
        source = replay(folder / "days", days, days_per_batch).stream("flights", FLIGHTS_SCHEMA)
        flown = source(session).withWatermark("at", "1 hour").repartition(GROUPS, "plane")
        daily = session.sql(
            f"SELECT plane, pmod(hash(plane), {GROUPS}) AS part, window, sum(delay) AS late "
            "FROM {f} GROUP BY plane, window(at, '1 day')",
            f=flown,
        ).repartitionById(GROUPS, "part")
        total = session.sql(
            "SELECT plane, part, window(window, '90 days').start AS since, sum(late) AS late "
            "FROM {d} GROUP BY plane, part, window(window, '90 days')",
            d=daily,
        )
        writer = total.writeStream.outputMode("append").format("noop")
        return writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    return start
