"""The example of docs/your-own-source.md: what the page shows is what runs, rows once each."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("name", ["sqlite_backend.py", "own_source.py"])
def test_the_page_shows_the_example(name: str) -> None:
    page = (ROOT / "docs/your-own-source.md").read_text()
    assert (EXAMPLES / name).read_text().rstrip() in page


@pytest.mark.spark
def test_tables_are_read_through_a_source_of_ones_own(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    shutil.copy(EXAMPLES / "own_source.py", tmp_path)
    sell(tmp_path, "bakery", 500)
    sell(tmp_path, "cinema", 300)
    run(tmp_path)
    assert large(tmp_path) == expected({"bakery": 500, "cinema": 300})
    if not request.config.getoption("--long"):
        return
    sell(tmp_path, "cinema", 200)  # what is read already is not read again
    sell(tmp_path, "zoo", 40)
    run(tmp_path)
    assert large(tmp_path) == expected({"bakery": 500, "cinema": 500, "zoo": 40})


def test_a_backend_that_nobody_can_import_is_refused_in_one_sentence(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "own_source.py", tmp_path)
    done = penstock(tmp_path, python_path="")
    assert done.returncode == 2
    assert "source 'orders': backend 'sqlite_backend:SqliteTables' cannot be" in done.stderr
    assert "Traceback" not in done.stderr


def sell(folder: Path, shop: str, orders: int) -> None:
    connection = sqlite3.connect(folder / "shops.sqlite")
    with connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {shop} (id INTEGER PRIMARY KEY, cents INTEGER)"
        )
        (known,) = connection.execute(f"SELECT count(*) FROM {shop}").fetchone()
        values = [(cents(known + number + 1),) for number in range(orders)]
        connection.executemany(f"INSERT INTO {shop} (cents) VALUES (?)", values)
    connection.close()


def cents(number: int) -> int:
    return number * 997 % 20_000


def expected(orders: dict[str, int]) -> list[tuple[str, int]]:
    return [
        (shop, number)
        for shop, count in sorted(orders.items())
        for number in range(1, count + 1)
        if cents(number) >= 10_000
    ]


def run(folder: Path) -> None:
    done = penstock(folder, python_path=str(EXAMPLES))
    assert done.returncode == 0, done.stderr


def penstock(folder: Path, python_path: str) -> subprocess.CompletedProcess[str]:
    before = os.environ.get("PYTHONPATH", "")
    environment = os.environ | {"PYTHONPATH": f"{python_path}{os.pathsep}{before}"}
    words = [
        "run",
        "own_source.py",
        "--once",
        "--json",
        "--checkpoint",
        "state",
        "--master",
        "local[2]",
    ]
    return subprocess.run(
        [sys.executable, "-m", "penstock", *words], cwd=folder, capture_output=True, text=True,
        timeout=240, check=False, env=environment,
    )  # fmt: skip


def large(folder: Path) -> list[tuple[str, int]]:
    files = list(map(str, (folder / "out/large").glob("batch=*/*.parquet")))
    rows = ds.dataset(files).to_table()
    return sorted(zip(rows["shop"].to_pylist(), rows["id"].to_pylist(), strict=True))
