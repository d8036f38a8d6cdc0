"""The wheel holds the package, its page and its templates, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from package_contents import complaints  # noqa: E402


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_is_complete(wheel: Path) -> None:
    assert complaints(wheel) == []


def test_what_is_missing_or_too_much_is_named(wheel: Path, tmp_path: Path) -> None:
    other = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(other, "w") as partial:
        for name in whole.namelist():
            if not name.endswith(("py.typed", "page.js")):
                partial.writestr(name, whole.read(name))
        partial.writestr("experiments/drs.py", "")
    assert complaints(other) == [
        "src/penstock/dashboard/assets/page.js is missing",
        "src/penstock/py.typed is missing",
        "experiments/drs.py does not belong",
    ]
