"""What changes of executors really cost: learnt from each act, and set against what was foretold.

An act is over once its executors serve, or are gone, and one more period has passed, in which new
ones take their first tasks. Until then its pause is what batches took longer than before beside
their rows (their overhead, so that a load that grows meanwhile is not taken for one). Those that
leave take no cores, so only starts say what to expect. Where another act comes first, it ends
there.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from penstock.model.decision import ActPrice, RoomDecision
from penstock.model.observation import Observation

ROOM = "price"
REMEMBERED = 5  # acts; the slowest start-up of them is what to expect
_BEFORE = 12  # periods that say what a batch took before
_LONGEST = 60  # periods after which an act is over, whatever came of it


@dataclass
class _Act:
    """A change that is under way."""

    at_s: float
    before: int  # processors
    after: int
    foretold: ActPrice
    usual_s: float  # overhead of a batch before it; NaN where none ran
    pause_s: float = 0.0
    took_s: float | None = None  # until all served, or were gone
    periods: int = 0

    @property
    def more(self) -> bool:
        return self.after > self.before


@dataclass
class ActCosts:
    """Acts under way, and what the last ones came to."""

    slots: int
    policy: str = ""
    _open: deque[_Act] = field(default_factory=deque)
    _overheads_s: deque[float] = field(default_factory=lambda: deque(maxlen=_BEFORE))
    _started_s: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _drained_s: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _paused_s: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def expected(self) -> ActPrice:
        """The slowest and longest of the last start-ups, the middle of the last drains."""
        return ActPrice(
            max(self._started_s, default=None),
            max(self._paused_s, default=0.0),
            float(np.median(self._drained_s)) if self._drained_s else 0.0,
        )

    def asked(self, at_s: float, before: int, after: int) -> None:
        """So many processors are to serve, where there were some before."""
        usual_s = float(np.median(self._overheads_s)) if self._overheads_s else np.nan
        if before != after:
            self._open.append(_Act(at_s, before, after, self.expected, usual_s))

    def saw(self, observation: Observation) -> tuple[RoomDecision, ...]:
        """What acts cost that are over with this observation."""
        batches = observation.batches
        overhead_s = batches.mean_overhead_s if batches is not None and batches.count else np.nan
        settled = []
        while self._open and self._is_over(self._open[0], observation, overhead_s):
            settled.append(self._settle(self._open.popleft(), observation.at_s))
        if not self._open and np.isfinite(overhead_s):
            self._overheads_s.append(overhead_s)
        return tuple(settled)

    def _is_over(self, act: _Act, seen: Observation, overhead_s: float) -> bool:
        newer = self._open[1].after if len(self._open) > 1 else None
        if act.took_s is not None:
            over = True
        elif act.more and newer is not None and newer < act.after:
            over = True  # given up before it came
        else:
            there = sum(node.slots for node in seen.nodes)  # those being drained too
            done = seen.processors >= act.after if act.more else there <= act.after
            if done:
                act.took_s = max(0.0, seen.at_s - act.at_s)
            over = newer is not None and (done or not act.more)
        act.periods += 1
        if np.isfinite(overhead_s - act.usual_s):
            act.pause_s = max(act.pause_s, overhead_s - act.usual_s)
        return over or act.periods >= _LONGEST

    def _settle(self, act: _Act, at_s: float) -> RoomDecision:
        took_s = act.took_s
        if took_s is not None:
            (self._started_s if act.more else self._drained_s).append(took_s)
            if act.more:
                self._paused_s.append(act.pause_s)
        lasted_s = at_s - act.at_s if took_s is None else took_s
        paid = ActPrice(
            lasted_s if act.more else 0.0, act.pause_s, 0.0 if act.more else lasted_s
        )  # fmt: skip
        before, after = act.before // self.slots, act.after // self.slots
        foretold_s = act.foretold.executor_seconds(before, after)
        paid_s = paid.executor_seconds(before, after)
        what = (
            f"executors {before} -> {after} cost {paid_s:.3g} executor-seconds and a pause of "
            f"{act.pause_s:.2g} s; {foretold_s:.3g} and {act.foretold.pause_s:.2g} s were foretold"
        )
        numbers = {
            "acted_at_s": act.at_s, "executors_before": before, "executors_after": after,
            "foretold_executor_seconds": foretold_s, "foretold_pause_s": act.foretold.pause_s,
            "executor_seconds": paid_s, "pause_s": act.pause_s,
        }  # fmt: skip
        return RoomDecision(at_s, ROOM, self.policy, what, numbers)
