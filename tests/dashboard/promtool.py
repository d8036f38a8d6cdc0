"""promtool, Prometheus's own checker of rules; fetched from Debian, never installed here.

Installing the package would start a server, so it is unpacked into a folder. `PENSTOCK_PROMTOOL`
names another one.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HINT = "or name one in PENSTOCK_PROMTOOL"


def promtool_program(folder: Path) -> str:
    """Where it is, or the test is skipped with the reason."""
    found = os.environ.get("PENSTOCK_PROMTOOL") or shutil.which("promtool")
    unpacked = folder / "usr/bin/promtool"
    if not found and not unpacked.exists():
        _fetch(folder)
    return found or str(unpacked)


def _fetch(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip(f"promtool cannot be had: no apt-get and dpkg ({HINT})")
    _do(folder, ["apt-get", "download", "--quiet", "prometheus"])
    (package,) = folder.glob("prometheus_*.deb")
    _do(folder, ["dpkg", "-x", str(package), str(folder)])
    package.unlink()


def _do(folder: Path, command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"promtool cannot be had: {command[0]} took longer than 60 s ({HINT})")
    if done.returncode != 0:
        pytest.skip(f"promtool cannot be had: {done.stderr.strip()[-200:]} ({HINT})")
