"""`penstock init`: a small project that runs, to be changed into one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, print_json
from penstock.errors import InvalidInput, Unavailable

FILES = (
    "pipeline.py", "penstock.toml", "test_pipeline.py", "Makefile", "README.md", ".gitignore",
)  # fmt: skip


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder; made if missing.")],
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the topology. Default: the folder's."),
    ] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Write a small project that runs: a topology, its options, a test and a Makefile.

    Nothing that is there is overwritten.
    """
    called = folder.resolve().name if name is None else name
    if not called or not called.replace("-", "").replace("_", "").isalnum():
        raise InvalidInput(
            f"the topology would be called {called!r}; give a --name of letters, digits, - and _."
        )
    taken = [file for file in FILES if (folder / file).exists()]
    if taken:
        raise InvalidInput(f"{folder} holds {taken[0]} already; give another folder.")
    _write(folder, called)
    if as_json:
        print_json({"folder": str(folder), "topology": called, "files": FILES})
        return
    print(f"{folder}: {', '.join(FILES)}")
    print(f"Next: cd {folder} && penstock run pipeline.py:topology --master embedded")


def _write(folder: Path, name: str) -> None:
    from importlib.resources import files

    templates = files("penstock.cli") / "starter"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in FILES:
            text = (templates / f"{file.lstrip('.')}.template").read_text(encoding="utf-8")
            (folder / file).write_text(text.replace("@NAME@", name), encoding="utf-8")
    except OSError as error:
        raise Unavailable(f"{folder} cannot be written: {error.strerror}.") from error
