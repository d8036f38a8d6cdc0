"""`python -m experiments NAME`: a paper's experiments, and which of its claims hold here."""

import sys

import typer

from experiments.command import reproduce
from penstock.cli.exit_codes import ExitCodeGroup

app = typer.Typer(
    name="experiments",
    cls=ExitCodeGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("reproduce", epilog="Example: python -m experiments drs --seeds 5 --json")(reproduce)


@app.callback()
def experiments() -> None:
    """The experiments of the papers behind Penstock's decisions."""


def main() -> None:
    """The entry point; ends the process with the exit code."""
    app(prog_name="python -m experiments", args=["reproduce", *sys.argv[1:]])


if __name__ == "__main__":
    main()
