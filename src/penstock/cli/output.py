"""How commands print: JSON without NaN, lines without control characters."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import typer


def print_json(value: Any) -> None:
    """A value of dataclasses, mappings, sequences and numbers as JSON on stdout."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """The value in JSON's own types; NaN and infinities, which JSON has not, become null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy, without importing it
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def one_line(text: str) -> str:
    """Text from outside on one line, with nothing a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


JsonFlag = typer.Option("--json", help="Print data instead of a table.")
