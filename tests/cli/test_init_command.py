"""`penstock init`: what it writes is a project whose checks pass and that runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.cli.init import FILES
from penstock.config.sources import from_file
from penstock.control.resolved_settings import resolved_settings
from penstock.spark.compile.topology_file import load_topology


def init(*words: str) -> Any:
    return CliRunner().invoke(app, ["init", *words])


def test_the_project_is_whole_and_its_pure_tests_pass(tmp_path: Path) -> None:
    made = tmp_path / "my-stream"
    result = init(str(made))
    assert (result.exit_code, result.stderr) == (0, "")
    assert sorted(path.name for path in made.iterdir()) == sorted(FILES)
    topology = load_topology(f"{made / 'pipeline.py'}:topology")
    assert topology.name == "my-stream"
    assert resolved_settings(from_file(made / "penstock.toml")).executors_max == 3
    assert not any("@NAME@" in (made / file).read_text(encoding="utf-8") for file in FILES)
    tests = pytested(made, "-k", "not spark")
    assert tests.returncode == 0, tests.stdout
    assert "2 passed, 1 deselected" in tests.stdout


def pytested(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_makefile_and_the_readme_name_commands_that_exist(tmp_path: Path) -> None:
    init(str(tmp_path / "x"), "--name", "trips")
    text = (tmp_path / "x" / "Makefile").read_text(encoding="utf-8")
    text += (tmp_path / "x" / "README.md").read_text(encoding="utf-8")
    typed = {line.split()[1] for line in text.splitlines() if line.strip().startswith("penstock ")}
    assert typed == {"run", "why", "dashboard", "doctor"}
    for command in typed:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
    dry = subprocess.run(
        ["make", "-n", "setup", "run", "check", "test", "why", "page"], cwd=tmp_path / "x",
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (dry.returncode, dry.stderr) == (0, "")
    # What comes with penstock has no pytest: it is installed before it is used, and said so.
    assert dry.stdout.index("pip install pytest") < dry.stdout.index("-m pytest")
    assert text.index("make setup        # installs pytest") < text.rindex("make test")


def test_nothing_is_overwritten_and_names_are_checked(tmp_path: Path) -> None:
    assert init(str(tmp_path / "a")).exit_code == 0
    (tmp_path / "a" / "pipeline.py").write_text("mine", encoding="utf-8")
    again = init(str(tmp_path / "a"))
    assert again.exit_code == 2
    assert (
        again.stderr
        == f"penstock: {tmp_path / 'a'} holds pipeline.py already; give another folder.\n"
    )
    assert (tmp_path / "a" / "pipeline.py").read_text(encoding="utf-8") == "mine"
    wrong = init(str(tmp_path / "b"), "--name", 'x"; import os')
    assert (wrong.exit_code, (tmp_path / "b").exists()) == (2, False)
    told = json.loads(init(str(tmp_path / "c"), "--json").stdout)
    assert (told["topology"], tuple(told["files"])) == ("c", FILES)


@pytest.mark.long
@pytest.mark.spark
def test_the_project_runs_and_its_spark_test_passes(tmp_path: Path) -> None:
    assert init(str(tmp_path / "demo")).exit_code == 0
    tests = pytested(tmp_path / "demo")
    assert tests.returncode == 0, tests.stdout
    command = [sys.executable, "-m", "penstock", "run", "pipeline.py:topology", "--json"]
    ran = subprocess.run(
        [*command, "--master", "embedded", "--for", "4m"], cwd=tmp_path / "demo",
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["results"] > 0
    assert list((tmp_path / "demo" / "out" / "means").rglob("*.parquet"))
