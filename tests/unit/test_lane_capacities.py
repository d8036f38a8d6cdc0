"""Lanes are planned by what their tasks serve, and within the topology's bound."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.errors import InvalidInput, InvalidTopology
from penstock.forecast.named import forecaster_named
from penstock.model.observation import Floats, LaneObservation, Observation, SourceObservation
from penstock.model.sources import Admission, Streams
from penstock.spark.measure.lane_capacities import LaneCapacities
from penstock.spark.measure.service_estimate import Batch
from penstock.spark.sources.control import Controls
from penstock.spark.sources.settings import Limits, settings_of


class Fixed:
    """A forecaster of one's own."""

    def forecast(self, history: Floats, steps: tuple[int, ...]) -> Floats:
        return np.full((len(history), len(steps)), 7.0)


def streams(**options: Any) -> Streams:
    return Streams(files="in", schema="seq BIGINT", admission=Admission(**options))


def bound_s(max_latency_s: float | None, **options: Any) -> float:
    made = settings_of(streams(**options), "many", None, 0.0, max_latency_s)
    return made.limits.latency_bound_s


def test_the_bound_of_lanes_is_the_topologys_unless_another_is_given() -> None:
    assert (bound_s(20.0), bound_s(20.0, latency_bound="2s"), bound_s(None)) == (20.0, 2.0, 5.0)


def test_what_tasks_serve_becomes_the_capacity_of_a_lane(tmp_path: Path) -> None:
    sources: Any = {
        "learns": SimpleNamespace(learns_capacity=True),
        "knows": SimpleNamespace(learns_capacity=False),
    }
    lanes, controls = LaneCapacities(Controls(tmp_path), sources), Controls(tmp_path)
    lanes.tell()
    assert controls.of("learns").read().lane_capacity_per_s is None
    for rows in (400, 800, 1_200, 2_000, 3_000, 4_000, 6_000):  # 50 ms a task, 1 ms a row
        for source in ("learns", "knows", "counts"):
            lanes.learn(source, Batch(rows, 4, 4 * 0.05 + rows * 0.001))
    lanes.tell()
    assert controls.of("learns").read().lane_capacity_per_s == pytest.approx(1_000, rel=0.01)
    assert controls.of("knows").read().lane_capacity_per_s is None
    written = (tmp_path / "learns" / "control.json").stat().st_mtime_ns
    lanes.learn("learns", Batch(4_000, 4, 4.25))
    lanes.tell()
    assert (tmp_path / "learns" / "control.json").stat().st_mtime_ns == written, "as good as told"


def test_a_capacity_that_was_asked_for_wins_over_a_measured_one(tmp_path: Path) -> None:
    file = Controls(tmp_path).of("many")
    file.order(lane_capacity_per_s=700.0)
    assert file.read().applied(Limits(), learns_capacity=True).lane_capacity_per_s == 700
    assert file.read().applied(Limits(lane_capacity_per_s=5.0)).lane_capacity_per_s == 5
    file.order(limits={"lane_capacity_per_s": 9.0})
    assert file.read().applied(Limits(), learns_capacity=True).lane_capacity_per_s == 9
    assert settings_of(streams(), "many", None, 0.0).learns_capacity
    assert not settings_of(streams(lane_capacity=3), "many", None, 0.0).learns_capacity


def test_a_source_may_have_a_forecaster_of_its_own() -> None:
    own = forecaster_named(f"{__name__}:Fixed")
    assert own.forecast(np.zeros((1, 2)), (1,)).tolist() == [[7.0]]
    assert settings_of(streams(forecaster="last"), "many", None, 0.0).limits.forecaster == "last"
    with pytest.raises(InvalidTopology, match="strategy 'ard' forecasts nothing"):
        Admission(strategy="ard", forecaster="holt")
    for wrong in ("prophet", "no.such.module:Thing", f"{__name__}:Nothing", "pathlib:Path"):
        with pytest.raises(InvalidInput, match=r"allowed: holt, last|has no method forecast"):
            forecaster_named(wrong)


def test_what_sources_foresee_stands_beside_what_others_bring() -> None:
    lanes = (LaneObservation("lane-1", 3, 0, 60.0), LaneObservation("lane-2", 1, 0, 20.0))
    many = SourceObservation("many", 4, 0, 0, 0, 0, 0, lanes, (), (), 200.0, 10.0)
    young = SourceObservation("young", 0, 0, 0, 0, 0, 0)
    assert Observation(0.0, 5.0, 100.0, 0.0, sources=(many, young)).foreseen_rate_per_s == 220.0
    assert np.isnan(Observation(0.0, 5.0, 100.0, 0.0, sources=(young,)).foreseen_rate_per_s)
