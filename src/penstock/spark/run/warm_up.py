"""A few rows through the same operators before the streams begin: warm code, first statistics.

What is generated can be generated again, so nothing of a stream is used up. Its rows are spread
over half a minute of event time: windows close, and what leaves them is seen too.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.fusion.proposal import ProposalRules
from penstock.model.decision import RoomDecision
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.slow_loop import SlowLoop
from penstock.spark.run.together import Pace, RunningTopology
from penstock.spark.sources.running.kinds import running_source

BATCHES, ROWS = 4, 50
SPAN_S = 30.0
LIMIT_S = 120.0


def warm_up(
    topology: Topology, session: SparkSession, choice: PlanChoice | None = None,
    rules: ProposalRules = ProposalRules(),  # noqa: B008 - frozen
) -> RoomDecision | None:  # fmt: skip
    """Run some batches; returns the plan that their statistics speak for, if they say anything.

    Streams that are not generated are read once, and not for exercise: nothing is run then.
    """
    small = _small(topology)
    if small is None:
        return None
    with tempfile.TemporaryDirectory(prefix="penstock-warm-up-") as folder:
        checkpoint = Path(folder) / "checkpoint"
        pace, wanted = Pace(once=True), choice or PlanChoice()
        with RunningTopology(small, session, checkpoint, pace, choice=wanted) as running:
            measurer = SparkMeasurer(running)
            # Nothing has to be restarted for a plan that is there from the start: any gain will do.
            # A few rows say nothing of how evenly keys spread.
            priced = replace(rules, least_gain=0.0, spread_known=False)
            slow_loop = SlowLoop(running.built, lambda _: None, priced)
            running.wait(LIMIT_S)
            running.settle()
            slow_loop.look(measurer.observe())
            slow_loop.propose_safely()
    made = slow_loop.latest
    if made is None:
        return None
    where = f"measured while warming up, on {BATCHES * ROWS} generated rows"
    return replace(made, reasons=(*made.reasons, where))


def _small(topology: Topology) -> Topology | None:
    """The same operators over a few rows, into memory; None where rows can be read only once."""
    small = Topology(f"{topology.name}-warm-up", topology.max_latency_s, topology.share)
    for source in topology.sources:
        reader = running_source(source).sample(BATCHES, ROWS, SPAN_S)
        if reader is None:
            return None
        small.source(source.name, reader, route=source.route)
    for operator in topology.operators:
        step = operator.sql if operator.sql is not None else operator.function
        assert step is not None
        small.add(operator.name, step, operator.upstreams, key=operator.key)
    for binding in topology.sinks:
        small.sink(binding.name, binding.upstream, Memory(), mode=binding.output_mode)
    return small
