"""`penstock host` and what speaks to it: submit, ps, stop, restart, logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.output import JsonFlag, one_line, print_json
from penstock.cli.settings import with_settings
from penstock.config import Settings
from penstock.model.number_text import seconds_text, share_text

Name = Annotated[str, typer.Argument(metavar="NAME", help="The topology, as `penstock ps` has it.")]


@with_settings()
def host(
    master: Annotated[
        str,
        typer.Option(
            "--master",
            help="A Spark master; 'embedded' for a cluster that lives as long as the host, "
            "'cluster' for the one started by `penstock cluster up`.",
        ),
    ] = "embedded",
    directory: Annotated[
        Path,
        typer.Option("--directory", help="Where submissions, checkpoints and logs are kept."),
    ] = Path("runs/host"),
    *,
    settings: Settings,
) -> None:
    """Run many topologies on one cluster until Ctrl-C.

    What was submitted before comes back from its checkpoint by itself, also after a kill -9.
    """
    from penstock.spark.host.program import run_host

    run_host(settings, master, directory, lambda line: print(line, flush=True))


def submit(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:NAME]", help="A Python file with a topology, and its name there."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", help="What it is called here. Default: NAME, or the file's name."),
    ] = None,
    max_latency: Annotated[
        str | None,
        typer.Option("--max-latency", metavar="DURATION", help="Default: the topology's own."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option("--share", help="Of results within the bound. Default: the topology's own."),
    ] = None,
    weight: Annotated[
        float, typer.Option("--weight", help="What its promise counts beside the others'.")
    ] = 1.0,
    community: Annotated[
        str, typer.Option("--community", help="A name that `penstock ps` shows it under.")
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what would only be warned of.")
    ] = False,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Let the host run a topology; the file is sent with what it imports from its folder."""
    from penstock.spark.host.client import connect, submission_of

    submission = submission_of(spec, name, max_latency, share, weight, community)
    warning = connect().send(submission, strict)
    if as_json:
        print_json({"name": submission.name, "warning": warning})
        return
    print(f"{submission.name} is submitted; `penstock ps` shows how it is.")
    if warning is not None:
        print(f"penstock: {one_line(warning)}", file=sys.stderr)


def ps(as_json: Annotated[bool, JsonFlag] = False) -> None:
    """Show the host's topologies: whether they run, their promises, their processors."""
    from penstock.spark.host.client import connect

    found = connect().ps()
    if as_json:
        print_json(found)
        return
    for one in found:
        print(one_line(_line(one)))
    if not found:
        print("No topology was submitted.")


def stop(
    name: Name,
    forget: Annotated[
        bool, typer.Option("--forget", help="Also free its name; its checkpoint stays.")
    ] = False,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Stop a topology of the host between two batches."""
    from penstock.spark.host.client import connect

    _told(name, connect().stop(name, forget=forget), as_json)


def restart(name: Name, as_json: Annotated[bool, JsonFlag] = False) -> None:
    """Start a topology of the host again, from its checkpoint."""
    from penstock.spark.host.client import connect

    _told(name, connect().restart(name), as_json)


def logs(name: Name, as_json: Annotated[bool, JsonFlag] = False) -> None:
    """Show what became of a topology of the host."""
    from penstock.spark.host.client import connect

    lines = connect().logs(name)
    if as_json:
        print_json({"name": name, "lines": lines})
        return
    for line in lines:
        print(one_line(line))


def _told(name: str, detail: str, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "detail": detail})
    else:
        print(f"{name}: {detail}")


def _line(one: dict[str, Any]) -> str:
    said = [f"{one['name']}: {one['state']}"]
    if one["why"]:
        said.append(str(one["why"]))
    if one.get("processors") is not None:
        said.append(f"{one['processors']} of {one['processors_wanted']} processors wanted")
    if one.get("in_time_share") is not None:
        bound, share = seconds_text(one["max_latency_s"]), share_text(one["in_time_share"])
        said.append(f"{share} of {one['results']} results within {bound}")
    if one["community"]:
        said.append(f"community {one['community']}")
    return ", ".join(said)
