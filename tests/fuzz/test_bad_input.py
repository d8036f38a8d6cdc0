"""Malformed documents, options, topologies, meta-data, records and requests, by the hundred.

Each is refused in one sentence or handled; never a traceback, a hang or an internal error.
Run more of them with `make fuzz` (10,000 in all, or CASES=n); a failure prints its seed.
"""

import json
import os
import signal
import socket
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from fuzz.malformed import HOSTILE, Malformed
from penstock import Topology
from penstock.cli.advise import KINDS, ROOMS
from penstock.config import OPTIONS
from penstock.config.settings import FIELD_OF
from penstock.config.sources import from_keywords
from penstock.control.history.store import HistoryStore
from penstock.control.resolved_settings import resolved_settings
from penstock.dashboard.server import Dashboard
from penstock.documents import check_document, parse_document
from penstock.errors import PenstockError
from penstock.sim.scenario_file import load_scenario
from penstock.spark.sources.backends.decoding import decode
from penstock.spark.sources.declared import read_declared

ROOT = Path(__file__).parents[2]
CASES = int(os.environ.get("PENSTOCK_FUZZ_CASES", "600"))
TARGETS = 6 + 7  # kinds of advise, and the others
EACH = max(1, CASES // TARGETS)
LONGEST_S = 60


@contextmanager
def soon() -> Iterator[None]:
    """Whatever does not end is a fault of its own."""

    def hang(*_: object) -> None:
        raise AssertionError(f"not done after {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(LONGEST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refused_or_done(attempt: Callable[[], object], seed: int, given: object) -> bool:
    """Whether it was refused; anything but a sentence of ours is a failure that tells the input."""
    try:
        with soon():
            attempt()
    except PenstockError as error:
        sentence = str(error)
        assert len(sentence.splitlines()) == 1, (seed, given, sentence)
        assert "Traceback" not in sentence, (seed, given)
        return True
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r} for {str(given)[:3000]}") from error
    return False


def some_of_both(refused: int) -> None:
    """Input that is always refused early, or never, would test nothing."""
    assert refused > 0, "nothing was refused"


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_advise(kind: str) -> None:
    from importlib import import_module

    room = import_module(ROOMS[kind])
    refused = answered = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        document = malformed.document(room.SCHEMA)
        content = json.dumps(document).encode()
        if seed % 5 == 0:
            content = malformed.bytes_of(content)

        def attempt(content: bytes = content) -> None:
            parsed = parse_document(content, "document")
            check_document(parsed, room.SCHEMA)
            json.dumps(room.advise(parsed), default=float)

        if refused_or_done(attempt, seed, content):
            refused += 1
        else:
            answered += 1
    some_of_both(refused)


def test_options() -> None:
    refused = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        chosen = [malformed.choice(OPTIONS) for _ in range(3)]
        given = {FIELD_OF[option.name]: malformed.value() for option in chosen}
        refused += refused_or_done(
            lambda given=given: resolved_settings(from_keywords(given), environment={}), seed, given
        )
    some_of_both(refused)


def test_scenarios(tmp_path: Path) -> None:
    scenarios = sorted((ROOT / "examples/scenarios").glob("*.toml"))
    refused = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        text = malformed.choice(scenarios).read_text()
        if seed % 3 == 0:
            content = malformed.bytes_of(text.encode())
        else:
            content = malformed.toml(tomllib.loads(text)).encode()
        file = tmp_path / "scenario.toml"
        file.write_bytes(content)
        refused += refused_or_done(lambda file=file: load_scenario(file), seed, content)
    some_of_both(refused)


DECLARED = {
    "streams": {
        "cab:*": {"rate": 10, "lasts": "30m"},
        "cab:1": {"rate": 5, "active": "every day 09:00 to 17:00", "period": "24h"},
    }
}


def test_meta_data(tmp_path: Path) -> None:
    refused = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        streams = malformed.mutated(DECLARED["streams"])
        tables = streams if isinstance(streams, dict) else {}
        text = "\n".join(
            f"[streams.{json.dumps(name)}]\n"
            + "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items() if value)
            for name, table in tables.items()
            if isinstance(table, dict)
        )
        content = malformed.bytes_of(text.encode()) if seed % 2 else text.encode()
        file = tmp_path / "streams.toml"
        file.write_bytes(content)
        refused += refused_or_done(lambda file=file: read_declared(file), seed, content)
    some_of_both(refused)


def test_topologies() -> None:
    refused = 0

    def build(malformed: Malformed) -> None:
        anything = (*HOSTILE, "rows", "kept", "counted", "SELECT * FROM rows", "5s", 0.9)
        made = Topology(
            malformed.choice(("road", malformed.value())),
            max_latency=malformed.choice(("5s", malformed.value())),
            share=malformed.choice((0.99, malformed.value())),
        )
        made.source(malformed.choice(("rows", malformed.value())), lambda spark: spark.range(1))
        for name in ("kept", malformed.choice(anything)):
            made.add(name, malformed.choice(("SELECT * FROM rows", malformed.value())),
                     malformed.choice(("rows", malformed.choice(anything))))  # fmt: skip
        made.check()

    for seed in range(EACH):
        refused += refused_or_done(lambda s=seed: build(Malformed(s)), seed, "a topology")
    some_of_both(refused)


REQUEST = (
    b"GET /api/runs?run=1&since=0 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n",
    b"POST /api/act/hold HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 2\r\n"
    b"Connection: close\r\n\r\n{}",
    b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n",
    b"GET /api/runs/1/why?at=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n",
)


def test_requests_to_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store, Dashboard(store, token="t") as page:
        for seed in range(EACH):
            malformed = Malformed(seed)
            sent = malformed.bytes_of(malformed.choice(REQUEST) % page.port)
            answer = _asked(page.port, sent)
            status = answer.split(b"\r\n")[0].split(b" ")[1:2]
            assert not answer.startswith(b"HTTP/") or status != [b"500"], (
                seed, sent, answer[:500],
            )  # fmt: skip
        assert b" 200 " in _asked(page.port, REQUEST[2] % page.port)
    assert "Traceback" not in capfd.readouterr().err


def _asked(port: int, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except (ConnectionResetError, TimeoutError):
            pass
    return answer


SCHEMA = pa.schema([("key", pa.string()), ("value", pa.float64()), ("at", pa.timestamp("us"))])
RECORD = {
    "json": b'{"key": "a", "value": 1.5, "at": "2026-01-02T03:04:05"}',
    "csv": b"a,1.5,2026-01-02T03:04:05",
}


@pytest.mark.parametrize("form", RECORD)
def test_records(form: str) -> None:
    """Lines that are no records are set aside one by one, and the others are read."""
    bad = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        good, wrong = RECORD[form], malformed.bytes_of(RECORD[form]).replace(b"\n", b"")
        with soon():
            found = decode([good, wrong, good], form, SCHEMA)
        lines = 3 if wrong.strip() else 2  # an empty line is none
        assert found.rows.num_rows + len(found.bad) == lines, (seed, wrong)
        assert {0, 2} <= set(found.records.tolist()), (seed, wrong)
        bad += len(found.bad)
    some_of_both(bad)
