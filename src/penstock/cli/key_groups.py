"""`penstock key-groups`: another number of key groups for a checkpoint."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, print_json


def key_groups(
    checkpoint: Annotated[
        Path,
        typer.Argument(help="Checkpoint of penstock run, or of a Spark query; it must not run."),
    ],
    number: Annotated[int, typer.Argument(min=1, max=100_000, help="Key groups from now on.")],
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Divide the state of a checkpoint into another number of key groups, and check it.

    Fused components are refused. The old checkpoint is kept until the new one has gone on.
    """
    from penstock.spark.checkpoint.key_groups import change_key_groups, stored_queries
    from penstock.spark.cluster.session import build_session

    checkpoint = checkpoint.absolute()
    unchanged = not stored_queries(checkpoint, number)  # refuses before Spark is started
    session = build_session("penstock-key-groups", "local[2]", key_groups=number)
    try:
        changed = change_key_groups(session, checkpoint, number)
    finally:
        session.stop()
    if as_json:
        print_json({"changed": changed})
        return
    for one in changed:
        print(
            f"{one.name}: {one.before} -> {one.after} key groups, {one.rows} rows of state, all "
            f"found again; {one.kept} is kept until a batch has committed"
        )
    if unchanged and not changed:
        print(f"{checkpoint}: no query has state in another number of key groups than {number}")
