"""The error contract: one line on stderr, an exit code, no traceback unless asked for."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli import app
from penstock.cli.exit_codes import ExitCodeGroup
from penstock.cli.live import LiveView
from penstock.cli.output import tell
from penstock.control.step import Step
from penstock.errors import InvalidInput, Unavailable, documented, notes_of


def program(action: Callable[[], None]) -> typer.Typer:
    """A program of one command with the error contract, beside another so that it has a name."""
    made = typer.Typer(cls=ExitCodeGroup, pretty_exceptions_enable=False)
    made.command("act")(lambda: action())
    made.command("other")(lambda: None)
    return made


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InvalidInput("field is 3;\nit must be 4."), 2, "penstock: field is 3; it must be 4.\n"),
        (Unavailable("no Java."), 1, "penstock: no Java.\n"),
        (typer.BadParameter("not that"), 2, "not that. See root act --help.\n"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Exit(3), 3, ""),
        (OSError(28, "No space left on device"), 1, "No space left on device.\n"),
        (InvalidInput("bell \x07 and \x1b[31mred"), 2, "penstock: bell ? and ?[31mred\n"),
        (
            ZeroDivisionError("division by zero"),
            1,
            "penstock: internal error: ZeroDivisionError: division by zero (use --debug to see "
            "where)\n",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_trouble_is_at_most_one_line(
    error: BaseException, code: int, message: str
) -> None:
    result = CliRunner().invoke(program(raising(error)), ["act"])
    assert result.exit_code == code
    assert result.stderr.endswith(message)
    assert result.stderr.count("\n") == (1 if message else 0)
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [["--debug", "act"], ["act", "--debug"]])
def test_debug_shows_where_wherever_it_stands(arguments: list[str]) -> None:
    result = CliRunner().invoke(program(raising(ZeroDivisionError("x"))), arguments)
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("penstock: internal error: ZeroDivisionError: x\n")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("", ["nonsense"]), ("advise ", ["advise"]), ("advise ", ["advise", "scaling"]),
     ("history ", ["history", "--run", "x"]), ("", ["--nonsense"]),
     ("history ", ["history", "--show", "secrets"]),
     ("simulate ", ["simulate", "x.toml", "--seed", "-1"])],
)  # fmt: skip
def test_wrong_usage_is_one_line_with_whose_help_to_read(
    command: str, arguments: list[str]
) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith(f". See penstock {command}--help.\n")


def test_without_a_command_the_help_is_shown() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 2
    assert "advise" in result.output
    assert "penstock:" not in result.stderr


def commands(group: Any = None, above: str = "") -> list[str]:
    """All of them, those within groups too."""
    found: list[str] = []
    for name, one in (group or typer.main.get_command(app)).commands.items():
        found += [
            f"{above}{name}",
            *(commands(one, f"{name} ") if hasattr(one, "commands") else []),
        ]
    return sorted(found)


@pytest.mark.parametrize("command", commands())
def test_every_help_has_what_holds_for_all_and_ends_with_an_example(command: str) -> None:
    wide = {"COLUMNS": "300"}
    result = CliRunner().invoke(app, [*command.split(), "--quiet", "--help"], env=wide)
    assert result.exit_code == 0
    last = result.stdout.strip().splitlines()[-1].strip()
    assert last.startswith("Example: ")
    assert f"penstock {command}" in last
    assert "Exit codes: 0 success" in result.stdout
    assert "--quiet (the answer and errors only) and --debug" in result.stdout
    assert CliRunner().invoke(app, [*command.split(), "-h"], env=wide).stdout == result.stdout


ROAD = f"{Path(__file__).parents[2] / 'examples/linear_road.py'}:road"


def test_an_error_names_the_page_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, page in (
        (["history", "--history", ""], "options"),
        (["simulate", "x.toml", "--policy-option", "nonsense=1"], "scaling"),
        (["host", "--dry-run"], "host"),
        (["host", "--listen", "here"], "host"),
        (["submit", "nonsense"], "host"),
        (["run", ROAD, "--master", "yarm"], "clusters"),
        (["run", ROAD, "--apart", "--adapt-interval"], "last-resort"),
        (["run", ROAD, "--checkpoint", __file__], "operations"),
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2, result.stderr
        assert result.stderr.endswith(f" See penstock docs {page}.\n")
        assert CliRunner().invoke(app, ["docs", page]).stdout.startswith("# ")


def test_a_note_does_not_change_the_sentence() -> None:
    with pytest.raises(InvalidInput) as caught, documented("b"), documented("a"):
        raise InvalidInput("x is 3.")
    assert (str(caught.value), notes_of(caught.value)) == ("x is 3.", ("See penstock docs a.",))


@pytest.mark.parametrize("arguments", [["--quiet", "act"], ["act", "--quiet"], ["act"]])
def test_quiet_leaves_the_answer_and_errors(arguments: list[str]) -> None:
    def action() -> None:
        tell("half of it is done")
        LiveView("road", 5.0, None).step(Step(5.0))
        typer.echo("the answer")
        raise Unavailable("no Java.")

    result = CliRunner().invoke(program(action), arguments)
    assert result.stdout == "the answer\n"
    progress = result.stderr.removesuffix("penstock: no Java.\n")
    assert (progress == "") == ("--quiet" in arguments)
    assert progress != result.stderr


def completed(*words: str) -> list[str]:
    asking = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    environment = os.environ | asking | {"_PENSTOCK_COMPLETE": "complete_bash"}
    return run(env=environment).stdout.split()


def test_shells_complete_commands_options_and_names() -> None:
    assert completed("penstock", "hist") == ["history"]
    assert "--policy-option" in completed("penstock", "run", "--policy")
    assert completed("penstock", "run", "--policy", "d") == ["drs", "ds2"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_its_shell_reads(shell: str) -> None:
    script = CliRunner().invoke(app, ["completion", shell]).stdout
    assert "_PENSTOCK_COMPLETE" in script
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine to read it")
    read = subprocess.run(
        [shell, "-n"], input=script, capture_output=True, text=True, timeout=60, check=False
    )
    assert (read.returncode, read.stderr) == (0, "")


def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)


def test_python_m_penstock_is_the_command() -> None:
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("penstock ")


def test_help_needs_nothing_heavy() -> None:
    heavy = "{'pyspark', 'matplotlib', 'pandas', 'numpy', 'sqlalchemy', 'networkx', 'jsonschema'}"
    code = (
        "import sys, penstock.cli\n"
        "try:\n    penstock.cli.app(['--help'])\n"
        f"except SystemExit:\n    print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("size", [1, 20_000], ids=["within a buffer", "beyond it"])
def test_a_reader_that_leaves_early_causes_no_noise(size: int) -> None:
    code = (
        "from penstock.cli import app\n"
        f"app.command('spill')(lambda: print('word ' * 10 * {size}))\n"
        "app(['spill'])"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    noise = writer.stderr.read()
    writer.stderr.close()
    assert writer.wait(timeout=60) == 1
    assert noise == b""


def test_ctrl_c_ends_in_silence_with_130() -> None:
    code = (
        "import signal, threading\n"
        "from penstock.cli import app\n"
        # What is started in the background of a shell ignores it otherwise.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "app.command('wait')(lambda: (print('ready', flush=True), threading.Event().wait(60)))\n"
        "app(['wait'])"
    )
    waiting = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "ready\n"
    waiting.send_signal(signal.SIGINT)
    _, noise = waiting.communicate(timeout=60)
    assert (waiting.returncode, noise) == (130, "")
