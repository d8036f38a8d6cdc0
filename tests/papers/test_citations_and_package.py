"""Papers are cited by author and year, and the installed package holds no experiments."""

import re
import tomllib
from pathlib import Path

import penstock

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "experiments", "tests", "benchmarks", "docs", "examples", "scripts")
SUFFIXES = (".py", ".md", ".toml", ".sh", ".html", ".js")
NUMBERED = re.compile(r"\bseeds?\s+00" + r"\d", re.IGNORECASE)
CITED = re.compile(r"\b([A-Z][\w-]+(?: and [A-Z]\w+| et al\.)?) (20\d\d), (?:s|ch)\. ")


def texts() -> dict[Path, str]:
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    files = [path for path in (*ROOT.iterdir(), *inside) if path.suffix in SUFFIXES]
    assert len(files) > 500
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in files}


def test_no_paper_is_cited_by_a_number() -> None:
    assert [str(path) for path, text in texts().items() if NUMBERED.search(text)] == []


def test_every_paper_cited_by_its_section_is_listed() -> None:
    listed = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    cited = {f"{who} {year}" for text in texts().values() for who, year in CITED.findall(text)}
    assert len(cited) >= 5
    assert [one for one in sorted(cited) if f"| {one} |" not in listed] == []


def test_only_the_package_is_installed_with_its_types() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["only-include"] == ["src/penstock", "docs"]  # `penstock docs` reads the pages
    assert wheel["sources"] == {"src/penstock": "penstock", "docs": "penstock/docs"}
    assert (Path(penstock.__file__).parent / "py.typed").is_file()


def test_extras_are_not_required_and_are_all_there_for_development() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    development = set(extras.pop("dev"))
    wanted = {requirement for extra in extras.values() for requirement in extra}
    assert wanted <= development
    assert not wanted & set(project["dependencies"])
    assert extras["plot"] == ["matplotlib>=3.9"]
