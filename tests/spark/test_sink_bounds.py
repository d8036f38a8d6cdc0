"""Two sinks with bounds of their own: the strictest rules the plan, each is told by its own."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.fakes import FakeHistory
from penstock.config import Settings
from penstock.control.controller import Controller
from penstock.control.step import Step
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.run.controlled import together
from penstock.spark.run.together import RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import until

pytestmark = pytest.mark.spark

PAGE_S, ARCHIVE_S = 0.05, 3600.0  # some rows of a batch always take longer, and none an hour


def topology(mode: str) -> Topology:
    made = Topology("bounds", max_latency=ARCHIVE_S)
    made.source("rows", Generator(constant(200.0), keys=5, seed=3, max_rows=1000))
    made.add("named", "SELECT row, key FROM rows", "rows")
    made.sink("archive", "named", Memory())
    made.sink("page", "named", Memory(), mode=mode, max_latency=PAGE_S)
    return made


@pytest.mark.parametrize(("mode", "queries"), [("append", 1), ("update", 2)])
def test_the_strictest_bound_rules_the_plan_and_each_sink_is_told_by_its_own(
    session: SparkSession, tmp_path: Path, mode: str, queries: int
) -> None:
    """In one query or in one each: the page is late, the archive is not, and promise knows why."""
    made, steps = topology(mode), list[Step]()
    settings = Settings(policy="promise", period_s=1.0)
    with RunningTopology(made, session, tmp_path / "c") as running:
        assert len(running.queries) == queries
        subject = together(running, settings, ())
        assert subject.limits.max_latency_s == PAGE_S
        loop = Controller(settings, subject, FakeHistory(), made.max_latency_s, steps.append)
        loop.start()
        try:
            until(lambda: any(map(_planned, steps)) and len(loop.summary().sinks) == 2)
        finally:
            loop.stop()
        written = {name: len(running.rows(name)) for name in ("archive", "page")}
        summary = loop.summary()
    assert min(written.values()) > 0

    planned = next(step for step in steps if _planned(step))
    assert planned.observation is not None
    assert planned.decision is not None
    by_name = {one.name: one for one in planned.observation.sinks}
    assert {name: one.max_latency_s for name, one in by_name.items()} == {
        "archive": ARCHIVE_S, "page": PAGE_S,
    }  # fmt: skip
    assert by_name["archive"].latency.in_time_share == 1.0
    assert by_name["page"].latency.in_time_share < 1.0
    assert planned.decision.decision.infeasible is not None
    assert "99% of results within 0.05 s cannot be kept" in planned.decision.decision.infeasible

    # Results count by the bound of the sink they go to: where one query writes both, by the page's.
    counted = planned.observation.latency
    assert counted is not None
    if queries == 1:
        assert counted.in_time_share == by_name["page"].latency.in_time_share
    else:
        rows = {name: one.latency.count for name, one in by_name.items()}
        late = rows["page"] * (1 - by_name["page"].latency.in_time_share)
        assert counted.in_time_share == pytest.approx(1 - late / sum(rows.values()), abs=0.01)
    assert {sink.name: sink.max_latency_s for sink in summary.sinks} == {
        "archive": ARCHIVE_S, "page": PAGE_S,
    }  # fmt: skip


def _planned(step: Step) -> bool:
    """Whether a period saw results of both sinks, and its decision was on measured costs."""
    seen, decided = step.observation, step.decision
    both = seen is not None and len(seen.sinks) == 2
    return both and decided is not None and decided.decision.infeasible is not None
