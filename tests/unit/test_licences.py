"""The page of licences lists what is installed."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_locked_package_is_listed_with_its_licence() -> None:
    script = runpy.run_path(str(ROOT / "scripts/licences.py"))
    page = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
    listed = dict(line.split(" | ")[:2] for line in page.splitlines() if line.startswith("| "))
    assert {f"| {name}": version for name, version in script["locked"]().items()} == {
        name: version for name, version in listed.items() if name != "| package"
    }
    assert "unknown" not in page
