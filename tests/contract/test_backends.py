"""Every backend that needs no server keeps the contract that users' own are tested by."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InvalidInput
from penstock.sources import Backend
from penstock.spark.sources.backends.classes import backend_class
from penstock.spark.sources.backends.files import FilesBackend
from penstock.spark.sources.backends.generators import GeneratorsBackend
from penstock.testing import BackendContract
from penstock.workloads.generator import SCHEMA, Generator
from penstock.workloads.profiles import constant

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBERED = pa.schema([("seq", pa.int64())])


class Numbered(BackendContract):
    """Records with a column `seq`, in a folder of their own."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.written: dict[str, int] = {}

    def schema(self) -> pa.Schema:
        return NUMBERED

    def numbers(self, rows: pa.RecordBatch) -> list[int]:
        found: list[int] = rows.column(0).to_pylist()
        return found

    def append(self, stream: str, count: int) -> None:
        first = self.written.get(stream, 0)
        self.written[stream] = first + count
        self.write(stream, list(range(first, first + count)))

    def write(self, stream: str, numbers: list[int]) -> None:
        raise NotImplementedError


class TestLineFiles(Numbered):
    """JSON lines; rows are estimated by their mean length, here too short to be wrong."""

    counts_exactly = False

    def make(self) -> Backend:
        return FilesBackend.from_options({"directory": str(self.folder), "format": "json"})

    def write(self, stream: str, numbers: list[int]) -> None:
        with (self.folder / stream).open("a") as file:
            file.writelines(json.dumps({"seq": number}) + "\n" for number in numbers)


class TestCsvFiles(Numbered):
    counts_exactly = False

    def make(self) -> Backend:
        return FilesBackend.from_options({"directory": str(self.folder), "format": "csv"})

    def write(self, stream: str, numbers: list[int]) -> None:
        with (self.folder / stream).open("a") as file:
            file.writelines(f"{number}\n" for number in numbers)


class TestArrowFiles(Numbered):
    """One record batch for each record, as ranges end at record batches."""

    def make(self) -> Backend:
        return FilesBackend.from_options({"directory": str(self.folder), "format": "arrow"})

    def write(self, stream: str, numbers: list[int]) -> None:
        file = self.folder / stream
        known = file.stat().st_size if file.exists() else 0
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, NUMBERED) as writer:
            for number in range(numbers[-1] + 1):
                batch = pa.RecordBatch.from_arrays([pa.array([number])], schema=NUMBERED)
                writer.write_batch(batch)
            end = sink.tell()  # a stream that is closed would have ended
        with file.open("ab") as out:
            out.write(sink.getvalue().to_pybytes()[known:end])


class TestGenerators(BackendContract):
    """Streams of which more rows have arrived each time."""

    @pytest.fixture(autouse=True)
    def _nothing(self) -> None:
        self.rows = dict.fromkeys(self.streams, 0)

    def make(self) -> Backend:
        made = {
            name: json.loads(Generator(constant(1e6), rows=rows).to_json())
            for name, rows in self.rows.items()
        }
        return GeneratorsBackend.from_options({"generators": made, "epoch_s": 0.0})

    def append(self, stream: str, count: int) -> None:
        self.rows[stream] += count

    def schema(self) -> pa.Schema:
        return SCHEMA

    def numbers(self, rows: pa.RecordBatch) -> list[int]:
        found: list[int] = rows.column(0).to_pylist()
        return found


class TestSqliteExample(Numbered):
    """The example of docs/your-own-source.md."""

    @pytest.fixture(autouse=True)
    def _example(self, _folder: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.syspath_prepend(str(EXAMPLES))
        self.database = self.folder / "shops.sqlite"
        sqlite3.connect(self.database).close()
        yield
        sys.modules.pop("sqlite_backend", None)

    def make(self) -> Backend:
        found = backend_class("sqlite_backend:SqliteTables")
        return found.from_options({"database": str(self.database)})

    def write(self, stream: str, numbers: list[int]) -> None:
        connection = sqlite3.connect(self.database)
        with connection:
            connection.execute(
                f'CREATE TABLE IF NOT EXISTS "{stream}" (id INTEGER PRIMARY KEY, seq)'
            )
            values = [(number,) for number in numbers]
            connection.executemany(f'INSERT INTO "{stream}" (seq) VALUES (?)', values)
        connection.close()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("tables", "allowed: files, generators, redis, kafka or package.module:Class"),
        ("no_such_module:Tables", "cannot be imported: No module named 'no_such_module'"),
        ("json:JSONDecoder", "is not a class derived from penstock.sources.Backend"),
        ("json:nothing", "is not a class derived from"),
    ],
)
def test_a_backend_that_cannot_be_used_is_refused(kind: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        backend_class(kind)
    assert said in str(refused.value)


def test_options_that_are_no_secret_to_a_checkpoint_are_none_to_its_reader() -> None:
    class Mine(FilesBackend):
        pass

    options: dict[str, Any] = {"url": "db://user:hush@host"}
    assert "hush" not in Mine.identity(options)
    assert Mine.identity(options) != Mine.identity({"url": "db://user:hush@elsewhere"})
