"""scripts/first-run.sh counts what it types and refuses a run that was not elastic."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/first-run.sh"


def measured(folder: Path, demo_prints: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The script where git makes a folder and make prints what a demo would."""
    bodies = {"git": 'mkdir -p "$4"', "make": f"echo '{demo_prints}'; exit {code}"}
    for name, body in bodies.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "TMPDIR": str(folder)}
    return subprocess.run([SCRIPT], capture_output=True, text=True, env=environment, check=False)


def test_commands_and_minutes_are_told(tmp_path: Path) -> None:
    done = measured(tmp_path, "in time: 100%\n  17:17:19 executors 1 -> 2 (drs): late")
    assert done.returncode == 0, done.stderr
    assert "first-run: 2 commands, 0 min " in done.stdout
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("demo_prints", "code", "told"),
    [
        ("in time: 100%", 0, "without scaling out"),
        ("no Java", 1, "'make demo ARGS=--quiet' failed"),
    ],
)
def test_a_run_that_was_not_elastic_is_no_figure(
    tmp_path: Path, demo_prints: str, code: int, told: str
) -> None:
    done = measured(tmp_path, demo_prints, code)
    assert done.returncode == 1
    assert told in done.stderr
    assert "commands" not in done.stdout
