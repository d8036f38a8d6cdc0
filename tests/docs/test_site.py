"""The site of docs/: every page can be found, no link is dead. `make site` builds it for real."""

import re
from functools import cache
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WITH_LINKS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)


def test_the_site_names_every_page_once_and_no_other() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r": ([\w/-]+\.md)$", nav, re.M)
    assert sorted(named) == [str(page.relative_to(DOCS)) for page in PAGES]


@pytest.mark.parametrize("page", WITH_LINKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_relative_link_is_dead(page: Path) -> None:
    text = CODE.sub("``", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if "://" not in link and not _leads_somewhere(page, link)] == []


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Of the headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `penstock x --y`: two\n", encoding="utf-8")
    assert _leads_somewhere(page, "#one-penstock-x---y-two")
    assert _leads_somewhere(page, "page.md")
    assert not _leads_somewhere(page, "#three")
    assert not _leads_somewhere(page, "absent.md")


def test_the_page_of_the_api_has_every_public_name() -> None:
    text = (DOCS / "reference/api.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: penstock\.(\w+)$", text, re.M)) == sorted(penstock.__all__)
