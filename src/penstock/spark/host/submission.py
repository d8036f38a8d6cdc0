"""What is submitted to a host: a user's file with what it imports, and what is promised of it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.documents import Schema, check_document
from penstock.errors import InvalidInput

MOST_FILES = 500
MOST_BYTES = 10 * 2**20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_DURATION = {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1e6}

_PART: dict[str, Any] = {
    "name": {"type": "string"},
    "file": {"type": "string", "minLength": 1},
    "topology": {"type": "string"},
    "files": {"type": "object", "additionalProperties": {"type": "string"}},
}
SCHEMA: Schema = {
    "type": "object",
    "required": list(_PART),
    "additionalProperties": False,
    "properties": {
        **_PART,
        "others": {
            "type": "array",
            "maxItems": 50,
            "items": {
                "type": "object",
                "required": list(_PART),
                "additionalProperties": False,
                "properties": _PART,
            },
        },
        "max_latency_s": _DURATION,
        "share": {"type": ["number", "null"], "minimum": 0.5, "maximum": 0.9999},
        "weight": {"type": "number", "minimum": 0.001, "maximum": 10_000},
        "community": {"type": "string"},
        "member": {"type": "string"},
        "stopped": {"type": "boolean"},
    },
}


@dataclass(frozen=True)
class Part:
    """One topology of a submission, with its files."""

    name: str
    file: str
    topology: str
    files: dict[str, str]


@dataclass(frozen=True)
class Submission:
    """One topology of one user; `files` are its sources by their path from the user's folder."""

    name: str
    file: str
    topology: str  # its name in the file; "" where there is but one
    files: dict[str, str]
    max_latency_s: float | None = None  # None: as the topology says
    share: float | None = None
    weight: float = 1.0
    community: str = ""
    member: str = ""  # of the community, who submitted it
    stopped: bool = False  # by its user; it stays so when the host starts again
    others: list[dict[str, Any]] = field(default_factory=list)  # topologies that are one with it

    @property
    def parts(self) -> list[Part]:
        """The topologies that run as one under this name, each by its own."""
        first = self.topology or Path(self.file).stem
        return [Part(first, self.file, self.topology, self.files)] + [
            Part(**one) for one in self.others
        ]

    def document(self) -> dict[str, Any]:
        """As it is sent and kept."""
        return dict(vars(self))


def read_submission(document: object) -> Submission:
    """A submission, or one sentence that says what is wrong with it."""
    check_document(document, SCHEMA)
    assert isinstance(document, dict)
    found = Submission(**document)
    check_name(found.name, "name")
    if found.community:
        check_name(found.community, "community")
    for part in found.parts:
        _check_part(part, found.parts)
    return found


def _check_part(part: Part, all_of_them: list[Part]) -> None:
    for path in (part.file, *part.files):
        parts = Path(path).parts
        if Path(path).is_absolute() or ".." in parts or not parts or "\\" in path or "\0" in path:
            raise InvalidInput(f"files has {path!r}; give paths below the folder of the topology.")
    if part.file not in part.files:
        raise InvalidInput(f"file is {part.file!r}, which is not among the files sent.")
    if (part.topology and not part.topology.isidentifier()) or not part.name.strip("."):
        raise InvalidInput(
            f"topology is {part.topology!r} in {part.file!r}; give its name there, an identifier."
        )
    if len(all_of_them) > 1:
        if not part.name.isidentifier():
            raise InvalidInput(f"{part.name!r} must be an identifier, to run as one with others.")
        if sum(one.name == part.name for one in all_of_them) > 1:
            raise InvalidInput(
                f"two topologies are named {part.name!r}; those that run as one need other names."
            )


def check_name(name: str, field: str) -> None:
    """Refuse what could not be the name of a folder, or would hide on a terminal."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{field} is {name!r}; give letters, digits, '_', '-' and '.', at most 64, beginning "
            "with a letter or digit."
        )


def packaged(file: Path) -> dict[str, str]:
    """The file and the modules beside it that it imports, and those that they import."""
    folder = file.parent
    if not file.is_file():
        raise InvalidInput(f"{file} is not a file; write FILE.py:NAME.")
    if file.suffix != ".py":
        raise InvalidInput(f"{file} is not a Python file; its name must end in .py.")
    found: dict[str, str] = {}
    waiting = [file]
    while waiting:
        one = waiting.pop()
        name = one.relative_to(folder).as_posix()
        if name in found:
            continue
        found[name] = _text(one)
        waiting += _imported(one, found[name], folder)
        if len(found) > MOST_FILES or sum(map(len, found.values())) > MOST_BYTES:
            raise InvalidInput(
                f"{file} imports more than {MOST_FILES} files or {MOST_BYTES >> 20} MB from its "
                "folder; install what is large as a package."
            )
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text (byte {error.start}).") from error


def _imported(file: Path, text: str, folder: Path) -> Iterator[Path]:
    """Files below the folder that a module imports, with the packages they are in."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = "" if line is None else f", line {line}"
        said = getattr(error, "msg", None) or str(error)
        raise InvalidInput(f"{file}{where} is not Python: {said}.") from error
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _base(file, node, folder)
            names = [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
        for name in filter(None, names):
            yield from _files_of(folder, name)


def _base(file: Path, node: ast.ImportFrom, folder: Path) -> str:
    """The module that something is imported from, also where it is named from the file's own."""
    if not node.level:
        return node.module or ""
    here = file.relative_to(folder).parts[: -node.level]
    return ".".join([*here, *([node.module] if node.module else [])])


def _files_of(folder: Path, module: str) -> Iterator[Path]:
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        base = folder.joinpath(*parts[:length])
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                yield file
