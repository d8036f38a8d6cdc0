"""Demands of many periods at once are those that each period has by itself."""

import math
from dataclasses import replace

import numpy as np
import pytest

from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import BatchObservation, ComponentObservation, Observation
from penstock.scaling.demand import component_names, demands
from penstock.scaling.demand_series import demand_series
from penstock.scaling.policies.policy import ScalingContext


def random_window(rng: np.random.Generator, sharing: str) -> ScalingContext:
    """Periods of which some are idle, some without a finished batch, some with gaps."""
    window = []
    for at in range(8):
        idle, ended = rng.random() < 0.2, rng.random() < 0.7
        rate = 0.0 if idle else float(rng.uniform(1.0, 100.0))
        components = tuple(
            ComponentObservation(
                name, (name,),
                math.nan if sharing == "time" and not ended and not idle else rate * visits,
                math.nan if rng.random() < 0.2 else float(rng.uniform(0.001, 0.1)),
                int(rng.integers(1, 5)), 1.0,
                backlog_rows=float(rng.integers(0, 50)), arrival_scv=float(rng.uniform(-1, 3)),
            )
            for name, visits in (("b", 1.0), ("a", 2.0), ("c", 0.5))
            if rng.random() < 0.95
        )  # fmt: skip
        count = int(ended and not idle)
        batches = BatchObservation(count, 1.0, 0.2, 40.0) if rng.random() < 0.8 else None
        backlog = 0.0 if idle else float(rng.integers(0, 900))
        window.append(
            Observation(
                5.0 * at, 5.0, rate, backlog, components=components,
                batches=batches if sharing == "time" else None,
            )
        )  # fmt: skip
    plan = ScalingPlan({"a": 2, "b": 2, "c": 2}, 6)
    return ScalingContext(tuple(window), plan, Limits(1, 20, 5.0), sharing=sharing)  # type: ignore[arg-type]


@pytest.mark.parametrize("sharing", ["time", "space"])
@pytest.mark.parametrize("seed", range(40))
def test_each_column_is_what_its_period_said(seed: int, sharing: str) -> None:
    context = random_window(np.random.default_rng(seed), sharing)
    names = component_names(context)
    series = demand_series(context, names, 5)
    assert series.periods == context.window[-5:]
    for column, end in enumerate(range(4, 9)):
        by_itself = demands(replace(context, window=context.window[:end]))
        for row, demand in enumerate(by_itself):
            assert demand.name == names[row]
            assert _same(series.arrival_rate_per_s[row, column], demand.arrival_rate_per_s)
            if math.isfinite(demand.rate_per_s):
                assert _same(series.backlog_rate_per_s[row, column], demand.backlog_rate_per_s)
                assert _same(series.service_time_s[row, column], demand.service_time_s) or (
                    demand.rate_per_s == 0  # then it does not matter
                )
            if sharing == "space":  # batches have no use for it
                assert series.arrival_scv[row, column] == demand.arrival_scv
        known = all(demand.known for demand in by_itself)
        assert bool(series.known[column]) == known


def _same(left: float, right: float) -> bool:
    return left == pytest.approx(right, nan_ok=True)
