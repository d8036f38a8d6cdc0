"""What reinforcement learning knows of one application: the worth of a degree at an input rate.

Input rates fall into bins of equal ratio (state), parallelism degrees are actions. The load is not
the learner's doing, so a value is the mean reward of its pair, approached by

    Q <- Q + step (reward - Q),   reward = 1 - cost x degree / largest degree  when it kept up
                                  reward = -1                                  when it did not
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.errors import InvalidInput
from penstock.model.observation import Observation

WHOLE = ""  # the name under which processors shared in time are learnt


@dataclass(frozen=True)
class Sample:
    """One experience: at this rate, with this degree, the component kept up or not."""

    component: str
    rate_per_s: float
    degree: int
    kept_up: bool


@dataclass(frozen=True)
class Knowledge:
    """Values by (component, bin of rate, degree)."""

    values: Mapping[tuple[str, int, int], float] = field(default_factory=dict)
    bin_ratio: float = 1.25
    step: float = 0.3
    cost: float = 0.5

    def __post_init__(self) -> None:
        if not self.bin_ratio > 1:
            raise InvalidInput(f"bin_ratio is {self.bin_ratio:g}; it must be above 1.")

    def bin(self, rate_per_s: float) -> int:
        """The state of a rate; rates below one row a second share the lowest."""
        return max(0, math.ceil(math.log(max(rate_per_s, 1.0), self.bin_ratio) - 1e-9))

    def learnt(self, samples: Iterable[Sample]) -> "Knowledge":
        """With these experiences, in their order."""
        found = list(samples)
        values = dict(self.values)
        largest = max([key[2] for key in values] + [sample.degree for sample in found], default=1)
        for sample in found:
            if not (math.isfinite(sample.rate_per_s) and sample.degree > 0):
                continue
            reward = 1.0 - self.cost * sample.degree / largest if sample.kept_up else -1.0
            key = (sample.component, self.bin(sample.rate_per_s), sample.degree)
            before = values.get(key)
            values[key] = reward if before is None else before + self.step * (reward - before)
        return Knowledge(values, self.bin_ratio, self.step, self.cost)

    def best_degree(self, component: str, rate_per_s: float) -> int | None:
        """The most valued degree for a rate, of the nearest bin at or above it.

        Above all that was learnt, the highest bin answers; None where nothing keeps up or
        nothing was learnt.
        """
        state = self.bin(rate_per_s)
        worth: dict[int, list[tuple[float, int]]] = {}
        for (name, bin_, degree), value in self.values.items():
            if name == component and value > 0:
                worth.setdefault(bin_, []).append((value, -degree))
        if not worth:
            return None
        above = [bin_ for bin_ in worth if bin_ >= state]
        chosen = min(above) if above else max(worth)
        return -max(worth[chosen])[1]


def samples_of(
    observations: Iterable[Observation], max_latency_s: float, shared: bool
) -> list[Sample]:
    """Experiences of a run: a period is kept up with when its rows did not pile up or run late."""
    found = []
    for observation in observations:
        if observation.foreseen:
            continue  # at that rate nothing was lived through yet
        late = observation.latency is not None and observation.latency.mean_s > max_latency_s
        if shared:
            allowed = observation.arrival_rate_per_s * max_latency_s
            kept_up = not late and observation.backlog_rows <= allowed
            rate = observation.arrival_rate_per_s
            found.append(Sample(WHOLE, rate, observation.processors, kept_up))
            continue
        for component in observation.components:
            allowed = component.arrival_rate_per_s * max_latency_s
            kept_up = component.backlog_rows <= allowed
            rate = component.arrival_rate_per_s
            found.append(Sample(component.name, rate, component.parallelism, kept_up))
    return found
