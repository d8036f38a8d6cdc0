"""The commands of `penstock` and where each is defined.

A command's file is imported to print `--help`, so what it needs (Spark, a database, a plot) is
imported inside its function, never at the top of the file.
"""

import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer

from penstock.cli.advise import advise, schema
from penstock.cli.arena import arena
from penstock.cli.cluster import cluster
from penstock.cli.completion import completion
from penstock.cli.dashboard import dashboard
from penstock.cli.demo import demo
from penstock.cli.docs import docs
from penstock.cli.doctor import doctor
from penstock.cli.exit_codes import ExitCodeGroup, with_exit_codes
from penstock.cli.history import app as history
from penstock.cli.host import community, host, logs, ps, restart, results, stop, submit
from penstock.cli.init import init
from penstock.cli.key_groups import key_groups
from penstock.cli.plan import plan
from penstock.cli.plan_graph import plan_graph
from penstock.cli.prepare import prepare
from penstock.cli.run import run
from penstock.cli.simulate import simulate
from penstock.cli.top import top
from penstock.cli.train import train
from penstock.cli.why import why

app: Final = typer.Typer(
    name="penstock",
    cls=ExitCodeGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: penstock demo. The documentation: penstock docs.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"penstock {version('penstock')}")
        raise typer.Exit


@app.callback()
def penstock(
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; may come anywhere in the command.")
    ] = False,
    _quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", help="Print the answer and errors only, no progress; may come anywhere."
        ),
    ] = False,
    _shown: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Keep PySpark streams within a latency bound, with as few executors as that takes."""


BEGIN, LOOK, TRY, HOST, CARE = (
    "Begin", "Look at a run", "Try decisions without Spark", "Many topologies on one cluster",
    "Machine and state",
)  # fmt: skip
COMMANDS: Final[dict[str, tuple[tuple[Callable[..., Any], str], ...]]] = {
    BEGIN: (
        (demo, "demo --out runs/demo"),
        (init, "init my-stream"),
        (run, "run road.py:road --master embedded --for 2m"),
        (docs, "docs attach"),
        (doctor, "doctor --spark"),
    ),
    LOOK: (
        (why, "why --at 14:05:30 --history runs/demo/history.sqlite"),
        (top, "top --history runs/demo/history.sqlite"),
        (dashboard, "dashboard --history runs/demo/history.sqlite"),
        (plan, "plan --history runs/demo/history.sqlite --rate x2"),
    ),
    TRY: (
        (simulate, "simulate road.toml --policy incremental --seed 7"),
        (arena, "arena road.toml --policies promise,ds2 --plot a.png"),
        (train, "train road.toml --for road --history history.db"),
        (advise, "advise scaling load.json"),
        (schema, "schema scaling > scaling.schema.json"),
        (plan_graph, "plan-graph road.py:road --plan auto --out road.svg"),
    ),
    HOST: (
        (host, "host --executors-max 4"),
        (submit, "submit road.py:road --max-latency 5s --weight 2"),
        (ps, "ps --json"),
        (stop, "stop road"),
        (restart, "restart road"),
        (logs, "logs road"),
        (results, "results road --rows 5"),
        (community, "community finance --least 1 --most 4 --add ada"),
    ),
    CARE: (
        (key_groups, "key-groups runs/road/checkpoint 32"),
        (prepare, "prepare --anew"),
        (completion, "completion bash >> ~/.bashrc"),
    ),
}
app.add_typer(history, rich_help_panel=LOOK)
app.add_typer(cluster, rich_help_panel=CARE)
for panel, commands in COMMANDS.items():
    for function, example in commands:
        name = example.split()[0]
        app.command(name, epilog=f"Example: penstock {example}", rich_help_panel=panel)(function)
with_exit_codes(app)


def main() -> None:
    """The entry point; ends the process with the exit code."""
    app(prog_name="penstock", args=sys.argv[1:])
