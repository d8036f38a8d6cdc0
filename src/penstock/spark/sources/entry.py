"""What the admission log holds: the state of all streams, and the ranges of one batch."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import Positions


@dataclass(frozen=True)
class Joined:
    """Streams that are new to the log; they are numbered on from those it knows."""

    names: list[str]
    start: Positions
    at_s: Floats


@dataclass(frozen=True)
class Batch:
    """The ranges of one batch, one row a stream that has any, in order of lanes."""

    seq: int
    stream: Ints  # number of the stream in the log
    lane: Ints
    start: Positions
    end: Positions
    rows: Ints
    joined: Joined
    fingerprint: Ints | None = None  # of what is before each end; -1, or None for all: not known

    def __len__(self) -> int:
        return len(self.stream)


@dataclass(frozen=True)
class Snapshot:
    """All streams after a batch."""

    seq: int
    names: list[str]
    position: Positions
    lane: Ints
    joined_s: Floats
    gone_s: Floats  # when a stream left; NaN for those that are here
    fingerprint: Ints | None = None  # as of a batch, of what is before each position


def no_one() -> Joined:
    """Nobody joined."""
    nothing = np.empty(0, dtype=np.int64)
    return Joined([], Positions(nothing, nothing), np.empty(0))


def encode(entry: Batch | Snapshot) -> bytes:
    """As bytes: a JSON line, then Arrow."""
    if isinstance(entry, Snapshot):
        table = pa.table(
            {
                "name": pa.array(entry.names, pa.string()),
                "major": entry.position.major,
                "minor": entry.position.minor,
                "lane": entry.lane.astype(np.int32),
                "joined_s": entry.joined_s,
                "gone_s": entry.gone_s,
                **_fingerprints(entry),
            }
        )
        return _packed({"seq": entry.seq, "kind": "snapshot"}, [table])
    ranges = pa.table(
        {
            "stream": entry.stream.astype(np.int32),
            "lane": entry.lane.astype(np.int32),
            "start_major": entry.start.major,
            "start_minor": entry.start.minor,
            "end_major": entry.end.major,
            "end_minor": entry.end.minor,
            "rows": entry.rows,
            **_fingerprints(entry),
        }
    )
    new = entry.joined
    joined = pa.table(
        {
            "name": pa.array(new.names, pa.string()),
            "major": new.start.major,
            "minor": new.start.minor,
            "at_s": new.at_s,
        }
    )
    return _packed({"seq": entry.seq, "kind": "batch"}, [ranges, joined])


def decode_entry(data: bytes) -> Batch | Snapshot:
    """What `encode` made."""
    line, _, rest = data.partition(b"\n")
    header: dict[str, Any] = json.loads(line)
    tables = []
    for length in header["lengths"]:
        tables.append(pa.ipc.open_stream(rest[:length]).read_all())
        rest = rest[length:]
    first = tables[0]
    if header["kind"] == "snapshot":
        return Snapshot(
            header["seq"], first["name"].to_pylist(), _positions(first, ""),
            _ints(first, "lane"), _column(first, "joined_s"), _gone_s(first),
            _fingerprint(first),
        )  # fmt: skip
    joined = Joined(
        tables[1]["name"].to_pylist(), _positions(tables[1], ""), _column(tables[1], "at_s")
    )
    return Batch(
        header["seq"], _ints(first, "stream"), _ints(first, "lane"),
        _positions(first, "start_"), _positions(first, "end_"), _ints(first, "rows"), joined,
        _fingerprint(first),
    )  # fmt: skip


def _packed(header: dict[str, Any], tables: list[pa.Table]) -> bytes:
    bodies = []
    for table in tables:
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        bodies.append(sink.getvalue().to_pybytes())
    header["lengths"] = [len(body) for body in bodies]
    return b"\n".join([json.dumps(header, sort_keys=True).encode(), b"".join(bodies)])


def _column(table: pa.Table, name: str) -> Any:
    # Buffers of Arrow are read-only, and the columns of a snapshot are grown and written to.
    return table[name].to_numpy().copy()


def _gone_s(table: pa.Table) -> Floats:
    """When streams left; an older log knows only whether, and those are never forgotten."""
    if "gone_s" in table.column_names:
        found: Floats = _column(table, "gone_s")
        return found
    return np.where(_column(table, "gone"), np.inf, np.nan)


def _fingerprints(entry: Batch | Snapshot) -> dict[str, Ints]:
    return {} if entry.fingerprint is None else {"fingerprint": entry.fingerprint}


def _fingerprint(table: pa.Table) -> Ints | None:
    """None in an older log, and where nobody takes any."""
    return _ints(table, "fingerprint") if "fingerprint" in table.column_names else None


def _ints(table: pa.Table, name: str) -> Ints:
    column: Ints = table[name].to_numpy().astype(np.int64)
    return column


def _positions(table: pa.Table, prefix: str) -> Positions:
    return Positions(_ints(table, f"{prefix}major"), _ints(table, f"{prefix}minor"))
