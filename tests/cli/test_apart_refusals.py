"""What components that run apart cannot do is refused, not passed over."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.app import app

TOPOLOGY = """
from penstock import Generator, Memory, Topology, constant

made = Topology("made", max_latency="5s")
made.source("rows", Generator(constant(10.0), rows=10))
made.add("all", "SELECT * FROM rows", "rows")
made.sink("out", "all", Memory())
"""


def test_what_cannot_be_carried_out_apart_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.py").write_text(TOPOLOGY)
    words = ["run", "made.py:made", "--apart", "--plan", "plan.json", "--apply"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "apply is set, but components are to run apart" in done.stderr
    assert done.stderr.count("\n") == 1
