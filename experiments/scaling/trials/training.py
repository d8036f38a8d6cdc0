"""The knowledge of the learning policy: what each degree did on a representative stream."""

from dataclasses import replace
from functools import cache

from experiments.scaling.trials.run import PERIOD_S, TIMEOUT_S
from experiments.scaling.workloads.streams import Knots, stream
from experiments.scaling.workloads.workflows import SOURCE, Workflow
from penstock.scaling.policies.knowledge import Knowledge, Sample, samples_of
from penstock.scaling.policies.rlearn import Rlearn
from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.sim.scenario import ClusterSpec, OperatorSpec, Scenario, SourceSpec

DEGREES = 12
TRAINING_SEED = 1_000  # another stream than any it is judged on


def trained(workflow: Workflow, knots: Knots, shrink: float) -> Rlearn:
    """The policy after it has seen every degree on the stream (Kotto-Kombi 2018, ch. 7 s. 1)."""
    return _trained(workflow.operators, tuple(knots), shrink)


@cache
def _trained(operators: tuple[OperatorSpec, ...], knots: Knots, shrink: float) -> Rlearn:
    samples = list[Sample]()
    profile = stream(knots, TRAINING_SEED, shrink)
    for degree in range(1, DEGREES + 1):
        grown = tuple(replace(one, processors=degree) for one in operators)
        total = degree * len(operators)
        scenario = Scenario(
            "training", profile.duration_s, TIMEOUT_S, (SourceSpec(SOURCE, profile),), grown,
            ClusterSpec(total, total, total), "space", period_s=PERIOD_S, jobs_per_step=16,
            seed=TRAINING_SEED,
        )  # fmt: skip
        seen = simulate(scenario, Static()).observations
        samples += samples_of(seen, TIMEOUT_S, shared=False)
    return Rlearn(Knowledge().learnt(samples))
