"""`penstock advise` and `penstock schema`: one decision on a JSON document, and its form."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from penstock.cli.border import INFEASIBLE
from penstock.cli.output import print_json
from penstock.errors import InvalidInput

ROOMS = {
    kind: f"penstock.{kind}.advice"
    for kind in ("admission", "routing", "fusion", "scaling", "allocation")
}
KINDS = tuple(kind for kind, module in ROOMS.items() if find_spec(module) is not None)

Kind = Annotated[str, typer.Argument(metavar="KIND", help=f"One of: {', '.join(KINDS)}.")]


def advise(
    kind: Kind,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A JSON document; '-' reads it from stdin.")
    ],
    _as_json: Annotated[
        bool, typer.Option("--json", help="As every command has it; the answer is JSON anyway.")
    ] = False,
) -> None:
    """Run one decision on a JSON document and print the answer as JSON.

    The document's form is printed by `penstock schema KIND`. Exit code 3 says that the request
    cannot be met; the answer then says why, under "infeasible".
    """
    from penstock.documents import check_document, parse_document, read_document

    room = _room(kind)
    if file == "-":
        content = b"" if sys.stdin is None else sys.stdin.buffer.read()
        document = parse_document(content, "stdin")
    else:
        document = read_document(Path(file))
    check_document(document, room.SCHEMA)
    answer = room.advise(document)
    print_json(answer)
    if answer.get("infeasible") is not None:
        raise typer.Exit(INFEASIBLE)


def schema(kind: Kind) -> None:
    """Print the JSON Schema of the documents `penstock advise KIND` takes."""
    print_json(_room(kind).SCHEMA)


def _room(kind: str) -> ModuleType:
    if kind not in KINDS:
        raise InvalidInput(f"KIND is {kind!r}; allowed: {', '.join(KINDS)}.")
    return import_module(ROOMS[kind])
