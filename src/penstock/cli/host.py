"""`penstock host` and what speaks to it: submit, ps, stop, restart, logs, results, community."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.dashboard import DEFAULT_PORT, PortOption, beside_host, checked_token
from penstock.cli.output import JsonFlag, one_line, print_json
from penstock.cli.settings import with_settings
from penstock.config import Settings
from penstock.errors import InvalidInput
from penstock.model.durations import parse_duration_s
from penstock.model.number_text import seconds_text, share_text

if TYPE_CHECKING:
    from penstock.spark.host.host import Host as RunningHost

Name = Annotated[str, typer.Argument(metavar="NAME", help="The topology, as `penstock ps` has it.")]


@with_settings(without=("channel-rows",), unlisted=("dry-run",))  # nothing runs apart on a host
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
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="ADDRESS:PORT",
            help="Where members of communities reach it; beyond this machine with a certificate "
            "only. Default: on loopback, for this user.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="A PEM file, for --listen.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Its private key, if in a file of its own.")
    ] = None,
    batch_limit: Annotated[
        str,
        typer.Option(
            "--batch-limit",
            metavar="DURATION",
            help="A topology whose batch takes longer is ended: it may hold its slots for ever.",
        ),
    ] = "10m",
    worker_memory_mb: Annotated[
        int,
        typer.Option(
            "--worker-memory-mb",
            min=256,
            max=1_000_000,
            help="Memory (address space) that a Python worker may have; more fails its task.",
        ),
    ] = 4096,
    page: Annotated[
        bool,
        typer.Option(
            "--dashboard", help="Also show its topologies on a web page on 127.0.0.1, by community."
        ),
    ] = False,
    port: Annotated[int, PortOption] = DEFAULT_PORT,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", help="Password of the page. Default: a random one, printed at start."
        ),
    ] = None,
    *,
    settings: Settings,
) -> None:
    """Run many topologies on one cluster until Ctrl-C.

    What was submitted before comes back from its checkpoint by itself, also after a kill -9.
    """
    from penstock.spark.host.messages import Listen, host_and_port

    if listen is None and (certificate or key):
        raise InvalidInput("--certificate and --key are for --listen; give that too.")
    if key is not None and certificate is None:
        raise InvalidInput("--key is that of a --certificate; give that too.")
    where = None
    if listen is not None:
        where = Listen(*host_and_port(listen, "--listen"), certificate, key)
        where.context()  # refused before anything is read or started
    limit_s = parse_duration_s(batch_limit, "--batch-limit")
    if not page and (token is not None or port != DEFAULT_PORT):
        raise InvalidInput("--token and --port are of the page; give --dashboard too.")
    checked_token(token)
    from penstock.spark.host.program import Bounds, run_host

    def beside(running: RunningHost) -> AbstractContextManager[object]:
        return beside_host(running, settings.history, port, token) if page else nullcontext()

    run_host(
        settings, master, directory, lambda line: print(line, flush=True), where,
        Bounds(limit_s, worker_memory_mb), beside,
    )  # fmt: skip


def submit(
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE.py[:NAME]...",
            help="A Python file with a topology, and its name there. Several run as one query, and "
            "do once what they have in common.",
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
        str, typer.Option("--community", help="Whose query it is. Default: that of the token.")
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what would only be warned of.")
    ] = False,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Have the host run a topology; the file is sent with what it imports from its folder."""
    from penstock.spark.host.client import connect, submission_of

    submission = submission_of(specs, name, max_latency, share, weight, community)
    warning = connect().send(submission, strict)
    if as_json:
        print_json({"name": submission.name, "warning": warning})
        return
    print(f"{submission.name} is submitted; `penstock ps` shows how it is.")
    if warning is not None:
        print(f"penstock: {one_line(warning)}", file=sys.stderr)


def ps(
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="What topologies have in common: what is done once, what by each."
        ),
    ] = False,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Show the host's topologies: whether they run, their promises, their processors."""
    from penstock.spark.host.client import connect

    if explain:
        _explain(connect().explain(), as_json)
        return
    found = connect().ps()
    if as_json:
        print_json(found)
        return
    for one in found:
        print(one_line(_line(one)))
    if not found:
        print("No topology was submitted.")


def _explain(common: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(common)
        return
    for one in common:
        how = "once, in one query" if one["once"] else "by each"
        said = f"{', '.join(one['topologies'])}: {', '.join(one['steps'])} {how}"
        print(one_line(said + (f"; {one['saving']}" if one["saving"] else "")))
    if not common:
        print("No topologies that run have anything in common.")


def stop(
    name: Name,
    forget: Annotated[
        bool, typer.Option("--forget", help="Also free its name; its checkpoint stays.")
    ] = False,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Stop a topology of the host between two batches."""
    from penstock.spark.host.client import connect

    _print_outcome(name, connect().stop(name, forget=forget), as_json)


def restart(name: Name, as_json: Annotated[bool, JsonFlag] = False) -> None:
    """Start a topology of the host again, from its checkpoint."""
    from penstock.spark.host.client import connect

    _print_outcome(name, connect().restart(name), as_json)


def logs(name: Name, as_json: Annotated[bool, JsonFlag] = False) -> None:
    """Show what happened to a topology of the host."""
    from penstock.spark.host.client import connect

    lines = connect().logs(name)
    if as_json:
        print_json({"name": name, "lines": lines})
        return
    for line in lines:
        print(one_line(line))


def results(
    name: Name,
    sink: Annotated[
        str | None, typer.Option("--sink", help="Which sink. Default: the only one there is.")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=1, max=1000, help="How many of the newest rows.")
    ] = 20,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Show the newest results of a topology of the host."""
    from penstock.spark.host.client import connect

    found = connect().results(name, sink, rows)
    if as_json:
        print_json(found)
        return
    for row in [found["columns"], *found["rows"]]:
        print("\t".join(one_line(cell) for cell in row))


def community(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The community; without it, all of them.")
    ] = None,
    least: Annotated[
        int | None, typer.Option("--least", help="Processors it has whenever it wants them.")
    ] = None,
    most: Annotated[
        int | None, typer.Option("--most", help="Processors that it never has more of.")
    ] = None,
    weight: Annotated[
        float | None, typer.Option("--weight", help="What its promises count together.")
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option("--add", help="A member; prints the token, this once.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", help="A member whose token holds no more.")
    ] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Remove the community; it must have no topologies.")
    ] = False,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Show the communities of the host, or make or change one: its quota and its members."""
    from penstock.spark.host.client import connect

    changes = (least, most, weight, add, remove)
    changing = any(one is not None for one in changes)
    if (name is None and (changing or forget)) or (forget and changing):
        raise InvalidInput(
            "give a community's NAME with what is to change, or --forget alone; no more."
        )
    host = connect()
    if forget and name is not None:
        host.forget_community(name)
        _print_outcome(name, "forgotten, with its tokens", as_json)
        return
    known = [one["name"] for one in host.communities()]
    tokens: dict[str, str] = {}
    if name is not None and (changing or name not in known):
        tokens = host.community(
            name, least=least, most=most, weight=weight, add=tuple(add or ()),
            remove=tuple(remove or ()),
        )  # fmt: skip
    shown = [one for one in host.communities() if name in (None, one["name"])]
    if as_json:
        print_json({"communities": shown, "tokens": tokens})
        return
    for one in shown:
        print(one_line(_community_line(one)))
    for member, token in tokens.items():
        print(f"The token of {member}, shown this once: {token}")
    if not shown:
        print("There is no community; `penstock community NAME` makes one.")


def _community_line(one: dict[str, Any]) -> str:
    most = "all" if one["most"] is None else one["most"]
    members = ", ".join(one["members"]) or "none"
    quota = f"{one['least']} to {most} processors, weight {one['weight']:g}"
    return f"{one['name']}: {quota}, members {members}"


def _print_outcome(name: str, detail: str, as_json: bool) -> None:
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
    if one.get("missed_by") is not None:
        said.append(f"promise not kept beside the others: {one['missed_by']} expected")
    if one["community"]:
        said.append(f"community {one['community']}")
    return ", ".join(said)
