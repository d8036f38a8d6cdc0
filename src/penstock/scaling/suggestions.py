"""What a policy of Kotto-Kombi 2018 suggests for each operator, and the plan that follows."""

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.activity import NOTHING, SCALE_IN, SCALE_OUT
from penstock.scaling.plans import change, load_in_words, separate_plan, shared_plan
from penstock.scaling.policies.policy import ScalingContext


class Suggestion(NamedTuple):
    """One operator: from which degree to which, because of which estimate.

    A tuple, as thousands are made for one decision and a dataclass takes several times as long.
    """

    name: str
    current: int
    wanted: int
    level: float
    rows: float  # expected in the next iteration of the window
    capacity: float  # rows one task can process in it
    rises: bool
    why: str

    @property
    def action(self) -> int:
        """Scale in, nothing, or scale out."""
        if self.wanted == self.current:
            return NOTHING
        return SCALE_OUT if self.wanted > self.current else SCALE_IN

    @property
    def load(self) -> float:
        """Processors that the expected rows keep busy."""
        return self.rows / self.capacity if self.rows > 0 else 0.0

    def processed(self, tasks: int) -> float:
        """Rows it will process with that many tasks (8)."""
        return min(self.rows, self.capacity * tasks)

    def changed(self, wanted: int, why: str) -> "Suggestion":
        """The same estimate with another outcome."""
        return self._replace(wanted=wanted, why=why)

    def line(self, given: int) -> str:
        """For a person."""
        numbers = f"activity level {self.level:.3g} by {self.why}"
        because = load_in_words(self.current, self.wanted)
        return change(self.name, self.current, given, because, numbers)


def grown_plan(context: ScalingContext, suggestions: Sequence[Suggestion]) -> Decision[ScalingPlan]:
    """Each operator's own processors; the highest activity first when they run out."""
    wanted = {suggestion.name: suggestion.wanted for suggestion in suggestions}
    urgency = {suggestion.name: suggestion.level for suggestion in suggestions}
    plan = separate_plan(context, wanted, urgency)
    lines = tuple(
        suggestion.line(plan.parallelism[suggestion.name])
        for suggestion in sorted(suggestions, key=itemgetter(0))
    )
    most = context.limits.max_processors
    if plan.processors < most:
        return Decision(plan, lines)
    need = sum(math.floor(min(suggestion.load, 1e9)) + 1 for suggestion in suggestions)
    sentence = f"what is expected needs more processors than are allowed ({need} of {most})"
    return Decision(plan, lines, sentence if need > most else None)


def pooled_plan(
    context: ScalingContext, wanted: int, load: float, numbers: str
) -> Decision[ScalingPlan]:
    """Processors shared in time, within the limits."""
    plan = shared_plan(context, wanted)
    before = max(1, context.current.processors)
    because = load_in_words(before, wanted)
    line = change("processors", before, plan.processors, because, numbers)
    most = context.limits.max_processors
    sentence = None
    if load >= most:
        sentence = (
            f"what is expected needs more than the {most} processors allowed (load {load:.3g})"
        )
    return Decision(plan, (line,), sentence)
