"""docs/dependencies.md: a line for each package that is installed, and places that are there."""

import re
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/penstock"
PAGE = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
WRITTEN_HERE = PAGE.split("## Written here")[1]


def rows(text: str) -> list[list[str]]:
    """The cells of its tables, without their heads."""
    found = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [row for row in found if row[0] not in ("what", "package")]


def test_each_package_of_an_install_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    wanted = chain(project["dependencies"], *(v for k, v in optional.items() if k != "dev"))
    named = PAGE.split("## Written here")[0].lower()
    missing = [re.split(r"[\[><=]", one)[0] for one in wanted]
    assert [name for name in missing if name not in named] == []


def test_what_is_written_here_is_where_the_page_says() -> None:
    asked = {
        "HTTP server", "rows of the history", "options", "retry", "watching files", "file locks",
        "consistent hashing", "time zones", "schedules", "queueing formulas",
    }  # fmt: skip
    said = rows(WRITTEN_HERE)
    assert [name for name in asked if not any(row[0].startswith(name) for row in said)] == []
    absent = []
    for row in said:
        folder = PACKAGE
        for name in re.findall(r"`([a-z][\w/.]*)`", row[0]):
            folder = (PACKAGE / name).parent if "/" in name else folder
            place = folder / name.rpartition("/")[2]
            if not (place.is_dir() or place.is_file() or place.with_suffix(".py").is_file()):
                absent.append(f"{row[0]}: {place.relative_to(PACKAGE)}")
    assert absent == []


def test_no_library_that_was_decided_against_is_used() -> None:
    names = r"tenacity|watchfiles|filelock|croniter|uhashring|starlette|pydantic|msgspec|dateutil"
    pattern = re.compile(rf"^\s*(?:import|from) (?:{names})\b", re.M)
    found = [file for file in PACKAGE.rglob("*.py") if pattern.search(file.read_text("utf-8"))]
    assert found == []


def test_files_are_locked_in_the_places_the_page_names() -> None:
    locking = {
        file.relative_to(PACKAGE / "spark").as_posix()
        for file in PACKAGE.rglob("*.py")
        if "fcntl.flock(" in file.read_text(encoding="utf-8")
    }
    assert locking == {"checkpoint/durable_files.py", "cluster/standing.py"}
