"""docs/extending.md, done as it is written: a policy, an option and a source, on a copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`([\w/.]+\.py)`:\n\n```python\n(.*?)^```", TEXT, re.M | re.S)
CHANGES = re.findall(r"^```diff\n(.*?)^```", TEXT, re.M | re.S)
SCENARIO = ROOT / "examples" / "scenarios" / "toll_road.toml"


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with all that the page adds."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "new").mkdir()
    for name, text in FILES:
        # Tests are the project's; only the new one is written, beside them.
        place = folder / ("new" if name.startswith("tests/") else "") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for change in CHANGES:
        apply = ["git", "apply", "--unidiff-zero", "--recount", "-"]
        subprocess.run(apply, cwd=folder, input=change, text=True, check=True)
    return folder


def ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(folder / name) for name in ("src", "tests"))
    return subprocess.run(
        [sys.executable, "-m", *command], env={**os.environ, "PYTHONPATH": paths}, cwd=folder,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_the_page_adds_three_things() -> None:
    assert len(FILES) == 3
    assert len(CHANGES) == 3


def test_a_policy_that_was_added_runs_and_its_options_are_checked(extended: Path) -> None:
    command = ("penstock", "simulate", str(SCENARIO), "--policy", "headroom")
    done = ran(extended, *command, "--policy-option", "room=1")
    assert done.returncode == 0, done.stderr
    assert "is kept free" in done.stdout
    refused = ran(extended, *command, "--policy-option", "room=-1")
    assert refused.returncode == 2
    assert "room" in refused.stderr
    assert "0 to 10" in refused.stderr


def test_a_policy_that_was_added_is_held_to_the_contract(extended: Path) -> None:
    tests = str(ROOT / "tests" / "contract" / "test_scaling_policies.py")
    done = ran(extended, "pytest", "-q", "-k", "headroom", "-p", "no:cacheprovider", tests)
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout


def test_an_option_that_was_added_has_its_effect(extended: Path) -> None:
    command = ("penstock", "simulate", str(SCENARIO), "--policy", "static")
    done = ran(extended, *command, "--policy-option", "processors=3")
    assert done.returncode == 0, done.stderr
    assert "as the user says" in done.stdout


def test_a_source_that_was_added_keeps_the_contract(extended: Path) -> None:
    tests = extended / "new" / "tests" / "contract" / "test_counting_backend.py"
    done = ran(extended, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tests.parent),
               "-c", os.devnull, str(tests))  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout
