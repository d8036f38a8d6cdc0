"""The Redis backend against a real server."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from brokers import redis_server
from brokers.reading import Reader, read_all
from penstock.errors import InvalidInput, Unavailable
from penstock.sources import Backend, Ranges
from penstock.testing import BackendContract

if (reason := redis_server.missing()) is not None:
    pytest.skip(reason, allow_module_level=True)

from penstock.spark.sources.backends.redis_streams import RedisBackend
from penstock.spark.sources.gate import Gate
from penstock.spark.sources.log import AdmissionLog
from penstock.spark.sources.settings import Limits, SourceSettings

SCHEMA = pa.schema([("seq", pa.int64()), ("v", pa.float64())])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis_server.RedisServer]:
    with redis_server.redis_server(tmp_path_factory.mktemp("redis")) as started:
        yield started


@pytest.fixture
def client(server: redis_server.RedisServer) -> Iterator[Any]:
    made = server.client()
    made.flushall()
    yield made
    made.close()


class TestContract(BackendContract):
    """What every backend has to keep."""

    streams = ("s:one", "s:two")

    @pytest.fixture(autouse=True)
    def _empty(self, server: redis_server.RedisServer, client: Any) -> None:
        self.server, self.client = server, client
        self.written: dict[str, int] = {}

    def make(self) -> Backend:
        return backend(self.server)

    def append(self, stream: str, count: int) -> None:
        first = self.written.get(stream, 0)
        add(self.client, stream, first, count)
        self.written[stream] = first + count

    def schema(self) -> pa.Schema:
        return SCHEMA

    def numbers(self, rows: pa.RecordBatch) -> list[int]:
        found: list[int] = rows.column(0).to_pylist()
        return found


def backend(server: redis_server.RedisServer, **options: Any) -> RedisBackend:
    return RedisBackend.from_options({"url": server.url, "keys": "s:*", **options})


def add(client: Any, key: str, first: int, count: int) -> None:
    pipeline = client.pipeline(transaction=False)
    for seq in range(first, first + count):
        pipeline.xadd(key, {"value": json.dumps({"seq": seq, "v": 0.5})})
    pipeline.execute()


def test_a_server_without_a_stream_that_fits_says_so(
    server: redis_server.RedisServer, client: Any
) -> None:
    client.set("s:text", "not a stream")
    add(client, "other", 0, 1)
    said = backend(server).nothing_there()
    assert said == f"no key of Redis at {server.url} fits the pattern 's:*' and holds a stream yet"
    add(client, "s:one", 0, 1)
    assert backend(server).nothing_there() is None


def test_ranges_of_any_size_give_every_entry_once_and_in_order(
    server: redis_server.RedisServer, client: Any
) -> None:
    rng = np.random.default_rng(4)
    counts = {f"s:{number}": 0 for number in range(30)}
    reader = Reader(backend(server), SCHEMA)
    for _ in range(12):
        for key in counts:
            more = int(rng.integers(0, 9))
            add(client, key, counts[key], more)
            counts[key] += more
        reader.step(rng)
    reader.drain()
    assert {key: reader.seqs[key] for key in reader.seqs} == {
        key: list(range(count)) for key, count in counts.items() if count
    }
    assert reader.malformed == []


def test_waiting_rows_are_exact_though_entries_read_were_deleted(
    server: redis_server.RedisServer, client: Any
) -> None:
    add(client, "s:a", 0, 10)
    reader = Reader(backend(server), SCHEMA)
    reader.take({"s:a": 6})
    client.xtrim("s:a", maxlen=4, approximate=False)
    latest = reader.look()
    assert latest.fault == [""]
    assert latest.waiting_rows.tolist() == [4]
    assert 0 < latest.last_s[0] - latest.first_s[0] + 1 < 60


def test_entries_trimmed_unread_suspend_the_stream_or_become_a_letter(
    server: redis_server.RedisServer, client: Any
) -> None:
    add(client, "s:a", 0, 10)
    add(client, "s:b", 0, 3)
    strict, lenient = Reader(backend(server), SCHEMA), Reader(backend(server, lost="skip"), SCHEMA)
    for reader in (strict, lenient):
        reader.take({"s:a": 4})
    client.xtrim("s:a", maxlen=3, approximate=False)
    assert strict.look().fault == ["3 entries were removed before they were read", ""]
    assert lenient.look().fault == ["", ""]
    lenient.take({"s:a": 1})
    (letter,) = lenient.malformed
    assert (letter.stream, letter.raw) == ("s:a", b"")
    assert letter.reason == "3 entries from here on were removed before they were read"
    lenient.drain()
    assert lenient.seqs["s:a"] == [0, 1, 2, 3, 7, 8, 9]
    assert len(lenient.malformed) == 1


def test_entries_removed_after_they_were_admitted_become_a_letter(
    server: redis_server.RedisServer, client: Any
) -> None:
    add(client, "s:a", 0, 10)
    made = backend(server)
    start = made.first(["s:a"])
    end = made.latest(["s:a"], start).end
    client.xtrim("s:a", maxlen=2, approximate=False)
    rows, letters = read_all(made, Ranges(["s:a"], start, end, np.array([10])), SCHEMA)
    assert [row["seq"] for row in rows["s:a"]] == [8, 9]
    assert [letter.reason for letter in letters] == [
        "8 entries from here on were removed before they were read"
    ]


def test_a_stream_that_vanishes_or_goes_back_is_at_fault_until_it_is_sound(
    server: redis_server.RedisServer, client: Any
) -> None:
    for key in ("s:a", "s:b", "s:c"):
        client.xadd(key, {"value": '{"seq": 0}'}, id="5-0")
    add(client, "s:d", 0, 2)
    reader = Reader(backend(server), SCHEMA)
    reader.drain()
    saved = client.dump("s:a")
    client.delete("s:a", "s:b", "s:c")
    client.set("s:b", "text")
    client.xadd("s:c", {"value": "{}"}, id="4-0")
    faults = dict(zip(reader.names, reader.look().fault, strict=True))
    assert faults["s:a"] == "its key is gone"
    assert faults["s:b"] == "its key holds no stream"
    assert faults["s:c"].startswith("it went back in time: 1 entries were added")
    assert faults["s:d"] == ""
    client.restore("s:a", 0, saved)
    client.xadd("s:a", {"value": '{"seq": 1}'}, id="6-0")
    latest = reader.look()
    assert latest.fault[reader.names.index("s:a")] == ""
    assert latest.waiting_rows[reader.names.index("s:a")] == 1


def test_a_stream_declared_before_it_is_written_is_not_at_fault(
    server: redis_server.RedisServer, client: Any
) -> None:
    made = backend(server)
    start = made.first(["s:later"])
    assert made.latest(["s:later"], start).fault == [""]
    add(client, "s:later", 0, 2)
    latest = made.latest(["s:later"], start)
    assert latest.waiting_rows.tolist() == [2]
    rows, _ = read_all(made, Ranges(["s:later"], start, latest.end, np.array([2])), SCHEMA)
    assert [row["seq"] for row in rows["s:later"]] == [0, 1]


def test_reading_may_begin_now(server: redis_server.RedisServer, client: Any) -> None:
    add(client, "s:a", 0, 5)
    made = backend(server, start="now")
    start = made.first(["s:a"])
    assert made.latest(["s:a"], start).waiting_rows.tolist() == [0]
    add(client, "s:a", 5, 1)
    assert made.latest(["s:a"], start).waiting_rows.tolist() == [1]


def test_what_is_malformed_is_set_apart_with_its_bytes(
    server: redis_server.RedisServer, client: Any
) -> None:
    add(client, "s:a", 0, 1)
    client.xadd("s:a", {"value": "{not json"})
    client.xadd("s:a", {"other": "1"})
    client.xadd("s:a", {"value": ""})
    client.xadd("s:a", {"more": "x", "value": '{"seq": 7, "v": null}'})
    reader = Reader(backend(server), SCHEMA)
    reader.drain()
    assert reader.seqs["s:a"] == [0, 7]
    reasons = {letter.raw: letter.reason for letter in reader.malformed}
    assert set(reasons) == {b"{not json", b"other 1", b""}
    assert reasons[b"other 1"] == "the entry has no field 'value'"
    assert reasons[b""] == "its value is empty"


def test_columns_beside_the_value(server: redis_server.RedisServer, client: Any) -> None:
    identifier = client.xadd("s:a", {"text": "5;x"}, id="1700000000123-4").decode()
    schema = pa.schema(
        [("id", pa.string()), ("raw", pa.binary()), ("at", pa.timestamp("us", "UTC"))]
    )
    made = backend(server, format="raw", field="text", offset_column="id", timestamp_column="at")
    start = made.first(["s:a"])
    ranges = Ranges(["s:a"], start, made.latest(["s:a"], start).end, np.array([1]))
    ((row,),) = read_all(made, ranges, schema)[0].values()
    assert (row["id"], row["raw"]) == (identifier, b"5;x")
    assert row["at"].timestamp() == 1_700_000_000.123


def test_many_streams_cost_few_calls(server: redis_server.RedisServer, client: Any) -> None:
    pipeline = client.pipeline(transaction=False)
    for number in range(2_000):
        pipeline.xadd(f"s:{number}", {"value": "{}"})
    pipeline.execute()
    made = backend(server)
    names = [stream.name for stream in made.discover()]
    assert len(names) == 2_000
    start = made.first(names)
    client.config_resetstat()
    made.latest(names, start)
    assert client.info("commandstats")["cmdstat_eval_ro"]["calls"] == 10


def test_a_server_that_restarts_is_waited_for(
    server: redis_server.RedisServer, client: Any
) -> None:
    add(client, "s:a", 0, 5)
    reader = Reader(backend(server), SCHEMA)
    reader.take({"s:a": 2})
    reader.admit({"s:a": 2})
    server.kill()
    with pytest.raises(Unavailable, match="cannot be reached"):
        reader.look()
    restart = threading.Timer(0.2, server.start)
    restart.start()
    reader.read_on()
    restart.join()
    reader.drain()
    assert reader.seqs["s:a"] == [0, 1, 2, 3, 4]


def gate_over(made: Backend, log: AdmissionLog, folder: Path, seq: int = 0) -> Gate:
    limits = Limits(lane_rows=3, period_s=1.0)
    settings = SourceSettings(
        "cabs", str(folder), "redis", {}, str(folder / "dead"), discovery_period_s=0.0,
        limits=limits,
    )  # fmt: skip
    return Gate(settings, made, log, 0, seq)


def groups(client: Any, key: str) -> list[tuple[bytes, int, int]]:
    return [(one["name"], one["entries-read"], one["lag"]) for one in client.xinfo_groups(key)]


def test_a_group_is_told_what_is_committed_and_never_asked(
    server: redis_server.RedisServer, client: Any, tmp_path: Path
) -> None:
    add(client, "s:a", 0, 7)
    add(client, "s:b", 0, 2)
    log = AdmissionLog(tmp_path / "log")
    gate = gate_over(backend(server, group="road"), log, tmp_path)
    admitted = gate.admit(None, everything=False)
    assert admitted is not None
    taken = dict(zip(admitted.batch.stream.tolist(), admitted.batch.rows.tolist(), strict=True))
    assert groups(client, "s:a") == [], "nothing is told before results are out"
    gate.committed(gate.seq)
    first = taken[list(gate.names).index("s:a")]
    assert 0 < first < 7
    assert groups(client, "s:a") == [(b"road", first, 7 - first)]
    client.xgroup_setid("s:a", "road", "$")  # by somebody else
    client.xgroup_destroy("s:b", "road")
    log.close()
    log = AdmissionLog(tmp_path / "log")
    again = gate_over(backend(server, group="road"), log, tmp_path, gate.seq)
    rest = again.admit(None, everything=True)
    assert rest is not None
    ranges = Ranges(
        [again.names[n] for n in rest.batch.stream.tolist()], rest.batch.start, rest.batch.end,
        rest.batch.rows,
    )  # fmt: skip
    rows, _ = read_all(backend(server), ranges, SCHEMA)
    assert [row["seq"] for row in rows["s:a"]] == list(range(first, 7))
    again.committed(again.seq)
    assert groups(client, "s:a") == [(b"road", 7, 0)]


def test_without_a_group_nothing_is_written(
    server: redis_server.RedisServer, client: Any, tmp_path: Path
) -> None:
    add(client, "s:a", 0, 2)
    gate = gate_over(backend(server), AdmissionLog(tmp_path / "log"), tmp_path)
    assert gate.admit(None, everything=True) is not None
    gate.committed(gate.seq)
    assert groups(client, "s:a") == []


def test_a_group_that_cannot_be_told_is_said_once_and_holds_up_nothing(
    server: redis_server.RedisServer, client: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add(client, "s:a", 0, 7)
    made = backend(server, group="road")
    gate = gate_over(made, AdmissionLog(tmp_path / "log"), tmp_path)
    assert gate.admit(3, everything=False) is not None
    server.kill()
    try:
        gate.committed(gate.seq)
        gate.committed(gate.seq)
    finally:
        server.start()
    assert len([one for one in caplog.messages if "positions are not told" in one]) == 1
    assert gate.admit(None, everything=True) is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "http://x"}, "redis is 'http://x'"),
        ({"group": " "}, "group is ' '; it must be the name of a consumer group"),
        ({"url": "redis://:secret@x/0"}, "password_env"),
        ({"format": "arrow"}, "allowed for brokers: json, csv, raw"),
        ({"lost": "drop"}, "lost is 'drop'; allowed: suspend, skip"),
        ({"start": "0-0"}, "start is '0-0'; allowed: first, now"),
        ({"field": ""}, "field is ''"),
        ({"timeout_s": 0}, "timeout_s is 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=said):
        RedisBackend.from_options({"url": "redis://127.0.0.1/0", **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"offset_column": "id"}, "offset_column is 'id'; .* as STRING"),
        ({"timestamp_column": "seq"}, "timestamp_column is 'seq'; .* as TIMESTAMP"),
        ({"format": "raw"}, "one STRING or BINARY column"),
    ],
)
def test_a_schema_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    made = RedisBackend.from_options({"url": "redis://127.0.0.1/0", **options})
    with pytest.raises(InvalidInput, match=said):
        made.check(SCHEMA)
