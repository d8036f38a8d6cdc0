"""`penstock cluster`: a standalone Spark cluster on loopback that stays until it is ended."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.cli.output import JsonFlag, print_json

if TYPE_CHECKING:
    from penstock.spark.cluster.embedded import ClusterStatus
    from penstock.spark.cluster.standing import ClusterChange

cluster: Final = typer.Typer(
    name="cluster",
    no_args_is_help=True,
    help="Start, stop and inspect your own Spark cluster on this machine.",
    epilog="Example: penstock cluster up --slots 8",
)


@cluster.command(epilog="Example: penstock cluster up --slots 8 --memory-mb 8192")
def up(
    slots: Annotated[
        int,
        typer.Option(
            "--slots", min=1, help="How many tasks run at once; may exceed the machine's cores."
        ),
    ] = 8,
    memory_mb: Annotated[
        int | None,
        typer.Option(
            "--memory-mb", help="Memory for all executors in MiB. Default: 1024 per slot."
        ),
    ] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Start the cluster; it keeps running when this command ends."""
    from penstock.spark.cluster.standing import cluster_up

    _print_change(cluster_up(slots, memory_mb), as_json)


@cluster.command(epilog="Example: penstock cluster down")
def down(as_json: Annotated[bool, JsonFlag] = False) -> None:
    """Stop the cluster and everything that runs on it."""
    from penstock.spark.cluster.standing import cluster_down

    _print_change(cluster_down(), as_json)


@cluster.command(epilog="Example: penstock cluster status --json")
def status(as_json: Annotated[bool, JsonFlag] = False) -> None:
    """Show whether the cluster is up and how much of it is in use."""
    from penstock.spark.cluster.standing import cluster_status

    found = cluster_status()
    if as_json:
        print_json(found)
    else:
        print(_line(found))


@cluster.command(epilog='Example: eval "$(penstock cluster env --executors-max 4)"')
def env(
    executors_min: Annotated[
        int, typer.Option("--executors-min", min=1, help="Executors that a script starts with.")
    ] = 1,
    executors_max: Annotated[
        int | None,
        typer.Option(
            "--executors-max", min=1, help="Most executors. Default: as the cluster has room for."
        ),
    ] = None,
    slots: Annotated[
        int, typer.Option("--slots", min=1, help="Tasks that one executor runs at once.")
    ] = 1,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Print lines for the shell that put plain PySpark scripts onto the cluster.

    They hold no secret: they name a folder of Spark settings that only you can read.
    """
    from penstock.spark.run.user_session import shell_environment

    found = shell_environment(executors_min, executors_max, slots)
    if as_json:
        print_json(found)
    else:
        print("\n".join(f"export {name}={quote(value)}" for name, value in found.items()))


def _print_change(change: ClusterChange, as_json: bool) -> None:
    if as_json:
        print_json(change)
    else:
        print(change.detail)


def _line(status: ClusterStatus) -> str:
    if not status.up:
        return status.detail
    return (
        f"Up at {status.master_url}: {status.slots_used} of {status.slots} slots used by "
        f"{status.applications} applications; logs in {status.directory}/logs."
    )
