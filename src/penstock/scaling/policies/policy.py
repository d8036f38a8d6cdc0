"""What every scaling policy is given, and the form of its answer."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from penstock.model.component_columns import PARALLELISM
from penstock.model.decision import UNKNOWN_PRICE, ActPrice, Decision, Limits, ScalingPlan
from penstock.model.observation import Observation


@dataclass(frozen=True)
class ScalingContext:
    """Everything a policy may look at; it has no clock and no other memory.

    `edges` joins components by name, upstream first. Processors shared in "time" belong to all
    components at once (one query); shared in "space", each component has its own.
    """

    window: tuple[Observation, ...]  # oldest first; the last one is the newest
    current: ScalingPlan
    limits: Limits
    edges: tuple[tuple[str, str], ...] = ()
    sharing: Literal["time", "space"] = "time"
    act_price: ActPrice = UNKNOWN_PRICE  # of a change of executors, as the last ones cost
    changed_at_s: float | None = None  # when `current` came into force; None: look in the window

    @property
    def newest(self) -> Observation | None:
        """The latest observation, if there is any."""
        return self.window[-1] if self.window else None

    @cached_property
    def last_change_s(self) -> float:
        """When the current plan came into force: as recorded, else as seen in the window.

        Shared in space, processors may move between components while their number stays: only the
        window shows that, so the later of both counts.
        """
        known_s = self.changed_at_s
        if known_s is not None and self.sharing == "time":
            return known_s
        for earlier, later in zip(self.window[-2::-1], self.window[::-1], strict=False):
            if _processors(earlier) != _processors(later) or self._moved(earlier, later):
                return max(later.at_s - later.period_s, -math.inf if known_s is None else known_s)
        return -math.inf if known_s is None else known_s

    def _moved(self, earlier: Observation, later: Observation) -> bool:
        """Whether a component has other processors of its own; one not measured says nothing."""
        if self.sharing == "time":
            return False
        if earlier.columns.names == later.columns.names:
            ran, runs = earlier.columns.table[PARALLELISM], later.columns.table[PARALLELISM]
            return not np.array_equal(ran, runs)
        before = {component.name: component.parallelism for component in earlier.components}
        return any(before.get(c.name, c.parallelism) != c.parallelism for c in later.components)

    @property
    def in_force_s(self) -> float:
        """For how long the current plan has been in force; infinite when it never changed."""
        return math.inf if self.newest is None else self.newest.at_s - self.last_change_s


def _processors(observation: Observation) -> int:
    """Processors that were there: of the nodes, or else of the components."""
    if observation.nodes:
        return observation.processors
    return sum(component.parallelism for component in observation.components)


def monitored_s(policy: "ScalingPolicy") -> float:
    """For how long a policy must see operators at once; infinite where it does not matter to it."""
    return float(getattr(policy, "monitored_s", math.inf))


class ScalingPolicy(Protocol):
    """Suggests processors; bounds, cooldowns and steps are the guards' business.

    One that looks ahead by itself is shown what was measured, the others what is foreseen. One
    that wants to see more observations than a run keeps says how many in `window_periods`; one
    that would go astray on parts of the windows that operators compute over has `monitored_s`.
    """

    @property
    def looks_ahead(self) -> bool:
        """Whether it fits a trend to the window by itself."""

    @property
    def name(self) -> str:
        """The name by which it is chosen on the command line."""

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """A plan for the next period, with its reasons."""
