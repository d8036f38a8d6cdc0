"""How commands print: JSON without NaN, lines without control characters."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import typer


def print_json(value: Any) -> None:
    """A value of dataclasses, mappings, sequences and numbers as JSON on stdout."""
    from penstock.documents import plain

    print(json.dumps(plain(value), indent=2, allow_nan=False))


_quiet = False


def be_quiet(quiet: bool) -> None:
    """Whether `tell` says nothing, for the command that runs now."""
    global _quiet
    _quiet = quiet


def is_quiet() -> bool:
    """Whether only the answer and errors are wanted."""
    return _quiet


def tell(text: str) -> None:
    """How it goes, on stderr: not the answer, and not said to who wants quiet."""
    if not _quiet:
        print(text, file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Text from outside on one line, with nothing a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def print_table(
    heads: tuple[str, ...], cells: Sequence[tuple[str, ...]], title: str | None = None
) -> None:
    """A table in a terminal; elsewhere one line for each row, which other tools can read."""
    rows = [tuple(one_line(cell) for cell in row) for row in cells]
    if not sys.stdout.isatty():
        for row in rows:
            print("  ".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*heads, title=title)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


JsonFlag = typer.Option("--json", help="Print JSON instead of text.")
