"""docs/architecture.md: its walks name what exists, its pictures are of the imports."""

import re
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_STATIONS = 12
WALKS = re.findall(r"^### (A row|A period|An attached query)\n(.*?)(?=^#)", TEXT, re.M | re.S)


def pictures() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return import_module("architecture")
    finally:
        sys.path.pop(0)


def resolved(name: str) -> object:
    """The object that a dotted name stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[length:], module)
    raise AssertionError(f"{name} is nowhere")


def test_there_are_three_walks() -> None:
    assert len(WALKS) == 3


@pytest.mark.parametrize(("walk", "stations"), WALKS)
def test_each_walk_is_short_and_passes_only_what_exists(walk: str, stations: str) -> None:
    names = re.findall(r"^\d+\. `([\w.]+)`: ", stations, re.M)
    assert 5 <= len(names) <= MOST_STATIONS, walk
    assert len(names) == len(re.findall(r"^\d+\. ", stations, re.M))
    for name in names:
        resolved(name)


def test_the_pictures_are_of_the_imports_as_they_are() -> None:
    assert pictures().drawn(TEXT) == TEXT, "make docs draws them anew"
