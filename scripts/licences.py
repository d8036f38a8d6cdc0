"""Write docs/licences.md: under which licence each package of requirements.lock may be used."""

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "licences.md"
# What a package's own files say where its metadata does not.
FROM_ITS_FILES = {"ciw": "MIT"}
_NOT_HERE = "not installed on this platform"


def locked() -> dict[str, str]:
    """Packages of the lock file with their versions."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9._-]+)==([^\s;\\]+)", text, re.M | re.I))


def licence(package: str) -> str:
    """What its metadata says, in the newest form that it has."""
    if package in FROM_ITS_FILES:
        return FROM_ITS_FILES[package]
    try:
        told = metadata(package)
    except PackageNotFoundError:
        return _NOT_HERE
    named = [
        entry.rpartition(" :: ")[2]
        for entry in told.get_all("Classifier") or ()
        if entry.startswith("License :: ") and not entry.endswith("OSI Approved")
    ]
    free_text = (told.get("License") or "").strip().split("\n")[0]
    return told.get("License-Expression") or ", ".join(named) or free_text or "unknown"


def page() -> str:
    """The whole page."""
    rows = [f"| {name} | {version} | {licence(name)} |" for name, version in locked().items()]
    return "\n".join(
        [
            "# Licences",
            "",
            "Of every package that `make setup` installs, as its metadata says; made by "
            "`make docs`.",
            "Penstock itself is under the licence in `LICENSE`. Loads in `benchmarks/loads`: see "
            "[the arena](arena.md).",
            "",
            "| package | version | licence |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
