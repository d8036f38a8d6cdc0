"""`penstock advise` and `penstock schema`: one decision on a JSON document, and its form."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from penstock.cli.exit_codes import INFEASIBLE
from penstock.cli.output import print_json
from penstock.errors import InvalidInput, documented

ROOMS = {
    kind: f"penstock.{kind}.advice"
    for kind in ("admission", "routing", "fusion", "scaling", "allocation", "sharing")
}
KINDS = tuple(kind for kind, module in ROOMS.items() if find_spec(module) is not None)

Kind = Annotated[str, typer.Argument(metavar="KIND", help=f"One of: {', '.join(KINDS)}.")]


def advise(
    kind: Kind,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A JSON document; '-' reads it from stdin.")
    ],
    _as_json: Annotated[
        bool,
        typer.Option("--json", help="Accepted as in every command; the answer is always JSON."),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="For fusion: also draw the graph with its components, as .svg."
        ),
    ] = None,
) -> None:
    """Run one decision on a JSON document and print the answer as JSON.

    `penstock schema KIND` prints the form of the document. Exit code 3 means that the request
    cannot be met; the answer then says why under "infeasible".
    """
    from penstock.documents import check_document, parse_document, read_document

    room = _room(kind)
    if plot is not None:
        _check_plot(kind, plot)
    if file == "-":
        content = b"" if sys.stdin is None else sys.stdin.buffer.read()
        document = parse_document(content, "stdin")
    else:
        document = read_document(Path(file))
    with documented(f"{kind} and penstock schema {kind}"):
        check_document(document, room.SCHEMA)
        answer = room.advise(document)
    if plot is not None:
        _draw(document, answer, plot)
    print_json(answer)
    if answer.get("infeasible") is not None:
        raise typer.Exit(INFEASIBLE)


def schema(kind: Kind) -> None:
    """Print the JSON Schema of the documents that `penstock advise KIND` takes."""
    print_json(_room(kind).SCHEMA)


def _room(kind: str) -> ModuleType:
    if kind not in KINDS:
        raise InvalidInput(f"KIND is {kind!r}; allowed: {', '.join(KINDS)}.")
    return import_module(ROOMS[kind])


def _check_plot(kind: str, plot: Path) -> None:
    from penstock.cli.plan_graph import check_picture

    if kind != "fusion":
        raise InvalidInput(f"--plot is given for {kind!r}; only the answer of fusion is a graph.")
    check_picture("--plot", plot)


def _draw(document: Mapping[str, Any], answer: Mapping[str, Any], plot: Path) -> None:
    from penstock.cli.drawing import draw_components

    edges = [(s["from"], s["to"]) for s in document["streams"] if s["from"] is not None]
    components = {
        f"{number}: {', '.join(part['key']) or 'any partitioning'}": part["operators"]
        for number, part in enumerate(answer["components"], 1)
    }
    draw_components(f"fusion by {document['algorithm']}", edges, components, plot)
