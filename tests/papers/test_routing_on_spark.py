"""The claims made of what was measured on Spark; the measuring itself is stood in for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.routing.on_spark import dealing, lanes, panes, r1, r4, r5
from experiments.routing.on_spark.dealing import DealtRun, Phase
from experiments.routing.on_spark.lanes import LaneCost
from penstock.model.route import Route

NO_SESSION: Any = None  # nothing that is not stood in for asks for one


@pytest.mark.parametrize(("extra", "holds"), [(0.03, True), (0.10, False)])
def test_r4_compares_with_the_baseline_of_each_route(
    extra: float, holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def costs(_: Any, routes: Sequence[Route], *__: Any, **___: Any) -> list[LaneCost]:
        assert [route.method in ("hash", "panes") for route in routes] == [True, False]
        plain = LaneCost(np.array([500.0, 480.0]), 1.5)
        return [plain, LaneCost(np.array([900.0, 480.0 * (1 + extra)]), 0.1)]

    monkeypatch.setattr(lanes, "lane_costs", costs)
    said: list[str] = []
    claim = r4.judge(NO_SESSION, tmp_path, [1, 2], 3, said.append)
    assert claim.where == "spark"
    assert claim.holds == holds  # 10% is too much for panes
    assert claim.numbers["extra"]["rate-aware panes"][0] == pytest.approx(extra)
    assert len(said) == 6
    assert (tmp_path / "routing-R4-spark.png").exists()


def test_r5_sees_even_tasks_and_shorter_latency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(
        _: Any, method: str, __: float, ___: int, phases: Sequence[Phase], *____: Any
    ) -> DealtRun:
        end_s = sum(phase.duration_s for phase in phases)
        arrival_s = np.linspace(0.0, end_s, 100, endpoint=False)
        latency_s = np.full(100, 1.0 if method == "osg" else 2.0)
        task = np.arange(8)
        busy_s = np.full(8, 1.0) if method == "osg" else np.linspace(0.2, 1.8, 8)
        return DealtRun(arrival_s, latency_s, np.zeros(8, np.int64), task, np.zeros(8), busy_s)

    monkeypatch.setattr(dealing, "dealt_run", run)
    claim = r5.judge(NO_SESSION, tmp_path, [1, 2], 0.05, lambda _: None)
    assert claim.holds
    assert claim.numbers["latency_lower"][0] == [0.5, 0.0]
    assert claim.numbers["busy_deviation"]["zipf osg"][0] == 0.0
    assert claim.numbers["busy_deviation"]["zipf round-robin"][0] > 1.0
    assert (tmp_path / "routing-R5-spark.svg").exists()


def test_r1_compares_what_tasks_are_dealt_over_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loads(_: Any, method: str, seed: int, seconds: int) -> np.ndarray[Any, Any]:
        if method == "rate-aware-panes":
            return np.ones((seconds, 16))
        dealt = np.zeros((seconds, 16))
        second = np.arange(seconds)
        dealt[second, second % 16] = np.where(second % 16 == seed, 5.0, 1.0)
        return dealt

    monkeypatch.setattr(panes, "pane_loads", loads)
    claim = r1.judge(NO_SESSION, tmp_path, [1, 2], 120, lambda _: None)
    assert claim.numbers["rate_aware"] == [0.0, 0.0]
    assert claim.numbers["plain"][0] == pytest.approx(np.std([1] * 15 + [5]) / 1.25)
    assert "not so: plain about 60%" in claim.reason
    assert (tmp_path / "routing-R1-spark.png").exists()
