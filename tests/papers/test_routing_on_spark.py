"""The claims made of what was measured on Spark; the measuring itself is stood in for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.routing.on_spark import dealing, lanes, r4, r5
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
    claim = r4.claim(NO_SESSION, tmp_path, [1, 2], 3, said.append)
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
    claim = r5.claim(NO_SESSION, tmp_path, [1, 2], 0.05, lambda _: None)
    assert claim.holds
    assert claim.numbers["latency_lower"][0] == [0.5, 0.0]
    assert claim.numbers["busy_deviation"]["zipf osg"][0] == 0.0
    assert claim.numbers["busy_deviation"]["zipf round-robin"][0] > 1.0
    assert (tmp_path / "routing-R5-spark.svg").exists()
