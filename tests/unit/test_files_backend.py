"""Growing files as streams: whole records, each once, whatever happens to the files."""

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.spark.sources.backends.backend import Malformed, Positions, Ranges
from penstock.spark.sources.backends.files import FilesBackend

SCHEMA = pa.schema([("seq", pa.int64()), ("text", pa.string())])


class Reader:
    """Reads a directory as the source does: how far it reaches, and then that."""

    def __init__(self, folder: Path, form: str = "json", **options: object) -> None:
        self.backend = FilesBackend.from_options(
            {"directory": str(folder), "format": form, **options}
        )
        self.at: dict[str, tuple[int, int]] = {}
        self.fault: dict[str, str] = {}
        self.malformed: list[Malformed] = []

    def read(self, rows: int | None = None) -> dict[str, list[int]]:
        for stream in self.backend.discover():
            if stream.name not in self.at:
                first = self.backend.first([stream.name])
                self.at[stream.name] = (int(first.major[0]), int(first.minor[0]))
        names = list(self.at)
        start = _positions([self.at[name] for name in names])
        latest = self.backend.latest(names, start)
        self.fault = {n: f for n, f in zip(names, latest.fault, strict=True) if f}
        take = [i for i in range(len(names)) if not latest.fault[i] and latest.waiting_rows[i]]
        names = [names[i] for i in take]
        start, end = start.take(np.array(take, int)), latest.end.take(np.array(take, int))
        if rows is not None:
            end = self.backend.advance(names, start, end, np.full(len(names), rows)).end
        found: dict[str, list[int]] = {}
        ranges = Ranges(names, start, end, latest.waiting_rows[take])
        for chunk in self.backend.read(ranges, SCHEMA):
            self.malformed += chunk.malformed
            seqs = iter(chunk.rows.column(0).to_pylist())
            for number, count in zip(chunk.ranges.tolist(), chunk.counts.tolist(), strict=True):
                found.setdefault(names[number], []).extend(next(seqs) for _ in range(count))
        for place, name in enumerate(names):
            self.at[name] = (int(end.major[place]), int(end.minor[place]))
        return {name: seqs for name, seqs in found.items() if seqs}


def _positions(places: list[tuple[int, int]]) -> Positions:
    columns = np.array(places, dtype=np.int64).reshape(-1, 2)
    return Positions(columns[:, 0], columns[:, 1])


def lines(*seqs: int) -> str:
    return "".join(json.dumps({"seq": seq, "text": "x" * (seq % 5)}) + "\n" for seq in seqs)


def append(file: Path, text: str) -> None:
    with file.open("a") as stream:
        stream.write(text)


def test_record_is_read_when_it_is_whole(tmp_path: Path) -> None:
    reader, file = Reader(tmp_path), tmp_path / "a.json"
    text = lines(*range(4))
    seen = []
    for cut in range(0, len(text) + 1, 7):
        file.write_text(text[:cut]) if cut == 0 else append(file, text[cut - 7 : cut])
        seen += reader.read().get("a.json", [])
    append(file, text[cut:])
    seen += reader.read().get("a.json", [])
    assert seen == [0, 1, 2, 3]


def test_bounded_ranges_read_every_record_once(tmp_path: Path) -> None:
    append(tmp_path / "a.json", lines(*range(500)))
    append(tmp_path / "b.json", lines(*range(90)))
    reader = Reader(tmp_path)
    found: dict[str, list[int]] = {"a.json": [], "b.json": []}
    for _ in range(200):
        for name, seqs in reader.read(rows=7).items():
            found[name] += seqs
    assert found == {"a.json": list(range(500)), "b.json": list(range(90))}


def test_malformed_records_are_set_apart_with_their_place(tmp_path: Path) -> None:
    text = lines(0) + "{broken\n\n" + '{"seq": "x"}\n' + lines(1)
    append(tmp_path / "a.json", text)
    reader = Reader(tmp_path)
    assert reader.read() == {"a.json": [0, 1]}
    assert [(m.stream, m.raw) for m in reader.malformed] == [
        ("a.json", b"{broken"), ("a.json", b'{"seq": "x"}'),
    ]  # fmt: skip
    assert [text[int(m.offset) :].encode().startswith(m.raw) for m in reader.malformed] == [
        True
    ] * 2


def test_csv_with_a_header(tmp_path: Path) -> None:
    append(tmp_path / "a.csv", "seq,text\n1,a\n2,\n")
    reader = Reader(tmp_path, "csv", header=True)
    assert reader.read() == {"a.csv": [1, 2]}
    append(tmp_path / "a.csv", "3,c\nx\n")
    assert reader.read() == {"a.csv": [3]}
    assert reader.malformed[0].raw == b"x"


def test_rotated_file_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    reader, file = Reader(tmp_path), tmp_path / "app.log"
    append(file, lines(0, 1))
    assert reader.read() == {"app.log": [0, 1]}
    append(file, lines(2) + lines(3).rstrip("\n"))  # the last line never gets its line break
    file.rename(tmp_path / "app.log.1")
    append(file, lines(4, 5))
    seen = reader.read().get("app.log", []) + reader.read().get("app.log", [])
    assert seen == [2, 3, 4, 5]
    assert reader.fault == {}
    append(file, lines(6))
    assert reader.read() == {"app.log": [6]}


def test_file_that_shrinks_is_suspended_until_it_is_whole_again(tmp_path: Path) -> None:
    reader, file = Reader(tmp_path), tmp_path / "a.json"
    append(file, lines(*range(10)))
    reader.read()
    content = file.read_text()
    with file.open("r+") as stream:
        stream.truncate(30)
    assert reader.read() == {}
    assert "it shrank to 30 bytes" in reader.fault["a.json"]
    with file.open("w") as stream:
        stream.write(content + lines(10))
    assert reader.read() == {"a.json": [10]}
    with file.open("w") as stream:
        stream.write("")
    assert "it shrank" in (reader.read(), reader.fault["a.json"])[1]
    with file.open("w") as stream:
        stream.write(lines(*range(900, 999)))
    assert reader.read() == {}
    assert reader.fault["a.json"] == "it was rewritten from its start"


def test_file_that_vanishes_is_suspended_and_may_come_back(tmp_path: Path) -> None:
    reader, file = Reader(tmp_path), tmp_path / "a.json"
    append(file, lines(0))
    reader.read()
    append(file, lines(1))
    hidden = tmp_path.parent / "elsewhere"
    file.rename(hidden)
    assert reader.read() == {}
    assert reader.fault == {"a.json": "it vanished"}
    hidden.rename(file)
    assert reader.read() == {"a.json": [1]}


def arrow_bytes(batches: list[list[int]]) -> list[bytes]:
    """An IPC stream in pieces: its schema, then each record batch."""
    sink = pa.BufferOutputStream()
    pieces, at = [], 0
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        for batch in [[], *batches]:
            if batch:
                columns = [pa.array(batch), pa.array(["t"] * len(batch))]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
            pieces.append(sink.tell() - at)
            at = sink.tell()
    data = sink.getvalue().to_pybytes()
    cuts = np.cumsum([0, *pieces]).tolist()
    return [data[a:b] for a, b in itertools.pairwise(cuts)]


@pytest.mark.parametrize("torn", [0, 9, 60])
def test_arrow_streams_grow_by_record_batches(tmp_path: Path, torn: int) -> None:
    reader, file = Reader(tmp_path, "arrow"), tmp_path / "a.arrow"
    begins, first, second, third = arrow_bytes([[0, 1, 2], [3], [4, 5]])
    file.write_bytes(begins + first + second[:torn])
    assert reader.read() == {"a.arrow": [0, 1, 2]}
    assert reader.read() == {}
    file.write_bytes(begins + first + second + third)
    assert reader.read(rows=1) == {"a.arrow": [3]}
    assert reader.read() == {"a.arrow": [4, 5]}


def test_arrow_file_of_another_schema_is_malformed_not_fatal(tmp_path: Path) -> None:
    other = pa.schema([("other", pa.int64())])
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, other) as out:
        out.write_batch(pa.RecordBatch.from_arrays([pa.array([1])], schema=other))
    reader = Reader(tmp_path, "arrow")
    assert reader.read() == {}
    assert "seq" in reader.malformed[0].reason


def test_arrow_batch_that_points_outside_itself_is_malformed(tmp_path: Path) -> None:
    begins, damaged, sound = arrow_bytes([[0, 1, 2], [3]])
    offsets = np.array([0, 1, 2, 3], dtype=np.int32).tobytes()
    assert damaged.count(offsets) == 1
    damaged = damaged.replace(offsets, np.array([0, 9999, 2, 3], dtype=np.int32).tobytes())
    (tmp_path / "a.arrow").write_bytes(begins + damaged + sound)
    reader = Reader(tmp_path, "arrow")
    assert reader.read() == {"a.arrow": [3]}
    (letter,) = reader.malformed
    data = (tmp_path / "a.arrow").read_bytes()
    assert data[int(letter.offset) :].startswith(letter.raw), "where it is, and all of it"


def make_anew(file: Path, data: bytes) -> None:
    """As if deleted and made again, where the file system gives the same inode once more."""
    inode = file.stat().st_ino
    with file.open("r+b") as stream:
        stream.truncate(0)
        stream.write(data)
    assert file.stat().st_ino == inode


@pytest.mark.parametrize("same_start", [False, True])
def test_file_made_anew_with_the_same_inode_is_suspended(tmp_path: Path, same_start: bool) -> None:
    reader, file = Reader(tmp_path), tmp_path / "a.json"
    append(file, lines(*range(20)))
    assert reader.read() == {"a.json": list(range(20))}
    append(file, lines(20))
    assert reader.read() == {"a.json": [20]}
    kept = range(10) if same_start else range(500, 510)
    make_anew(file, lines(*kept, *range(900, 950)).encode())
    for _ in range(3):
        assert reader.read() == {}, "not read on from where the other file was read to"
        assert reader.fault["a.json"] == "it was rewritten from its start"
    make_anew(file, lines(*range(22)).encode())
    assert reader.read() == {"a.json": [21]}, "the file as it was, and grown"


def test_arrow_file_made_anew_with_the_same_inode_is_suspended(tmp_path: Path) -> None:
    reader, file = Reader(tmp_path, "arrow"), tmp_path / "a.arrow"
    file.write_bytes(b"".join(arrow_bytes([[0, 1], [2, 3]])))
    assert reader.read() == {"a.arrow": [0, 1, 2, 3]}
    make_anew(file, b"".join(arrow_bytes([[9, 8], [7, 6], [5, 4]])))
    assert reader.read() == {}
    assert reader.fault["a.arrow"] == "it was rewritten from its start"


def test_another_file_that_got_the_inode_is_not_taken_for_the_one_that_was_read(
    tmp_path: Path,
) -> None:
    reader, file = Reader(tmp_path), tmp_path / "a.log"
    append(file, lines(0, 1))
    assert reader.read() == {"a.log": [0, 1]}
    make_anew(file, lines(*range(100, 120)).encode())
    file.rename(tmp_path / "b.log")
    append(file, lines(2, 3))
    seen = reader.read()
    assert seen.get("a.log") in (None, [2, 3])
    assert seen.get("b.log", list(range(100, 120))) == list(range(100, 120))
    seen = seen or reader.read()
    assert seen["b.log"] == list(range(100, 120))


@pytest.mark.parametrize("form", ["json", "arrow"])
def test_what_is_known_of_files_that_left_is_forgotten(tmp_path: Path, form: str) -> None:
    backend = FilesBackend.from_options({"directory": str(tmp_path), "format": form})
    data = lines(0).encode() if form == "json" else b"".join(arrow_bytes([[0]]))
    for number in range(2000):
        name = f"{number}.{form}"
        (tmp_path / name).write_bytes(data)
        backend.latest([name], backend.first([name]))
        (tmp_path / name).unlink()
    learnt = getattr(backend._layout, {"json": "_lines_of", "arrow": "_known"}[form])
    kept = [backend._seen, backend._fingerprints._known, learnt]
    assert max(len(known) for known in kept) < 1000


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("bound", [None, 2])
def test_counts_of_many_small_reads_add_up_to_the_lines(
    tmp_path: Path, form: str, bound: int | None
) -> None:
    """One line or a few in each look, of streams whose lines differ in length."""
    backend = FilesBackend.from_options(
        {"directory": str(tmp_path), "format": form, "header": form == "csv"}
    )
    random = np.random.default_rng(7)
    texts = {"short": 5, "middle": 60, "long": 400}
    for name in texts:
        (tmp_path / name).write_text("seq,text\n" if form == "csv" else "")
    names = list(texts)
    at, written, counted = backend.first(names), 0, 0
    for seq in itertools.count():
        latest = backend.latest(names, at)
        todo = np.flatnonzero(latest.waiting_rows)
        if seq >= 500 and len(todo) == 0:
            break
        some = [names[number] for number in todo.tolist()]
        start, end = at.take(todo), latest.end.take(todo)
        count = latest.waiting_rows[todo]
        if bound is not None:
            advance = backend.advance(some, start, end, np.minimum(count, bound))
            end, count = advance.end, advance.rows
        counted += int(count.sum())
        at = at.put(todo, end)
        for name, length in texts.items() if seq < 500 else ():
            for _ in range(int(random.integers(0, 4))):
                text = "x" * int(length * random.uniform(0.8, 1.2))
                row = {"seq": seq, "text": text}
                line = json.dumps(row) if form == "json" else ",".join(map(str, row.values()))
                append(tmp_path / name, line + "\n")
                written += 1
    assert counted == pytest.approx(written, rel=0.04)
