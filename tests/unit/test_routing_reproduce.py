"""The claims run in seconds on a small scale and leave their figures behind."""

from pathlib import Path

from experiments.routing import run
from experiments.routing.osg import task_run


def test_every_claim_is_answered_with_a_figure(tmp_path: Path) -> None:
    claims = {claim.id: claim for claim in run(tmp_path, seeds=[0, 1], quick=True)}
    assert list(claims) == ["R1", "R2", "R3", "R4", "R5"]
    for claim in claims.values():
        assert claim.holds or claim.reason
        assert {Path(name).suffix for name in claim.figures} == {".png", ".svg"}
        for name in claim.figures:
            assert (tmp_path / name).stat().st_size > 1000
    assert {name: claim.where for name, claim in claims.items()} == {
        "R1": "sim", "R2": "sim", "R3": "sim", "R4": "pure", "R5": "sim",
    }  # fmt: skip
    assert claims["R2"].numbers["default"]["1.5 K=100"][0] < 0.2
    assert claims["R2"].numbers["default"]["1.5 K=0"][0] > 1
    assert claims["R3"].numbers["ours_moved"][0] < claims["R3"].numbers["plain_moved"][0] / 2


def test_osg_keeps_tasks_evener_than_round_robin() -> None:
    for skewed in (False, True):
        osg = task_run(5, skewed, "osg", shrink=0.3)
        robin = task_run(5, skewed, "round-robin", shrink=0.3)
        assert osg.cpu_deviation < robin.cpu_deviation
        assert osg.pending_rows < robin.pending_rows
        assert osg.latency_after_s < robin.latency_after_s
