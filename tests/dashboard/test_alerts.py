"""The alert rules and the Grafana dashboard, read by Prometheus itself and by Grafana's types."""

import copy
import importlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashboard.promtool import promtool_program
from penstock.cli import app
from penstock.dashboard.metrics import FAMILIES

RULES = (files("penstock.dashboard") / "alerts.yaml").read_text(encoding="utf-8")
DASHBOARD = json.loads((files("penstock.dashboard") / "grafana.json").read_text(encoding="utf-8"))
RUN = '{run="1", topology="road"}'


def test_the_rules_name_only_metrics_and_pages_there_are() -> None:
    named = set(re.findall(r"\bpenstock_\w+", RULES))
    assert named <= {family.name + ("_total" if family.counter else "") for family in FAMILIES}
    assert len(re.findall(r"- alert: Penstock\w+\n", RULES)) == RULES.count("summary: ") == 8
    root = Path(__file__).parents[2]
    assert all((root / page).is_file() for page in re.findall(r"docs/[\w-]+\.md", RULES))
    commands = set(re.findall(r"penstock ([a-z]+)", RULES)) - {"dashboard"}
    for command in commands:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
    assert CliRunner().invoke(app, ["dashboard", "--alerts"]).stdout == RULES
    assert CliRunner().invoke(app, ["dashboard", "--alerts", "--grafana"]).exit_code == 2


Promtool = Callable[..., None]


@pytest.fixture
def promtool(tmp_path: Path, request: pytest.FixtureRequest) -> Promtool:
    """promtool in a folder; what it refuses fails the test."""
    cache = request.config.cache
    assert cache is not None
    program = promtool_program(cache.mkdir("promtool"))

    def run(*words: str) -> None:
        done = subprocess.run(
            [program, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return run


def test_prometheus_reads_the_rules(tmp_path: Path, promtool: Promtool) -> None:
    (tmp_path / "alerts.yaml").write_text(RULES, encoding="utf-8")
    promtool("check", "rules", "alerts.yaml")


def test_prometheus_reads_every_query_of_the_dashboard(tmp_path: Path, promtool: Promtool) -> None:
    queries = [
        target["expr"].replace("$run", "1")
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", [])
    ]
    assert len(queries) > 20
    rules = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(queries)]
    document = {"groups": [{"name": "dashboard", "rules": rules}]}
    (tmp_path / "queries.yaml").write_text(json.dumps(document), encoding="utf-8")
    promtool("check", "rules", "--lint=none", "queries.yaml")


def test_grafanas_own_types_lose_nothing_of_the_dashboard() -> None:
    sdk = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    plugins = importlib.import_module("grafana_foundation_sdk.cog.plugins")
    encoder = importlib.import_module("grafana_foundation_sdk.cog.encoder")
    plugins.register_default_plugins()
    read = sdk.Dashboard.from_json(copy.deepcopy(DASHBOARD))
    assert list(lost(DASHBOARD, json.loads(encoder.JSONEncoder().encode(read)))) == []


def lost(written: Any, read: Any, path: str = "") -> Iterator[str]:
    """What Grafana's types do not know or take for something else; they may add defaults."""
    if isinstance(written, dict):
        for key, value in written.items():
            if not isinstance(read, dict) or key not in read:
                yield f"{path}/{key}"
            else:
                yield from lost(value, read[key], f"{path}/{key}")
    elif isinstance(written, list):
        for number, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from lost(one, other, f"{path}/{number}")
    elif written != read:
        yield f"{path}: {written!r} became {read!r}"


def test_what_grafanas_types_do_not_know_would_be_found() -> None:
    assert list(lost({"a": [1, {"b": 2, "c": 3}]}, {"a": [1, {"b": 5}]})) == [
        "/a/1/b: 2 became 5", "/a/1/c",
    ]  # fmt: skip


def series(name: str, values: str) -> dict[str, str]:
    labels = RUN if "{" not in name else ""
    return {"series": f"penstock_{name}{labels}", "values": values}


CASES: dict[str, list[dict[str, str]]] = {
    "PenstockPromiseBroken": [series("results_in_time_ratio", "0.9x40")],
    "PenstockNoMoreExecutors": [
        series("latency_p95_seconds", "7x40"), series("latency_bound_seconds", "5x40"),
        series("executors", "4x40"),
        series('executors_limit{run="1", topology="road", limit="max"}', "4x40"),
    ],
    "PenstockFallsBehind": [
        series("backlog_rows", "9000+100x40"), series("latency_bound_seconds", "5x40"),
        series("arrival_rate_rows_per_second", "100x40"),
    ],
    "PenstockSilent": [
        series("observed_timestamp_seconds", "0x40"), series("run_active", "1x40"),
    ],
    "PenstockLoopFails": [
        series('loop_failures_total{run="1", topology="road", stage="policy"}', "0+1x40"),
    ],
    "PenstockActsFail": [
        series('actions_total{run="1", topology="road", action="a", done="false"}', "0+1x40"),
    ],
    "PenstockStreamsSuspended": [
        series('streams{run="1", topology="road", source="trips", state="suspended"}', "2x40"),
    ],
    "PenstockHotKeyGroup": [
        series('key_group_load_imbalance_ratio{run="1", topology="road", component="c"}', "6x40"),
        series("load_ratio", "0.8x40"),
    ],
}  # fmt: skip


def test_each_alert_fires_when_it_should_and_none_when_all_is_well(
    tmp_path: Path, promtool: Promtool
) -> None:
    (tmp_path / "alerts.yaml").write_text(RULES, encoding="utf-8")
    calm = [
        series("results_in_time_ratio", "1x40"), series("latency_p95_seconds", "3x40"),
        series("latency_bound_seconds", "5x40"), series("executors", "4x40"),
        series('executors_limit{run="1", topology="road", limit="max"}', "4x40"),
        series("backlog_rows", "100x40"), series("arrival_rate_rows_per_second", "100x40"),
        series("observed_timestamp_seconds", "0+60x40"), series("run_active", "1x40"),
        series("load_ratio", "0.8x40"),
    ]  # fmt: skip
    tests = [_case(inputs, {name: True}) for name, inputs in CASES.items()]
    # Where the share is measured, it and no other quantile says whether results are late.
    full = CASES["PenstockNoMoreExecutors"]
    for p95, share, late in (("3x40", "7x40", True), ("7x40", "3x40", False)):
        told = [series("latency_p95_seconds", p95), series("latency_share_seconds", share)]
        tests.append(_case([*told, *full[1:]], {"PenstockNoMoreExecutors": late}))
    tests.append(_case(calm, dict.fromkeys(CASES, False)))
    document = {"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
    promtool("test", "rules", "tests.yaml")


def _case(inputs: list[dict[str, str]], fires: dict[str, bool]) -> dict[str, Any]:
    counted = [
        {
            "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)',
            "eval_time": "30m",
            "exp_samples": [{"labels": "{}", "value": int(wanted)}],
        }
        for name, wanted in fires.items()
    ]
    return {"interval": "1m", "input_series": inputs, "promql_expr_test": counted}
