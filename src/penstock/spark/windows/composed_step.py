"""The stateful step of windows that another state follows in the same query.

Spark lets nothing stateful follow applyInPandasWithState, because it cannot know the event time of
what that emits. It can with transformWithState, whose output names a column of event time. The work
is that of `PaneStep`; only how it meets its state differs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.spark.windows import state_format
from penstock.spark.windows.pane_step import PaneStep

AT = "at"
OUTPUT = f"{AT} TIMESTAMP, {state_format.OUTPUT}"


class ComposedStep(StatefulProcessor):
    """Calls a pane step for each bucket that has rows or whose windows the watermark closes."""

    def __init__(self, step: PaneStep) -> None:
        self._step = step

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._value = handle.getValueState("panes", state_format.STATE)
        self._called: set[Any] = set()  # buckets of this task that have met this batch's watermark

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        self._called.add(key)
        return self._emitted(key, rows, timerValues)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,
    ) -> Iterator[pd.DataFrame]:
        # Spark keeps the timers of earlier batches beside the last, and calls for each of them.
        if key in self._called:
            return iter(())
        self._called.add(key)
        return self._emitted(key, iter(()), timerValues)

    def _emitted(
        self, key: Any, rows: Iterator[pd.DataFrame], timers: Any
    ) -> Iterator[pd.DataFrame]:
        watermark_ms = max(0, timers.getCurrentWatermarkInMs())
        state = _BucketState(self._handle, self._value, watermark_ms)
        for windows in self._step(key, rows, state):
            # Any time that Spark does not call late: those of the windows are in the bytes.
            yield windows.assign(**{AT: pd.Timestamp(watermark_ms, unit="ms")})[[AT, "content"]]


@dataclass
class _BucketState:
    """What a pane step expects of its state."""

    handle: StatefulProcessorHandle
    value: Any
    watermark_ms: int

    @property
    def exists(self) -> bool:
        return bool(self.value.exists())

    @property
    def get(self) -> Any:
        return self.value.get()

    def update(self, content: tuple[Any, ...]) -> None:
        self.value.update(content)

    def remove(self) -> None:
        self.value.clear()

    def getCurrentWatermarkMs(self) -> int:
        return self.watermark_ms

    def setTimeoutTimestamp(self, at_ms: int) -> None:
        self.handle.registerTimer(at_ms)
