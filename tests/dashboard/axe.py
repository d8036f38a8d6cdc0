"""axe-core, which finds what screen readers and keyboards stumble over; fetched, never kept here.

`PENSTOCK_AXE` names a copy of axe.min.js; without it, npm fetches this version once.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

VERSION = "4.10.3"
FILE = "package/axe.min.js"


def axe_source(folder: Path) -> str:
    """The script, or the test is skipped with the reason."""
    given = os.environ.get("PENSTOCK_AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    archive = folder / f"axe-core-{VERSION}.tgz"
    if not archive.exists():
        _fetch(folder)
    with tarfile.open(archive) as packed:
        found = packed.extractfile(FILE)
        assert found is not None
        return found.read().decode()


def _fetch(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core cannot be had: no npm (or name a copy in PENSTOCK_AXE)")
    command = [npm, "pack", "--silent", f"axe-core@{VERSION}"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("axe-core cannot be had: npm took longer than 60 s (or set PENSTOCK_AXE)")
    if done.returncode != 0:
        pytest.skip(f"axe-core cannot be had: {done.stderr.strip()[-200:]} (or set PENSTOCK_AXE)")
