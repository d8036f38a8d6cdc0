"""Windows before more state: which calls of Spark's reach the step."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd

from penstock.spark.windows.composed_step import ComposedStep
from penstock.spark.windows.pane_step import PaneStep

NOW = SimpleNamespace(getCurrentWatermarkInMs=lambda: 5_000)


class Opened:
    """Which buckets a step was called for."""

    def __init__(self) -> None:
        self.buckets: list[Any] = []

    def __call__(self, key: Any, rows: Any, _state: Any) -> Iterator[pd.DataFrame]:
        self.buckets.append(key)
        yield pd.DataFrame({"content": [b"windows"]})


def test_a_bucket_is_opened_once_in_a_batch_however_many_of_its_timers_expire() -> None:
    opened = Opened()
    step = ComposedStep(cast(PaneStep, opened))
    step.init(cast(Any, SimpleNamespace(getValueState=lambda *_: None)))
    assert len(list(step.handleInputRows((1,), iter(()), NOW))) == 1
    expired = [list(step.handleExpiredTimer((key,), NOW, None)) for key in (1, 2, 1, 2)]
    assert [len(frames) for frames in expired] == [0, 1, 0, 0]
    assert opened.buckets == [(1,), (2,)]
