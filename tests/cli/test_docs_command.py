"""`penstock docs`: the pages that errors name can be read where the package is installed."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import app

ROOT = Path(__file__).parents[2]


def test_every_page_is_listed_with_its_title() -> None:
    listed = json.loads(CliRunner().invoke(app, ["docs", "--json"]).stdout)
    assert listed["attach"] == "Attached queries"
    assert len(listed) == len(list((ROOT / "docs").rglob("*.md"))) - 1  # the API is for the site
    lines = CliRunner().invoke(app, ["docs"]).stdout.splitlines()
    assert "how-to/one-hot-key  One key is hot" in lines


@pytest.mark.parametrize("name", ["attach", "attach.md", "docs/attach.md"])
def test_a_page_is_printed_as_it_is_written(name: str) -> None:
    printed = CliRunner().invoke(app, ["docs", name]).stdout
    assert printed == (ROOT / "docs/attach.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["nonsense", "../README", "/etc/passwd"])
def test_what_is_no_page_is_refused(name: str) -> None:
    done = CliRunner().invoke(app, ["docs", name])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"penstock: there is no page '{name}'; `penstock docs` lists them.\n"


def in_a_terminal(**environment: str) -> str:
    """What a pager is given that says how less would show it, with the page itself."""
    outer, inner = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name != "LESS"}
    pager = {"TERM": "xterm-256color", "PAGER": "sh -c 'echo less is $LESS; cat'"}
    reader = subprocess.Popen(
        [sys.executable, "-m", "penstock", "docs", "attach"],
        stdin=inner, stdout=inner, env=known | pager | environment,
    )  # fmt: skip
    os.close(inner)
    parts = []
    try:
        while part := os.read(outer, 65_536):
            parts.append(part)
    except OSError:  # Linux says so where a terminal has no writer any more
        pass
    os.close(outer)
    assert reader.wait(60) == 0
    return b"".join(parts).decode()


def test_a_pager_is_told_to_draw_colours_or_gets_none() -> None:
    shown = in_a_terminal()
    assert "less is FRX" in shown
    assert "\x1b[" in shown
    mine = in_a_terminal(LESS="-iM")
    assert "less is -iM" in mine
    assert "\x1b[" not in mine
    assert "Attached queries" in mine
