"""The how-tos, done as they are written: their files are saved, their commands typed in order."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from first_hour.newcomer import Newcomer, printed_commands
from penstock.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/how-to").glob("*.md"))
FILES = re.compile(r"`([\w.-]+)`:\n\n```\w+\n(.*?)```", re.S)
WITHOUT_SPARK = ("advise", "simulate", "history", "why")  # and quick; the rest is tried with --long
ANSWERS = {"plan": (0, 3)}  # a replay that is too far off is an answer


def codes(line: str) -> tuple[int, ...]:
    """The exit codes that a command may end with: those its comment names, or success."""
    named = re.search(r"# exit code (\d)", line)
    return (int(named[1]),) if named else ANSWERS.get(line.split()[1], (0,))


def without_spark(line: str) -> bool:
    return line.startswith("penstock ") and line.split()[1] in WITHOUT_SPARK


def with_its_files(page: Path, folder: Path) -> list[str]:
    """The commands of a page, in a folder that holds the files it says to save."""
    (folder / "examples").symlink_to(ROOT / "examples")
    for name, text in FILES.findall(page.read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")
    return printed_commands(page)


def test_there_are_how_tos() -> None:
    assert len(PAGES) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_without_spark_do_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = with_its_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    runs = " ".join(line for line in lines if line.startswith("penstock run "))
    recorded = set(re.findall(r"--history (\S+)", runs))  # there is none without Spark
    tried = [line for line in lines if without_spark(line) and not recorded & set(line.split())]
    assert tried
    said = ""
    for line in tried:
        done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        assert done.exit_code in codes(line), f"{line}\n{done.output}"
        said += done.output
    shown = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert [line for text in shown for line in text.splitlines() if line not in said] == []


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_runs_as_printed(page: Path, tmp_path: Path) -> None:
    reader = Newcomer(tmp_path)
    for line in with_its_files(page, tmp_path):
        done = reader.types(line)
        assert done.code in codes(line), line
        assert "Traceback" not in done.err
