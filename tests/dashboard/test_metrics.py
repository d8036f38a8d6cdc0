"""Metrics for Prometheus, and a Grafana dashboard that names no other."""

import json
import math
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from contract.fakes import rich_observation
from dashboard.histories import RUN, make
from penstock.cli import app
from penstock.control.history.store import HistoryStore
from penstock.dashboard.metrics import FAMILIES, exposition


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels.pop("run") == "1"
            assert sample.labels.pop("topology") == RUN.topology
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_the_newest_period_is_exposed(tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    with store:
        found = samples(exposition(store).decode())
    assert found["penstock_arrival_rate_rows_per_second", ()] == 103.5
    assert found["penstock_forecast_rate_rows_per_second", ()] == 123.25
    assert found["penstock_latency_p95_seconds", ()] == 1.875
    assert found["penstock_latency_share_seconds", ()] == 2.125
    assert found["penstock_promised_share_ratio", ()] == 0.99
    assert found["penstock_latency_bound_seconds", ()] == 2.0
    assert found["penstock_executors", ()] == 2
    assert found["penstock_executor_busy_ratio", (("executor", "1"),)] == 0.4
    assert found["penstock_component_parallelism", (("component", "speeds"),)] == 4
    assert found["penstock_key_group_load_imbalance_ratio", (("component", "speeds"),)] == 2.0
    decided = (("policy", "incremental"), ("shadow", "false"))
    assert found["penstock_decisions_total", decided] == 3
    assert found["penstock_actions_total", (("action", "executors"), ("done", "true"))] == 3
    assert found["penstock_loop_failures_total", (("stage", "view"),)] == 3
    assert found["penstock_run_active", ()] == 1
    assert found["penstock_lanes", (("source", "reports"),)] == 1
    assert found["penstock_streams", (("source", "reports"), ("state", "live"))] == 7


def test_runs_that_ended_are_not_listed_beside_one_that_goes_on(tmp_path: Path) -> None:
    def listed() -> list[str]:
        return re.findall(r'penstock_run_active\{.*?run="(\d+)"', exposition(store).decode())

    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        ended, _killed, alive = (
            store.begin(replace(RUN, started_at_s=at_s)) for at_s in (10.0, 20.0, 50_000.0)
        )
        ended.end(15.0)
        assert listed() == [str(alive.run_id)]
        alive.end(50_010.0)
        assert listed() == [str(alive.run_id)]  # the newest one, where none goes on


def test_what_was_not_measured_is_left_out(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        assert samples(exposition(store).decode()) == {}
        run = store.begin(replace(RUN, share=None))
        seen = rich_observation()
        assert seen.latency is not None
        run.observed(replace(seen, latency=replace(seen.latency, share_s=math.nan)))
        run.flush()
        found = samples(exposition(store).decode())
    assert ("penstock_backlog_rows", ()) not in found
    for name in ("latency_p95_seconds", "latency_share_seconds", "promised_share_ratio"):
        assert (f"penstock_{name}", ()) not in found
    assert found["penstock_latency_mean_seconds", ()] == 0.7


def test_every_metric_has_help_and_a_unit_in_its_name(tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    with store:
        text = exposition(store).decode()
    counted = (
        "executors",
        "executors_limit",
        "processors",
        "component_parallelism",
        "run_active",
        "lanes",
        "streams",
    )
    units = ("_seconds", "_rows", "_ratio", "_per_second")
    for family in FAMILIES:
        name = family.name + ("_total" if family.counter else "")
        assert f"# HELP {name} {family.help}" in text
        plain = family.name.removeprefix("penstock_") in counted
        assert plain or family.counter or family.name.endswith(units), family.name


def test_the_grafana_file_names_only_metrics_there_are() -> None:
    text = (files("penstock.dashboard") / "grafana.json").read_text(encoding="utf-8")
    named = set(re.findall(r"\bpenstock_\w+", text))
    known = {family.name + ("_total" if family.counter else "") for family in FAMILIES}
    assert named <= known
    assert len(named) > 15
    printed = CliRunner().invoke(app, ["dashboard", "--grafana"])
    assert json.loads(printed.stdout)["title"] == "Penstock"
