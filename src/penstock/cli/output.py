"""How commands print: JSON without NaN, lines without control characters."""

import json
from typing import Any

import typer


def print_json(value: Any) -> None:
    """A value of dataclasses, mappings, sequences and numbers as JSON on stdout."""
    from penstock.documents import plain

    print(json.dumps(plain(value), indent=2, allow_nan=False))


def one_line(text: str) -> str:
    """Text from outside on one line, with nothing a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


JsonFlag = typer.Option("--json", help="Print JSON instead of text.")
