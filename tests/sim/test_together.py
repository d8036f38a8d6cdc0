"""Several scenarios on one simulated cluster, beside a fixed equal part for each."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.config import Settings
from penstock.errors import InvalidInput
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.sim.together import simulate_apart, simulate_together
from penstock.workloads.profiles import constant, steps

SECOND_HALF = [(90, 1), (90, 9)]
FIRST_HALF = [(90, 9), (90, 1)]


def scenario(called: str, busy: list[tuple[int, int]], **changes: object) -> Scenario:
    """Nearly idle in one half, and 2.7 processors busy in the other."""
    base = Scenario(
        called, 180.0, 6.0,
        (SourceSpec("rows", steps(busy)),),
        (OperatorSpec("work", (Upstream("rows"),), ServiceTime("deterministic", 0.3)),),
        ClusterSpec(2, 1, 6, startup_s=5.0),
        batch=BatchCost(0.3, 0.02),
        seed=len(called),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def test_loads_out_of_phase_need_fewer_together() -> None:
    two = [scenario("early", FIRST_HALF), scenario("late", SECOND_HALF)]
    shared = simulate_together(two, 8)
    fixed = simulate_apart(two, 8)
    assert [part.scenario.name for part in shared.parts] == ["early", "late"]
    assert shared.executor_seconds < 0.95 * fixed.executor_seconds
    for part in shared.parts:
        assert part.in_time_share > 0.7  # each load jumps at once
        assert part.arrived_rows == part.results.count + part.held_rows
    for change in shared.changes:
        assert sum(change.decision.plan.processors.values()) <= 8
        assert min(change.decision.plan.processors.values()) >= 1


def test_where_there_is_too_little_weight_decides() -> None:
    rate = constant(10.0)  # 3 processors busy each, of 5 in all
    sources = (SourceSpec("rows", rate),)
    heavy, light = (
        scenario(name, FIRST_HALF, sources=sources, weight=weight, duration_s=120.0)
        for name, weight in (("heavy", 2.0), ("light", 1.0))
    )
    shared = simulate_together([light, heavy], 5)
    part = {part.scenario.name: part for part in shared.parts}
    assert part["heavy"].in_time_share > 0.6 > 0.5 > part["light"].in_time_share
    last = shared.changes[-1].decision
    assert last.infeasible is not None
    assert list(last.plan.missed) == ["light"]
    assert last.plan.processors == {"heavy": 4, "light": 1}
    assert len(shared.changes) < 8  # no see-saw


def test_the_same_each_time() -> None:
    two = [scenario(name, FIRST_HALF, duration_s=60.0) for name in ("early", "late")]
    once, again = simulate_together(two, 6), simulate_together(two, 6)
    assert once.executor_seconds == again.executor_seconds
    assert once.changes == again.changes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "early"}, "scenario 'early' is given twice; names must differ."),
        ({"period_s": 2.0}, "scenario.period is 2 in scenario 'late' and 5 in 'early'; on one"),
        ({"cluster": ClusterSpec(2, 1, 6, 2)}, "cluster.slots is 2 in scenario 'late' and 1"),
        ({"cluster": ClusterSpec(2, 1, 6, startup_s=5.0, key_groups=4)}, "scenario 'late' has"),
    ],
)  # fmt: skip
def test_scenarios_that_cannot_share_are_refused(
    changes: dict[str, object], sentence: str
) -> None:  # fmt: skip
    two = [scenario("early", FIRST_HALF), scenario("late", SECOND_HALF, **changes)]
    with pytest.raises(InvalidInput) as refused:
        simulate_together(two, 8, Settings())
    assert str(refused.value).startswith(sentence)


FILE = """
[scenario]
name = "{name}"
duration = "40s"
max_latency = "5s"
[[source]]
name = "reports"
rate = {{ profile = "constant", rate_per_s = 5 }}
[[operator]]
name = "lookup"
from = ["reports"]
service = {{ mean = "160ms" }}
"""


def test_the_command_shows_both(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.toml"
        path.write_text(FILE.format(name=name), encoding="utf-8")
        files.append(str(path))
    result = CliRunner().invoke(app, ["simulate", *files, "--executors", "4", "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    answer = json.loads(result.stdout)
    assert [one["scenario"] for one in answer["topologies"]] == ["a", "b"]
    assert answer["equal_parts"]["executor_seconds"] == pytest.approx(160.0)
    shown = CliRunner().invoke(app, ["simulate", *files])
    assert shown.stdout.splitlines()[-1].startswith("2 scenarios under promise on up to 8 executor")
    for extra, sentence in (
        (["--executors", "1"], "--executors is 1; the scenarios have min_executors of 2 in all."),
        (["--history", str(tmp_path / "h.db")], "--history and --shadow are for one scenario"),
    ):
        refused = CliRunner().invoke(app, ["simulate", *files, *extra])
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"penstock: {sentence}")
    alone = CliRunner().invoke(app, ["simulate", files[0], "--executors", "3"])
    assert alone.exit_code == 2
