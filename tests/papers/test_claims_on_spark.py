"""Claims made of what was measured on Spark; the measuring itself is stood in for."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.admission.on_spark import a1, a2, a5
from experiments.admission.on_spark.race import Lap, Race
from experiments.admission.on_spark.whole import Outcome
from experiments.admission.workloads.streams import WORKLOADS
from experiments.allocation.on_spark import l3, l6
from experiments.allocation.on_spark.rounds import Course
from experiments.claim import Claim
from experiments.drs.on_spark import d2
from experiments.drs.on_spark.apart import Estimates, Found, Trial
from penstock.scaling.models.correction import Correction


def lap(moved: int, late_s: float, lanes: int) -> Lap:
    return Lap([10 * moved] * 2, [late_s] * 2, [lanes] * 2, [0, moved], [(5, 1.0 + late_s)])


def outcome(share: float, executor_s: float) -> Outcome:
    return Outcome(share, executor_s, [1, 2, 4], [2, 3, 4], 5)


def race(**laps: Lap) -> Race:
    return Race(laps, 1.0, 0, 2)


def answered(claim: Claim, folder: Path) -> None:
    assert claim.where == "spark"
    assert claim.holds == all(claim.numbers["parts"].values())
    for name in claim.figures:
        assert (folder / name).stat().st_size > 1_000
    json.dumps(claim.as_json(), allow_nan=False)


def test_strategies_are_compared_on_every_workload(tmp_path: Path) -> None:
    one = race(drf_m=lap(1, 0.0, 4), ard=lap(2, 0.1, 4), par=lap(60, 0.2, 4))
    races = {name: [one] for name in WORKLOADS}
    for claim in (a1.judge(races, tmp_path), a2.judge(races)):
        answered(claim, tmp_path)
        assert claim.holds
    worse = {
        **races,
        "bursty": [race(drf_m=lap(3, 0.0, 4), ard=lap(2, 0.1, 4), par=one.laps["par"])],
    }
    failed = a1.judge(worse, tmp_path)
    assert "not so: bursty: drf-m <= ard." in failed.reason


def test_static_lanes_are_early_and_many(tmp_path: Path) -> None:
    rising = race(drf_m=lap(1, 0.5, 3), ard=lap(1, 6.0, 3), static=lap(0, 0.0, 8))
    whole = {"drf-m": outcome(0.99, 200.0), "ard": outcome(0.9, 190.0)}
    claim = a5.judge([rising], [{**whole, "static 4": outcome(1.0, 400.0)}], tmp_path)
    answered(claim, tmp_path)
    assert claim.holds
    assert claim.numbers["whole"]["drf-m"]["executor_s"] == 200.0
    worse = a5.judge([rising], [{**whole, "static 4": outcome(0.95, 400.0)}], tmp_path)
    assert "not so: with executors: static keeps most in time." in worse.reason
    assert claim.numbers["late_share"] == {"drf-m": 0.0, "ard": 1.0, "static": 0.0}


@pytest.mark.parametrize(
    ("measured_s", "holds"), [((1.0, 2.0, 3.0), True), ((2.0, 3.0, 1.0), False)]
)
def test_allocations_are_ordered_as_estimated(
    measured_s: tuple[float, ...], holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = tuple(Trial((5, 5, 1), latency_s, (0.3, 0.4, 0.01)) for latency_s in measured_s)
    mmk, hops = (
        Estimates(model, (0.1, 0.2, 0.3), Correction(0.5, 2.0, 0.1, 3)) for model in ("mmk", "hops")
    )
    found = Found(trials, mmk, hops, (0.3, 0.4, 0.01))
    monkeypatch.setattr(d2, "measure", lambda *_: found)
    claim = d2.claim(tmp_path, (1,), quick=True)
    answered(claim, tmp_path)
    assert claim.holds == holds


def test_placements_are_compared_round_by_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: Any) -> None:
        """Stands in for what moves key groups and waits for batches."""

    trial = SimpleNamespace(
        nodes=lambda: ["1", "2", "3"], place=nothing, batches=nothing,
        placement=SimpleNamespace(components={"a": None}),
    )  # fmt: skip
    for module in (l3, l6):
        monkeypatch.setattr(module, "Trial", lambda *_: nullcontext(trial))
        monkeypatch.setattr(
            module, "course", lambda *_: Course([3.0, 1.2, 1.1], [0.0, 60.0, 100.0], [2, 2, 0])
        )
        claim = module.claim(tmp_path, (1,), quick=True)
        answered(claim, tmp_path)
        assert claim.holds
