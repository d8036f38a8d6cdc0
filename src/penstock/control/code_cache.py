"""Whether a JVM compiles Spark's generated code anew in every batch, and what would do.

Spark keeps the newest classes, 100 unless a setting says otherwise. Queries whose plans need more
forget each class before its turn comes again. The setting is read once, when a JVM starts to
compile, so this is advice.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.control.ports import Measurer
from penstock.model.compiled import Compiled
from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation

ROOM = "generated code"
POLICY = "cache"
PERIODS = 6  # in each of which batches ended and compiled, before anything is said
# What compares rows with the watermark may be new in each batch, two classes for each operator with
# state, and no cache has it: about one class in a warm batch of Nexmark's eight side by side.
LEAST_CLASSES = 10
LEAST_SHARE = 0.1  # of the time of batches

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Period:
    """Batches that ended, and what was compiled meanwhile."""

    batches: int
    duration_s: float
    compiled: Compiled

    @property
    def classes(self) -> float:
        """In a batch."""
        return self.compiled.classes / self.batches

    @property
    def share(self) -> float:
        """Of the time of batches; of several threads, so it may exceed 1."""
        return self.compiled.time_s / self.duration_s if self.duration_s > 0 else 0.0


def advise_code_cache(
    periods: Sequence[Period], at_s: float, entries: int, enough: int
) -> RoomDecision | None:
    """Room for more classes, if too little was seen to cost something in every period."""
    newest = periods[-PERIODS:]
    if entries >= enough or len(newest) < PERIODS:
        return None
    if min(p.classes for p in newest) < LEAST_CLASSES or min(p.share for p in newest) < LEAST_SHARE:
        return None
    batches = sum(period.batches for period in newest)
    classes = sum(period.compiled.classes for period in newest) / batches
    time_s = sum(period.compiled.time_s for period in newest) / batches
    what = (
        f"the driver's JVM compiles {classes:.0f} classes again in every batch, {time_s:.2g} s of "
        f"work, because Spark keeps no more than {entries} of them"
    )
    numbers = {"entries": entries, "enough": enough, "classes": classes, "cost_s": time_s}
    return RoomDecision(at_s, ROOM, POLICY, what, numbers)


class CodeCacheAdvice:
    """A measurer that adds the advice to what another one observed, once."""

    def __init__(
        self,
        measurer: Measurer,
        compiled: Callable[[], Compiled | None],
        entries: int,
        enough: int,
        setting: str,
    ) -> None:
        """`compiled` says what the JVM has compiled since it began; None where it cannot tell."""
        self._measurer, self._compiled = measurer, compiled
        self._entries, self._enough, self._setting = entries, enough, setting
        self._periods: deque[Period] = deque(maxlen=PERIODS)
        self._before: Compiled | None = None
        self._said = entries >= enough

    def observe(self) -> Observation | None:
        """The observation, with the advice among what was decided since the one before."""
        seen = self._measurer.observe()
        if seen is None or self._said:
            return seen
        made = self._looked_at(seen)
        if made is None:
            return seen
        self._said = True
        log.warning(
            "%s; build the session with %s=%d (penstock.session_settings() has it) in a new "
            "program.", made.what, self._setting, self._enough,
        )  # fmt: skip
        return replace(seen, decided=(*seen.decided, made))

    def _looked_at(self, seen: Observation) -> RoomDecision | None:
        batches = seen.batches
        if batches is None or not batches.count:
            return None  # what is compiled now counts with the batch that ends later
        now = self._compiled()
        if now is None:
            return None
        if self._before is not None:
            duration_s = batches.count * batches.mean_duration_s
            self._periods.append(Period(batches.count, duration_s, now - self._before))
        self._before = now
        return advise_code_cache(tuple(self._periods), seen.at_s, self._entries, self._enough)
