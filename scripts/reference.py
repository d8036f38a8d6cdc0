"""Writes docs/reference/metrics.md, history.md and commands.md from the code that they describe."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import typer
from sqlalchemy import Column, Table
from typer.core import TyperArgument, TyperOption

from penstock.cli.app import app
from penstock.cli.settings import PANEL
from penstock.control.history.tables import OLDER_VERSIONS, PARENTS_FIRST, SCHEMA_VERSION
from penstock.dashboard.metrics import FAMILIES, RUN, SILENT_PERIODS

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
ABOUT_TABLES = {
    "history": "The form of the tables.",
    "runs": "A run: a topology or an attached query under one loop, from its start to its end.",
    "observations": "What was measured in a period.",
    "operators": "Of each observation: the rates at each operator.",
    "components": "Of each observation: the load of each component, and of its key groups.",
    "state": "Of each observation: the key groups of state that no component's row holds.",
    "nodes": "Of each observation: the executors.",
    "decisions": "What a policy suggested, what the guards left of it, and why.",
    "allocations": "Where key groups should be, and which had to move.",
    "actions": "What was done to the cluster, whether it worked, and how long it took.",
    "room_decisions": "Decisions of admission, routing, fusion, the last resort and the others.",
    "failures": "Stages of the loop that failed. The query went on.",
}


METRICS = """\
# Metrics

Made by `make docs` from `src/penstock/dashboard/metrics.py`.

`penstock dashboard` answers with them at `/metrics`, for Prometheus. A scrape reads the history, so
it costs the run nothing. [How to scrape them](../dashboard.md#prometheus-and-grafana);
[which to alert on](../operations.md#alerts).

Every metric has the labels {labels}. What was not measured in a period is left out. Runs that go on
are shown; one that is {silent} periods behind the newest is taken for dead. Where no run
goes on, it is the newest one.

| metric | type | further labels | what it says |
|---|---|---|---|
"""
HISTORY = """\
# Tables of the history

Made by `make docs` from `src/penstock/control/history/tables.py`.

This is form {form}, the same in SQLite and PostgreSQL. Forms {older} are read as they are, and
become form {form} when a run writes to them. `penstock history --json` shows a history without SQL.

The end of a name is its unit: `_s` seconds (`at_s` is Unix time), `_per_s` rows a second, `_rows`,
`_bytes`. A number that was not measured is NULL. `seq` counts the periods of a run from 1,
`position` the parts of one observation from 0.
"""
COMMANDS = """\
# Commands

Made by `make docs` from the commands themselves.

Every command takes `--help`, `--debug` (show tracebacks) and `--quiet` (only the answer and
errors). Exit codes: 0 success, 1 failure, 2 bad input, 3 the request cannot be met, 130
interrupted. *Options of the run* are those of [the options](../options.md) that concern it.
"""


def metrics_page() -> str:
    """What `/metrics` of the page answers."""
    labels = " and ".join(f"`{label}`" for label in RUN)
    rows = [
        f"| `{f.name}{'_total' if f.counter else ''}` | {'counter' if f.counter else 'gauge'} "
        f"| {', '.join(f'`{label}`' for label in f.labels)} | {f.help} |\n"
        for f in FAMILIES
    ]
    return METRICS.format(labels=labels, silent=SILENT_PERIODS) + "".join(rows)


def history_page() -> str:
    """The tables of a history."""
    older = " and ".join(map(str, OLDER_VERSIONS))
    head = HISTORY.format(form=SCHEMA_VERSION, older=older)
    return head + _text(line for table in PARENTS_FIRST for line in _table(table))


def commands_page() -> str:
    """What `--help` says, on one page."""
    group = typer.main.get_command(app)
    return COMMANDS + _text(_commands(typer.Context(group, info_name="penstock")))


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _table(table: Table) -> Iterator[str]:
    about = ABOUT_TABLES[table.name.removeprefix("penstock_")]
    yield from ("", f"## {table.name}", "", about, "")
    yield from ("| column | type | |", "|---|---|---|")
    for column in table.columns:
        yield f"| `{column.name}` | {str(column.type).lower()} | {_role(column)} |"


def _role(column: Column[object]) -> str:
    points_to = [f"of `{key.target_fullname}`" for key in column.foreign_keys]
    nullable = [] if column.primary_key or not column.nullable else ["may be NULL"]
    return ", ".join([*(["key"] if column.primary_key else []), *points_to, *nullable])


def _commands(context: typer.Context) -> Iterator[str]:
    if context.parent is not None:
        yield from _command(context)
    for name, child in getattr(context.command, "commands", {}).items():
        yield from _commands(typer.Context(child, info_name=name, parent=context))


def _command(context: typer.Context) -> Iterator[str]:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    about = (command.help or "").split("Exit codes:")[0].strip()
    yield from ("", f"## {context.command_path}", "", *about.splitlines(), "")
    yield f"`{usage.translate({ord('{'): None, ord('}'): None})}`"
    own = [one for one in map(_known, command.params) if one.rich_help_panel != PANEL]
    if len(own) < len(command.params):
        yield from ("", "It takes options of the run.")
    if own:
        yield from ("", "| | |", "|---|---|", *map(_parameter, own))
    if command.epilog:
        yield from ("", command.epilog.replace("Example: ", "Example: `", 1) + "`")


def _known(parameter: object) -> TyperArgument | TyperOption:
    assert isinstance(parameter, TyperArgument | TyperOption)
    return parameter


def _parameter(parameter: TyperArgument | TyperOption) -> str:
    about = " ".join((parameter.help or "").split())
    if isinstance(parameter, TyperArgument):
        form = str(parameter.metavar or parameter.name).strip("[]")
    else:
        takes = "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
        form = f"{max(parameter.opts, key=len)}{takes}".replace("|", "\\|")
    return f"| `{form}` | {about} |"


PAGES: dict[str, Callable[[], str]] = {
    "metrics.md": metrics_page, "history.md": history_page, "commands.md": commands_page,
}  # fmt: skip

if __name__ == "__main__":
    for name, made in PAGES.items():
        (FOLDER / name).write_text(made(), encoding="utf-8")
