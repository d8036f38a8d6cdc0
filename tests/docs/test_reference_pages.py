"""docs/reference: what is made from code is what the code says now."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("metrics.md", "history.md", "commands.md")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts/reference.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_made_from_code_is_current(script: dict[str, Any], name: str) -> None:
    page = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    assert page == script["PAGES"][name](), f"docs/reference/{name} is old: make docs"


def test_no_page_is_left_out(script: dict[str, Any]) -> None:
    assert tuple(script["PAGES"]) == NAMES
