"""`penstock docs`: the documentation that comes with the package, in the terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, print_json, print_table
from penstock.errors import InvalidInput


def docs(
    page: Annotated[
        str | None,
        typer.Argument(metavar="[PAGE]", help="A page, such as attach. Default: list them."),
    ] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Read a page of the documentation of this version, or list the pages."""
    pages = _pages()
    if page is None:
        listed = {name: _title(file) for name, file in pages.items()}
        if as_json:
            print_json(listed)
        else:
            print_table(("page", "about"), tuple(listed.items()))
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        raise InvalidInput(f"there is no page {page!r}; `penstock docs` lists them.")
    text = pages[name].read_text(encoding="utf-8")
    if as_json:
        print_json({"page": name, "title": _title(pages[name]), "text": text})
    elif not sys.stdout.isatty():
        print(text, end="")
    else:
        from rich.console import Console
        from rich.markdown import Markdown

        # less shows colours as they are written unless it is told to draw them.
        less = os.environ.setdefault("LESS", "FRX")
        console = Console()
        with console.pager(styles="r" in less.lower()):
            console.print(Markdown(text))


def _pages() -> dict[str, Path]:
    """By name; in the package where it was built, beside the source in a clone."""
    package = Path(__file__).parents[1]
    inside = package / "docs"
    folder = inside if inside.is_dir() else package.parents[1] / "docs"
    found = {file.relative_to(folder).with_suffix("").as_posix(): file
             for file in sorted(folder.rglob("*.md"))}  # fmt: skip
    found.pop("reference/api", None)  # filled in by the site; here help(penstock.attach) says it
    return found


def _title(page: Path) -> str:
    with page.open(encoding="utf-8") as lines:
        return next(lines).lstrip("#").strip()
