"""The alert rules: Prometheus reads them, and they fire when they should."""

import json
import os
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.dashboard.metrics import FAMILIES

PROMTOOL = os.environ.get("PENSTOCK_PROMTOOL") or shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="no promtool (apt-get install prometheus, or set PENSTOCK_PROMTOOL)"
)
RULES = (files("penstock.dashboard") / "alerts.yaml").read_text(encoding="utf-8")
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


def promtool(folder: Path, *words: str) -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_reads_the_rules(tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").write_text(RULES, encoding="utf-8")
    promtool(tmp_path, "check", "rules", "alerts.yaml")


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


@needs_promtool
def test_each_alert_fires_when_it_should_and_none_when_all_is_well(tmp_path: Path) -> None:
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
    tests.append(_case(calm, dict.fromkeys(CASES, False)))
    document = {"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
    promtool(tmp_path, "test", "rules", "tests.yaml")


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
