"""The elastic benchmark's modes in the simulator, which learnt its costs from one run on Spark."""

from dataclasses import replace
from pathlib import Path

from benchmarks._elastic_loads import Course, Part, within
from penstock.config import Settings
from penstock.control.from_settings import policy_of
from penstock.control.history.store import HistoryStore
from penstock.scaling.policies.static import Static
from penstock.sim.calibration import overhead_course, scenario_of
from penstock.sim.replay import periods_after
from penstock.sim.run import SimulationResult, settings_in, simulate
from penstock.sim.scenario import Scenario


def calibrated(history: Path, course: Course) -> Scenario:
    """The cluster and the costs that a run recorded, under the load as it was meant.

    What a row and a batch cost is of the warm run. That its first batches were cold, and how many
    executors it began with, belongs to the load's beginning, so both are of the whole run.
    """
    with HistoryStore(str(history), create=False) as store:
        number = store.latest_run()
        run, seen = store.runs()[number], store.read_observations(number)
        found = scenario_of(run, periods_after(run, seen), store.read_actions(number))
    (source,) = found.sources
    first = len(seen[0].nodes) or found.cluster.min_executors
    return replace(
        found,
        sources=(replace(source, profile=course.profile),),
        duration_s=course.profile.duration_s,
        batch=replace(found.batch, course=overhead_course(seen, found.batch)),
        cluster=replace(found.cluster, executors=first),
    )


def simulated(scenario: Scenario, mode: str, executors: int | None) -> SimulationResult:
    """A mode under that load: a fixed number of executors, or a policy."""
    if executors is None:
        settings = Settings(policy=mode)
        return simulate(scenario, policy_of(settings_in(scenario, settings)), settings=settings)
    fixed = replace(
        scenario.cluster, executors=executors, min_executors=executors, max_executors=executors
    )
    return simulate(replace(scenario, cluster=fixed), Static())


def in_part(result: SimulationResult, part: Part) -> tuple[float, float]:
    """Share in time of the rows that arrived in a part, and executor-seconds during it."""
    found = result.results
    arrived_s = found.at_s - found.latency_s
    here = (arrived_s >= part.begins_s) & (arrived_s < part.ends_s)
    rows = found.rows[here]
    kept = rows[found.latency_s[here] <= result.scenario.max_latency_s]
    ends_s = tuple(seen.at_s for seen in result.observations)
    counts = tuple(float(len(seen.nodes)) for seen in result.observations)
    return float(kept.sum() / rows.sum()), within(part, (0.0, *ends_s), counts)
