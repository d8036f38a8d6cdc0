"""AUTOSCALE+: one pass, the best of three trends, CPU under concurrency.

Kotto-Kombi 2018, ch. 6 s. 2.

    EstimInput = combine(EstimR, sum of the parents' EstimOutput) + pending           (1)
    UtilCPU = the least of its tasks' alpha max(used, reserved) + share of what is free   (3), (4)
    Capacity of a task = Delta / latency x UtilCPU                                   (5)
    idealK = EstimInput / Capacity; keep k while beta k <= idealK <= k               (6) to (8)
    otherwise the least k' with EstimInput <= k' Delta / latency x reservation x alpha   (9), (10)

Differs from Kotto-Kombi 2018, ch. 6 (5): that is one task's capacity; an operator's is that times
its tasks.
Differs from Kotto-Kombi 2018, ch. 6 (9): the bound is on k', not on the present k, and a scale-out
adds at least one task, where reservations alone would ask for none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from penstock.errors import InvalidInput
from penstock.forecast.trends import KINDS, best_trends
from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.activity import COMBINE, check_combine, expected_rows
from penstock.scaling.exploration import upstream_first
from penstock.scaling.plans import hold
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.suggestions import Suggestion, grown_plan, pooled_plan
from penstock.scaling.windows import OperatorWindows, operator_windows

_BY_TREND = tuple(f"{kind} trend" for kind in KINDS)


def usable_cpu(used: float, reserved: float, others_used: Sequence[float], alpha: float) -> float:
    """Share of a CPU one task can use beside the others on it (3).

    Differs from Kotto-Kombi 2018, ch. 6 (3): at most the whole CPU, and all of it for a task that
    is alone.

    >>> round(usable_cpu(0.5, 0.4, [0.4], alpha=0.3), 2)
    0.75
    """
    left = max(0.0, 1.0 - sum(others_used)) / max(1, len(others_used))
    return min(1.0, max(1e-6, alpha * max(used, reserved) + left))


@dataclass(frozen=True)
class AutoscalePlus:
    """Resource-aware preventive scaling.

    `alpha` is the margin kept on CPU (the paper's experiments take 0.3), `beta` the lower end of
    the working interval, `cpu_reservation` what each task has reserved of its CPU.
    """

    looks_ahead: ClassVar[bool] = True  # it fits a trend to the window by itself

    combine: str = option(
        "max", "Of an operator's own estimate and its upstreams', the higher or the lower.",
        choices=COMBINE,
    )  # fmt: skip
    window_s: float = option(
        90.0, "How far it looks back, and for how long it plans.", least=0.1, greatest=86_400
    )
    grace_s: float = option(
        0.0, "How long after a change it changes nothing.", least=0.001, greatest=86_400, off=0.0
    )
    alpha: float = option(
        0.8, "Share of a CPU that it plans to use; the rest is kept free.", least=0.01, greatest=1
    )
    beta: float = option(
        0.8, "Share of the present processors below which the ideal number must fall before it "
        "scales in.", least=0, greatest=1,
    )  # fmt: skip
    cpu_reservation: float = option(
        1.0, "Share of a CPU that is reserved for each task.", least=0.01, greatest=1
    )
    max_degree: int | None = option(
        None, "Most processors of one operator.", least=1, greatest=1_000_000, off=None
    )

    def __post_init__(self) -> None:
        check_combine(self.combine)
        if not self.window_s > 0:
            raise InvalidInput(f"window_s is {self.window_s:g}; it must be above 0.")
        for field, value in (("alpha", self.alpha), ("cpu_reservation", self.cpu_reservation)):
            if not 0 < value <= 1:
                raise InvalidInput(f"{field} is {value:g}; allowed: 0 < {field} <= 1.")
        if not 0 <= self.beta <= 1:
            raise InvalidInput(f"beta is {self.beta:g}; allowed: 0 <= beta <= 1.")

    @property
    def name(self) -> str:
        return "autoscale_plus"

    @property
    def monitored_s(self) -> float:
        """The monitoring window, which has to exceed those of operators."""
        return self.window_s

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """Degrees for the next iteration of the window."""
        if self.grace_s > 0 and context.in_force_s < self.grace_s:
            return hold(context, f"no change yet: within {self.grace_s:g} s of the last one")
        windows = operator_windows(context, self.window_s, self.max_degree)
        if windows is None:
            return hold(context, "no measurement yet")
        if context.sharing == "space":
            return grown_plan(context, self.suggest(windows))
        suggestions = self.suggest(_waiting_at_sources(windows))
        # Shared in time, a slot runs one task at a time: nobody competes for it within the query.
        load = sum(suggestion.load for suggestion in suggestions)
        current = max(1, context.current.processors)
        wanted = self._degree(
            current,
            load,
            load / (self.alpha * self.cpu_reservation),
            all(windows.known),
            int(windows.max_parallelism.min()),
        )
        return pooled_plan(context, wanted, load, f"ideal is {load:.3g} processors")

    def _reserved(self, windows: OperatorWindows) -> list[float]:
        """ResCPU of each operator: as declared for it, or for all."""
        declared = windows.reserved_cpu
        found: list[float] = np.where(declared > 0, declared, self.cpu_reservation).tolist()
        return found

    def _usable(self, windows: OperatorWindows, reserved: Sequence[float]) -> list[float]:
        """UtilCPU of each operator: that of the task which can use least (4)."""
        return [
            min([usable_cpu(t.used, own, t.others_used, self.alpha) for t in tasks])
            if tasks
            else 1.0
            for tasks, own in zip(windows.cpu, reserved, strict=True)
        ]

    def suggest(self, windows: OperatorWindows) -> list[Suggestion]:
        """One pass from the sources on; what a parent emits counts with its new degree."""
        trends = best_trends(windows.received_rows)
        received = expected_rows(trends).tolist()
        latency = windows.service_time_s.mean(axis=1)
        with np.errstate(divide="ignore", over="ignore"):
            whole = (windows.duration_s / latency).tolist()
        reserved_cpu = self._reserved(windows)
        share, pending = self._usable(windows, reserved_cpu), windows.pending_rows.tolist()
        running = windows.parallelism.tolist()
        most, kind = windows.max_parallelism.tolist(), trends.kind.tolist()
        found: list[Suggestion | None] = [None] * windows.size
        processed = [math.nan] * windows.size
        highest = self.combine == "max"
        for i in upstream_first(windows.upstreams):
            rows, why = received[i], _BY_TREND[kind[i]]
            if windows.upstreams[i]:
                upstream = 0.0
                for up, sent in zip(windows.upstreams[i], windows.selectivity[i], strict=True):
                    upstream += processed[up] * sent
                # Within a loop a parent may still be unknown.
                if upstream > rows if highest else upstream < rows:
                    rows, why = upstream, "what its upstreams will emit"
            rows += pending[i]
            task = whole[i] * share[i]
            planned = whole[i] * reserved_cpu[i] * self.alpha
            ideal, reserved = (rows / task, rows / planned) if rows > 0 else (0.0, 0.0)
            wanted = self._degree(running[i], ideal, reserved, windows.known[i], most[i])
            level, rises = ideal / running[i], trends.rises[i]
            found[i] = Suggestion(
                windows.names[i], running[i], wanted, level, rows, task, rises, why
            )
            processed[i] = min(rows, task * max(wanted, running[i]))
        return [suggestion for suggestion in found if suggestion is not None]

    def _degree(self, current: int, ideal: float, reserved: float, known: bool, most: int) -> int:
        """The working interval (8), and the new degree (9) outside it."""
        if self.beta * current <= ideal <= current:
            return current
        wanted = most if reserved >= most else max(1, math.ceil(reserved - 1e-9))
        if ideal > current:  # reservations may say that there is enough, but use says there is not
            return max(wanted, min(current + 1, most), current)
        # Fewer only where that is what follows: the margin may ask for as many as there are.
        return wanted if known and wanted < current else current


def _waiting_at_sources(windows: OperatorWindows) -> OperatorWindows:
    """Shared in time, rows wait only for the first operators: (1) passes them on from there."""
    first = np.array([not parents for parents in windows.upstreams])
    if not first.any():  # a loop that nothing leads into
        return windows
    return replace(windows, pending_rows=np.where(first, windows.pending_rows, 0.0))
