"""The file in which people declare streams: its form, and each mistake by its line.

A table `streams` has a table of meta-data for each stream. A name with `*`, `?` or `[` is a
pattern: it declares no stream, and says what is known of all that fit. No two patterns may fit
one name; a name of its own is heard before a pattern, item by item.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.spark.sources.stream_meta import Meta, contradiction, merged, understood

_KEY = re.compile(r"""\s*((?:[\w.-]|"[^"]*"|'[^']*'|\s*\.\s*)+?)\s*=""")
Path_ = tuple[str, ...]


@dataclass(frozen=True)
class Declared:
    """Streams by name, and what holds for all whose names fit a pattern."""

    streams: Mapping[str, Meta] = field(default_factory=dict)
    patterns: Mapping[str, Meta] = field(default_factory=dict)

    def of(self, name: str) -> Meta:
        """What the patterns say of a stream."""
        found = self._fit.match(name) if self.patterns else None
        return {} if found is None else list(self.patterns.values())[(found.lastindex or 1) - 1]

    @cached_property
    def _fit(self) -> re.Pattern[str]:
        return re.compile("|".join(f"({translate(pattern)})" for pattern in self.patterns))


def read_declared(file: Path) -> Declared:
    """What a TOML file declares; a file that is not there declares nothing, and may come later."""
    try:
        text = file.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError:
        return Declared()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file} is not TOML: {error}.") from error
    except ValueError as error:
        raise InvalidInput(f"{file} holds a number that is too long to be read.") from error
    lines = _lines(text)
    unknown = [key for key in document if key != "streams"]
    if unknown:
        where = _where(file, lines, (unknown[0],))
        raise InvalidInput(f"{where}: {unknown[0]!r} is unknown; allowed: streams.")
    streams = document.get("streams", {})
    if not isinstance(streams, dict):
        where = _where(file, lines, ("streams",))
        raise InvalidInput(f"{where}: streams is {streams!r}; give a table for each stream.")
    known = {name: _meta(file, lines, name, meta) for name, meta in streams.items()}
    patterns = {name: meta for name, meta in known.items() if is_pattern(name)}
    for one, other in combinations(patterns, 2):
        if patterns_meet(one, other):
            raise InvalidInput(
                f"{_where(file, lines, ('streams', other))}: patterns {one!r} and {other!r} fit "
                "the same names; write patterns of which only one fits a stream."
            )
    declared = Declared({n: meta for n, meta in known.items() if n not in patterns}, patterns)
    for name, meta in declared.streams.items():
        wrong = contradiction(merged(declared.of(name), meta))
        if wrong is not None:
            raise InvalidInput(
                f"{_where(file, lines, ('streams', name))}: stream {name!r}, with what a pattern "
                f"says of it: {wrong}."
            )
    return declared


def is_pattern(name: str) -> bool:
    """Whether a name stands for many."""
    return any(mark in name for mark in "*?[")


def patterns_meet(one: str, other: str) -> bool:
    """Whether some name fits both; a set of characters counts as any one character.

    >>> patterns_meet("cab:*", "*:7"), patterns_meet("cab:*", "bus:*")
    (True, False)
    """
    left, right = (re.sub(r"\[[^]]+\]", "?", pattern) for pattern in (one, other))
    meets = [[False] * (len(right) + 1) for _ in range(len(left) + 1)]  # from these places on
    for i in range(len(left), -1, -1):
        for j in range(len(right), -1, -1):
            a, b = left[i : i + 1], right[j : j + 1]
            if not a and not b:
                meets[i][j] = True
            elif "*" in (a, b):
                # A star ends, or takes one more of what the other side has.
                meets[i][j] = bool(a and meets[i + 1][j]) or bool(b and meets[i][j + 1])
            elif a and b:
                meets[i][j] = (a == b or "?" in (a, b)) and meets[i + 1][j + 1]
    return meets[0][0]


def _meta(file: Path, lines: Mapping[Path_, int], name: str, meta: Any) -> Meta:
    place = ("streams", name)
    if not name.strip():
        raise InvalidInput(f"{_where(file, lines, place)}: a stream's name is {name!r}; name it.")
    if not isinstance(meta, dict):
        where = _where(file, lines, place)
        raise InvalidInput(f"{where}: streams.{name} is {meta!r}; give a table of meta-data.")
    for key, value in meta.items():
        try:
            understood(name, {key: value})
        except InvalidInput as error:
            raise InvalidInput(f"{_where(file, lines, (*place, key))}: {error}") from error
    try:
        return understood(name, meta)
    except InvalidInput as error:
        raise InvalidInput(f"{_where(file, lines, place)}: {error}") from error


def _where(file: Path, lines: Mapping[Path_, int], place: Path_) -> str:
    """The file and the line of a key, or of the table it is in."""
    while place and place not in lines:
        place = place[:-1]
    return f"{file}, line {lines[place]}" if place else str(file)


def _lines(text: str) -> dict[Path_, int]:
    """The lines at which tables and keys begin, as far as each is on a line of its own."""
    lines: dict[Path_, int] = {}
    table: Path_ = ()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            table = _path(line)
            lines.setdefault(table, number)
        elif (found := _KEY.match(line)) is not None:
            lines.setdefault((*table, *_path(f"{found.group(1)} = {{}}")), number)
    return lines


def _path(line: str) -> Path_:
    """The names of a table or key, as TOML reads them."""
    try:
        document: Any = tomllib.loads(line)
    except ValueError:
        return ()
    names: list[str] = []
    while isinstance(document, dict) and len(document) == 1:
        name, document = next(iter(document.items()))
        names.append(name)
    return tuple(names)
