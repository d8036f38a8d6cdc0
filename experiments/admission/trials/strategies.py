"""The runs behind claims A1 to A4: every strategy on every workload, over seeds and rules."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from experiments.admission.trials.lanes import AS_JUDGED, Course, Rules, simulate
from experiments.admission.workloads.streams import WORKLOADS, stream_workload
from experiments.statistics import Spread, spread
from penstock.admission.registry import STRATEGIES
from penstock.model.observation import Floats

STREAMS = 80
LOAD_LEVEL = 10  # lanes the mean load fills
PERIODS, QUICK_PERIODS = 132, 42
ORDER = ("drf-m", "drf", "ard", "ari", "par")  # as the paper has it, the best first
MEASURES = ("redirected", "buffered_rows", "delay_s", "above_fewest", "late_share", "room_kept")
UNDRAINED = "no lane drained"
RULES = {
    "judged": AS_JUDGED,
    UNDRAINED: Rules(drain_below=None),
    "queues alone count": Rules(overload_by="queue"),
}


@dataclass(frozen=True)
class Outcomes:
    """Means over a run's periods: (rules, workloads, strategies, measures, seeds)."""

    values: Floats

    def of(self, measure: str, workload: str, strategy: str, rules: str = "judged") -> Floats:
        """One value a seed."""
        found: Floats = self.values[
            list(RULES).index(rules),
            list(WORKLOADS).index(workload),
            ORDER.index(strategy),
            MEASURES.index(measure),
        ]
        return found

    def spread(self, measure: str, workload: str, strategy: str, rules: str = "judged") -> Spread:
        """Over the seeds."""
        return spread(self.of(measure, workload, strategy, rules))

    def mean(self, measure: str, workload: str, strategy: str, rules: str = "judged") -> float:
        """Over the seeds."""
        return self.spread(measure, workload, strategy, rules).mean

    def moved_rate_per_s(self, workload: str, strategy: str) -> float:
        """Mean rate of the streams that were redirected, weighed by how long they were held."""
        rows, delay_s = (self.mean(m, workload, strategy) for m in ("buffered_rows", "delay_s"))
        return rows / delay_s if delay_s > 0 else 0.0

    def table(self, measure: str, rules: str = "judged") -> dict[str, dict[str, list[float]]]:
        """Mean and standard deviation over the seeds, by workload and strategy."""
        return {
            workload: {
                strategy: [
                    round(value, 4)
                    for value in self.spread(measure, workload, strategy, rules).pair
                ]
                for strategy in ORDER
            }
            for workload in WORKLOADS
        }


@cache
def outcomes(seeds: tuple[int, ...], quick: bool) -> Outcomes:
    """All runs of A1 to A4; the same arrivals for every strategy."""
    shape = (len(RULES), len(WORKLOADS), len(ORDER), len(MEASURES), len(seeds))
    values = np.empty(shape)
    periods = QUICK_PERIODS if quick else PERIODS
    for column, seed in enumerate(seeds):
        for row, name in enumerate(WORKLOADS):
            rng = np.random.default_rng([seed, row])
            workload = stream_workload(name, rng, STREAMS, periods)
            capacity = workload.mean_total_per_s / LOAD_LEVEL
            for place, strategy in enumerate(ORDER):
                for layer, rules in enumerate(RULES.values()):
                    # PAR looks at nothing the rules are about.
                    if strategy == "par" and layer:
                        values[layer, row, place, :, column] = values[0, row, place, :, column]
                        continue
                    course = simulate(workload, STRATEGIES[strategy], capacity, rules=rules)
                    values[layer, row, place, :, column] = _measured(course)
    return Outcomes(values)


def _measured(course: Course) -> list[float]:
    return [
        float(np.mean(course.redirected)),
        float(np.mean(course.buffered_rows)),
        float(np.mean(course.delay_s)),
        float(np.sum(course.lanes) / np.sum(course.fewest_lanes) - 1.0),
        float(np.mean(course.late_share)),
        float(np.sum(course.believed_per_s) / np.sum(course.arrived_per_s) - 1.0),
    ]
