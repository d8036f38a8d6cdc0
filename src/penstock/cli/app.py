"""The commands of `penstock` and where each is defined.

A command's file is imported to print `--help`, so what it needs (Spark, a database, a plot) is
imported inside its function, never at the top of the file.
"""

import sys
from importlib.metadata import version
from typing import Annotated, Final

import typer

from penstock.cli.advise import advise, schema
from penstock.cli.arena import arena
from penstock.cli.cluster import cluster
from penstock.cli.completion import completion
from penstock.cli.dashboard import dashboard
from penstock.cli.demo import demo
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
    epilog="Example: penstock advise scaling load.json",
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
            "--quiet", help="Only the answer and errors, no progress; may come anywhere too."
        ),
    ] = False,
    _shown: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Keep a latency promise on Apache Spark streams with as few executors as possible."""


app.command(epilog="Example: penstock demo --out runs/demo")(demo)
app.command(epilog="Example: penstock init my-stream")(init)
app.command(epilog="Example: penstock run road.py:road --master embedded --for 2m")(run)
app.command(epilog="Example: penstock advise scaling load.json")(advise)
app.command(epilog="Example: penstock schema scaling > scaling.schema.json")(schema)
app.command(epilog="Example: penstock dashboard --history runs/demo/history.sqlite")(dashboard)
app.command(epilog="Example: penstock simulate road.toml --policy incremental --seed 7")(simulate)
app.command(epilog="Example: penstock train road.toml --for road --history history.db")(train)
app.command(epilog="Example: penstock arena road.toml --policies promise,ds2 --plot a.png")(arena)
app.command(epilog="Example: penstock plan --history runs/demo/history.sqlite --rate x2")(plan)
app.command(epilog="Example: penstock plan-graph road.py:road --plan auto --out road.svg")(
    plan_graph
)
app.command("key-groups", epilog="Example: penstock key-groups runs/road/checkpoint 32")(key_groups)
app.command(epilog="Example: penstock why --at 14:05:30 --history runs/demo/history.sqlite")(why)
app.command(epilog="Example: penstock top --history runs/demo/history.sqlite")(top)
app.command(epilog="Example: penstock doctor --spark")(doctor)
app.command(epilog="Example: penstock prepare --anew")(prepare)
app.command(epilog="Example: penstock completion bash >> ~/.bashrc")(completion)
app.command(epilog="Example: penstock host --executors-max 4")(host)
app.command(epilog="Example: penstock submit road.py:road --max-latency 5s --weight 2")(submit)
app.command(epilog="Example: penstock ps --json")(ps)
app.command(epilog="Example: penstock stop road")(stop)
app.command(epilog="Example: penstock restart road")(restart)
app.command(epilog="Example: penstock logs road")(logs)
app.command(epilog="Example: penstock results road --rows 5")(results)
app.command(epilog="Example: penstock community finance --least 1 --most 4 --add ada")(community)
app.add_typer(history)
app.add_typer(cluster)
with_exit_codes(app)


def main() -> None:
    """The entry point; ends the process with the exit code."""
    app(prog_name="penstock", args=sys.argv[1:])
