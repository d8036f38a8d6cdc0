"""A channel keeps each batch once, for as long as any reader needs it."""

import fcntl
import json
import os
import pickle
import threading
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import (
    ArrayType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.errors import InvalidInput, Unavailable
from penstock.model.arrivals import Arrivals
from penstock.spark.channels.chunks import Summed, read_piece, write_chunk
from penstock.spark.channels.entries import Chunk, Entry, merged, share
from penstock.spark.channels.log import Channel, Piece
from penstock.spark.channels.published import PublishedLog
from penstock.spark.channels.publishing import schema_json
from penstock.spark.channels.source import ChannelSource
from penstock.spark.checkpoint.sealed import read_sealed, sealed
from penstock.spark.sources.reader import _check_arrow
from penstock.spark.sources.settings import SourceSettings

SCHEMA = json.dumps({"type": "struct", "fields": []})


def publish(
    channel: Channel, batch: int, parts: list[list[int]], writer: str = "w",
    arrivals: Arrivals | None = None,
) -> bool:  # fmt: skip
    """A batch of files, each of these numbers."""
    staged = channel.directory / "_staged" / f"{writer}-{batch}"
    staged.mkdir(parents=True, exist_ok=True)
    chunks = []
    for number, rows in enumerate(parts):
        name = f"{writer}-{batch}-{number}.arrow"
        with (staged / name).open("wb") as stream:
            write_chunk(pa.table({"n": pa.array(rows, pa.int64())}), summed := Summed(stream))
        chunks.append(Chunk(name, len(rows), summed.crc32))
    return channel.publish(writer, batch, staged, chunks, arrivals)


def read(channel: Channel, start: int, end: int) -> list[int]:
    batches = [b for piece in channel.pieces(start, end) for b in read_piece(piece)]
    return [n for batch in batches for n in batch.column("n").to_pylist()]


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel.create(tmp_path / "channel", SCHEMA)


def files(channel: Channel) -> int:
    return len(list((channel.directory / "data").iterdir()))


def test_rows_are_numbered_through_and_any_range_can_be_read(channel: Channel) -> None:
    publish(channel, 0, [[0, 1, 2], [3]])
    publish(channel, 1, [[4, 5]])
    publish(channel, 7, [[6], [7, 8, 9]])
    for start in range(10):
        for end in range(start + 1, 11):
            assert read(channel, start, end) == list(range(start, end))
    assert Channel(channel.directory).end_row() == 10


def test_columns_that_are_never_null_are_read_as_the_channel_declares_them(tmp_path: Path) -> None:
    """Spark takes rows of exactly the declared schema, where any column may be null."""
    inner = StructType([StructField("b", LongType(), False)])
    emitted = StructType(
        [
            StructField("a", LongType(), False),
            StructField("s", inner, False),
            StructField("l", ArrayType(inner, False), False),
            StructField("m", MapType(StringType(), LongType(), False), False),
            StructField("at", TimestampType(), False),
        ]
    )
    channel = Channel.create(tmp_path / "c", schema_json(emitted))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [{"a": 1, "s": {"b": 2}, "l": [{"b": 3}], "m": {"k": 4}, "at": at}]
    staged = channel.directory / "_staged"
    staged.mkdir()
    with (staged / "f").open("wb") as stream:
        write_chunk(pa.Table.from_pylist(rows, to_arrow_schema(emitted, timezone="UTC")), stream)
    channel.publish("w", 0, staged, [Chunk("f", 1)])
    source = ChannelSource({"path": str(channel.directory), "reader": "r"})
    reader = source.streamReader(source.schema())
    begin = reader.initialOffset()
    (part,) = reader.partitions(begin, reader.latestOffset(begin, ReadAllAvailable()))
    (read_rows,) = pickle.loads(pickle.dumps(reader)).read(part)
    assert read_rows.schema.equals(to_arrow_schema(source.schema(), timezone="UTC"))
    assert read_rows.to_pylist() == [{**rows[0], "m": [("k", 4)]}]


def test_a_batch_that_comes_again_is_not_published_twice(channel: Channel) -> None:
    assert publish(channel, 0, [[0]])
    assert publish(channel, 1, [[1]])
    again = Channel(channel.directory)
    assert not publish(again, 1, [[1]])
    assert not publish(again, 0, [[0]])
    assert publish(again, 1, [[2]], writer="another")
    assert read(again, 0, again.end_row()) == [0, 1, 2]


def test_a_crash_between_the_files_and_the_log_is_finished_by_the_next_attempt(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", crash)
        with pytest.raises(KeyboardInterrupt):
            publish(channel, 0, [[0], [1]])
    assert Channel(channel.directory).end_row() == 0
    again = Channel(channel.directory)
    assert publish(again, 0, [[0], [1]])
    assert read(again, 0, 2) == [0, 1]
    assert not publish(again, 0, [[0], [1]])


def test_a_restarted_writer_knows_its_batches_though_their_entries_were_cleaned(
    channel: Channel,
) -> None:
    channel.register("r")
    publish(channel, 0, [[0]], writer="early")
    for batch in range(5):
        publish(channel, batch, [[batch + 1]])
    channel.advance("r", 6)
    assert files(channel) == 0
    again = Channel(channel.directory)
    assert not publish(again, 0, [[0]], writer="early")
    assert not publish(again, 4, [[5]])
    assert publish(again, 5, [[6]])
    assert read(again, 6, 7) == [6]


def test_files_stay_until_the_last_reader_has_passed(channel: Channel) -> None:
    assert channel.register("quick") == channel.register("slow") == 0
    for batch in range(4):
        publish(channel, batch, [[batch]])
    channel.advance("quick", 4)
    assert files(channel) == 4
    channel.advance("slow", 1)
    assert files(channel) == 3
    assert channel.positions() == {"quick": 4, "slow": 1}
    assert read(channel, 1, 4) == [1, 2, 3]
    assert channel.register("late") == 1
    assert channel.register("slow") == 0, "where it began does not change"
    channel.forget("late")
    channel.advance("slow", 4)
    assert files(channel) == 0
    with pytest.raises(InvalidInput, match="removed when all readers had passed"):
        channel.entries(0, 4)


def test_an_old_position_never_goes_back(channel: Channel) -> None:
    channel.register("r")
    publish(channel, 0, [[0, 1]])
    channel.advance("r", 2)
    channel.advance("r", 1)
    assert channel.positions() == {"r": 2}


def test_arrivals_travel_by_shares() -> None:
    behind = Arrivals(40.0, 10.0, 20.0, 14.0)
    entry = Entry(0, "w", 0, 100, (Chunk("a", 10), Chunk("b", 10)), 0.0, behind)
    assert share(entry, 110, 200) == Arrivals(20.0, 10.0, 20.0, 14.0)
    assert share(entry, 0, 100) is None
    whole = merged([behind, Arrivals(40.0, 15.0, 30.0, 22.0)])
    assert whole == Arrivals(80.0, 10.0, 30.0, 18.0)
    assert merged([]) is None


def no_header(path: Path) -> None:
    (path / "channel.json").unlink()


def damaged_header(path: Path) -> None:
    (path / "channel.json").write_text("{")


def foreign_header(path: Path) -> None:
    (path / "channel.json").write_text('{"format": "something else"}')


def future_version(path: Path) -> None:
    document = read_sealed(path / "channel.json")
    (path / "channel.json").write_bytes(sealed({**document, "version": 99}))


def damaged_entry(path: Path) -> None:
    (path / "log" / "000000000000.json").write_text('{"sequence": 0')


def leading_elsewhere(path: Path) -> None:
    file = path / "log" / "000000000000.json"
    document = read_sealed(file)
    file.write_bytes(sealed({**document, "chunks": [["../../secret", 1]]}))


def lost_file(path: Path) -> None:
    next((path / "data").iterdir()).unlink()


def damaged_file(path: Path) -> None:
    next((path / "data").iterdir()).write_bytes(b"no arrow")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_header, "is not a channel: it has no channel.json"),
        (damaged_header, "channel.json is damaged"),
        (foreign_header, "describes something else"),
        (future_version, "version 99"),
        (damaged_entry, "log entry 000000000000.json is damaged"),
        (leading_elsewhere, "not a plain file name"),
        (lost_file, "cannot be read"),
        (damaged_file, "cannot be read"),
    ],
)
def test_a_damaged_or_foreign_directory_is_told_in_one_sentence(
    channel: Channel, spoil: object, words: str
) -> None:
    publish(channel, 0, [[0]])
    spoil(channel.directory)  # type: ignore[operator]
    with pytest.raises(InvalidInput, match=words) as refusal:
        read(Channel(channel.directory), 0, 1)
    assert "\n" not in str(refusal.value)


def test_a_directory_of_something_else_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds other files"):
        Channel.create(tmp_path, SCHEMA)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_another_schema_is_refused(channel: Channel) -> None:
    other = json.dumps({"type": "struct", "fields": [{"name": "x"}]})
    with pytest.raises(InvalidInput, match="another schema"):
        Channel.create(channel.directory, other)


def test_it_is_private(channel: Channel) -> None:
    assert channel.directory.stat().st_mode & 0o077 == 0


def test_whoever_looks_seldom_misses_nothing(channel: Channel) -> None:
    onlooker = Channel(channel.directory)
    channel.register("r")
    publish(channel, 0, [[0]])
    assert onlooker.end_row() == 1
    for batch in range(1, 6):
        publish(channel, batch, [[batch]])
        channel.advance("r", batch + 1)
    assert len(list((channel.directory / "log").iterdir())) < 6, "old entries are gone"
    assert onlooker.end_row() == 6


def test_a_kill_between_link_and_unlink_leaves_the_published_entry_as_it_is(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_and_die(source: Path, target: Path) -> None:
        link(source, target)
        raise KeyboardInterrupt

    publish(channel, 0, [[1, 2, 3, 4, 5, 6]])
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", link_and_die)
        with pytest.raises(KeyboardInterrupt):
            publish(channel, 1, [[7, 8, 9, 10]])
    again = Channel(channel.directory)
    assert not publish(again, 1, [[7, 8, 9, 10]])
    assert publish(again, 2, [[11, 12]])
    assert read(Channel(channel.directory), 6, 12) == [7, 8, 9, 10, 11, 12]
    assert not list((channel.directory / "log").glob("*.new")), "the scratch is gone"
    assert not list((channel.directory / "log").glob(".*")), "the scratch is gone"


def test_what_an_older_version_left_half_published_is_not_written_to(channel: Channel) -> None:
    publish(channel, 0, [[1, 2]])
    log = channel.directory / "log"
    os.link(log / "000000000000.json", log / ".w.new")
    assert publish(Channel(channel.directory), 1, [[3]])
    assert read(Channel(channel.directory), 0, 3) == [1, 2, 3]
    assert [file.name for file in sorted(log.iterdir())] == [
        "000000000000.json",
        "000000000001.json",
    ]


def test_a_kill_while_the_header_is_written_does_not_stop_the_next_start(tmp_path: Path) -> None:
    for left in ("channel.new", ".channel.json.1f2e.new", "lock"):
        directory = tmp_path / left.strip(".")
        directory.mkdir()
        (directory / left).write_text("{")
        made = Channel.create(directory, SCHEMA)
        assert publish(made, 0, [[1]])
        assert not list(directory.glob("*.new"))


def test_a_reader_that_registers_while_another_advances_loses_nothing(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newcomer comes just when it is decided what nobody needs any more."""
    channel.register("quick")
    publish(channel, 0, [[0, 1]])
    publish(channel, 1, [[2, 3]])
    first_row: list[int] = []
    newcomer = threading.Thread(
        target=lambda: first_row.append(Channel(channel.directory).register("newcomer"))
    )
    clean = Channel._clean

    def interrupted(self: Channel, passed_row: int) -> None:
        newcomer.start()
        newcomer.join(0.2)  # it ends at once where nothing holds it up
        clean(self, passed_row)

    with monkeypatch.context() as patched:
        patched.setattr(Channel, "_clean", interrupted)
        channel.advance("quick", 4)
    newcomer.join()
    again = Channel(channel.directory)
    assert read(again, first_row[0], 4) == list(range(first_row[0], 4))


def test_a_name_is_one_runs_reader_at_a_time(channel: Channel) -> None:
    channel.register("reader")
    other = Channel(channel.directory)
    with channel.held("reader"):
        with other.held("another"):
            pass
        with pytest.raises(Unavailable, match="is in use by another run"):
            other.held("reader").__enter__()
    with other.held("reader"):
        assert channel.positions() == {"reader": 0}


def test_readers_advance_and_leave_one_at_a_time(channel: Channel) -> None:
    channel.register("a")
    publish(channel, 0, [[0]])
    with (channel.directory / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        steps = [
            threading.Thread(target=Channel(channel.directory).advance, args=("a", 1)),
            threading.Thread(target=Channel(channel.directory).forget, args=("b",)),
        ]
        for step in steps:
            step.start()
        for step in steps:
            step.join(0.1)
        assert all(step.is_alive() for step in steps)
    for step in steps:
        step.join()
    assert channel.positions() == {"a": 1}


def test_entries_published_while_the_log_is_looked_at_are_not_skipped(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    onlooker = Channel(channel.directory)
    publish(channel, 0, [[0]])
    assert onlooker.end_row() == 1
    take, missed = PublishedLog._take, []

    def slow(self: PublishedLog, number: int) -> bool:
        found = take(self, number)
        if not found and not missed:
            missed.append(number)
            publish(channel, 1, [[1]])
            publish(channel, 2, [[2]])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(PublishedLog, "_take", slow)
        onlooker.refresh()
    assert missed == [1]
    assert read(onlooker, 0, 3) == [0, 1, 2]


def test_a_listing_that_shows_a_later_entry_without_an_earlier_one_is_not_believed(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that grows while it is listed may show the last of its names only."""
    for number in range(3):
        publish(channel, number, [[number]])
    listdir, seen = os.listdir, []

    def partial(path: Path) -> list[str]:
        names = listdir(path)
        if Path(path).name == "log" and not seen:
            seen.append(path)
            return [name for name in names if not name.endswith("1.json")]
        return names

    monkeypatch.setattr(os, "listdir", partial)
    assert read(Channel(channel.directory), 0, 3) == [0, 1, 2]
    assert seen


def wrong_offsets() -> pa.RecordBatch:
    """Texts of which one reaches far beyond its data."""
    offsets = pa.py_buffer(np.array([0, 1 << 20, 4], dtype=np.int32).tobytes())
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcd")])
    return pa.RecordBatch.from_arrays([texts], ["n"])


def test_a_file_whose_offsets_lead_elsewhere_is_not_handed_to_spark(tmp_path: Path) -> None:
    file = tmp_path / "wrong.arrow"
    with pa.ipc.new_file(str(file), wrong_offsets().schema) as writer:
        writer.write_batch(wrong_offsets())
    with pytest.raises(InvalidInput, match=r"wrong\.arrow cannot be read"):
        list(read_piece(Piece(str(file), 0, 2)))


def test_rows_of_a_users_own_source_are_checked_before_spark_believes_them() -> None:
    settings = SourceSettings("orders", "", "shop:Tables", {}, "")
    with pytest.raises(InvalidInput, match="source orders: shop:Tables gave rows that are not"):
        _check_arrow(wrong_offsets(), settings)


def test_a_changed_byte_of_a_data_file_is_found(channel: Channel) -> None:
    publish(channel, 0, [[1, 2, 3]])
    (piece,) = channel.pieces(0, 3)
    data = bytearray(Path(piece.path).read_bytes())
    data[data.index(b"\x02\x00\x00\x00\x00\x00\x00\x00\x03")] = 5
    Path(piece.path).write_bytes(data)
    with pytest.raises(InvalidInput, match="checksum does not fit"):
        read(channel, 0, 3)
