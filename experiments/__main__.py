"""The entry point of `python -m experiments NAME`."""

import sys

import typer

from experiments.command import reproduce
from penstock.cli.exit_codes import ExitCodeGroup

# A group of one command, as the exit codes belong to the group. The command is named like the
# package, so that the usage line says what is typed: `python -m experiments`.
COMMAND = "experiments"
app = typer.Typer(
    cls=ExitCodeGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(COMMAND, epilog="Example: python -m experiments drs --seeds 5 --json")(reproduce)


@app.callback()
def group() -> None:
    """The experiments of the papers behind Penstock's decisions."""


def main() -> None:
    """The entry point; ends the process with the exit code."""
    app(prog_name="python -m", args=[COMMAND, *sys.argv[1:]])


if __name__ == "__main__":
    main()
