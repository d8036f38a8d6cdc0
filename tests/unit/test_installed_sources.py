"""Whether Spark has to look for Python sources in installed packages."""

import sys
from pathlib import Path

import pytest

from penstock.spark.cluster.session import _offers_sources


@pytest.fixture
def this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)


@pytest.mark.usefixtures("this_python")
def test_a_package_that_may_offer_one_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not _offers_sources()
    (tmp_path / "pyspark_of_a_user.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _offers_sources()


def test_another_python_may_have_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "python-of-another-environment")
    assert _offers_sources()
