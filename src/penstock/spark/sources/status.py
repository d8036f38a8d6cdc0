"""What a source says of itself: a small JSON file, and a table of its streams on the side."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.spark.sources.planner import PREFIX, LanePlanner
from penstock.spark.sources.streams import GONE, LEAVING, LIVE, NO_LANE, STATES, StreamTable

FILE = "status.json"
STREAMS = "streams.arrow"
MOST_NAMED = 50  # suspended streams named in the status


def summary(table: StreamTable, planner: LanePlanner) -> dict[str, Any]:
    """Counts of streams, rows and lanes."""
    present = table.present()
    lane = table.lane[present]
    numbers = np.unique(lane[lane != NO_LANE])
    rates = planner.newest_rates(present)
    taken = int(table.taken.sum()) + table.taken_of_forgotten
    return {
        "streams": {
            "live": int((table.state == LIVE).sum()) - len(table.fault),
            "leaving": int((table.state == LEAVING).sum()),
            "suspended": len(table.fault),
            "gone": int((table.state == GONE).sum()),
        },
        "waiting_rows": int(table.waiting[present].sum()),
        "arrived_rows": taken + int(table.waiting[present].sum()),
        "admitted_rows": taken,
        "redirected": planner.redirected,
        "strategy": planner.limits.strategy,
        "lanes": [
            {
                "name": f"{PREFIX}{number}",
                "streams": int((lane == number).sum()),
                "queue_rows": int(table.waiting[present][lane == number].sum()),
                "rate_per_s": round(float(rates[lane == number].sum()), 3),
                "in_flight_rows": planner.queues.in_flight.get(number, 0),
            }
            for number in numbers.tolist()
        ],
        "suspended": [
            {
                "stream": table.names[row],
                "reason": reason,
                "position": [int(table.position.major[row]), int(table.position.minor[row])],
            }
            for row, reason in list(table.fault.items())[:MOST_NAMED]
        ],
        "foreseen": _foreseen(planner),
        "decisions": [asdict(decision) for decision in planner.decisions],
    }


def _foreseen(planner: LanePlanner) -> dict[str, float] | None:
    """What the last decision expects of all streams, and within which time."""
    if not planner.decisions:
        return None
    last = planner.decisions[-1]
    return {"rate_per_s": last.rate_per_s, "horizon_s": last.horizon_s, "at_s": last.at_s}


def write_status(directory: Path, status: dict[str, Any]) -> None:
    """Replace the status at once; it is for lookers-on, so it need not outlive the machine."""
    _replace(directory / FILE, json.dumps(status, sort_keys=True).encode())


def read_status(directory: Path) -> dict[str, Any] | None:
    """The newest status, if there is one."""
    try:
        found: dict[str, Any] = json.loads((directory / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return found


def write_streams(directory: Path, table: StreamTable, planner: LanePlanner) -> None:
    """All streams as a table."""
    rows = np.arange(len(table))
    columns = pa.table(
        {
            "stream": pa.array(table.names, pa.string()),
            "state": pa.array(np.array(STATES)[table.state], pa.string()),
            "lane": table.lane,
            "waiting_rows": table.waiting,
            "admitted_rows": table.taken,
            "rate_per_s": planner.newest_rates(rows),
            "reason": pa.array([table.fault.get(row, "") for row in rows.tolist()], pa.string()),
            "major": table.position.major,
            "minor": table.position.minor,
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, columns.schema) as writer:
        writer.write_table(columns)
    _replace(directory / STREAMS, sink.getvalue().to_pybytes())


def read_streams(directory: Path) -> pa.Table | None:
    """The newest table of streams, if there is one."""
    try:
        return pa.ipc.open_file(pa.BufferReader((directory / STREAMS).read_bytes())).read_all()
    except (OSError, pa.ArrowInvalid):
        return None


def _replace(file: Path, data: bytes) -> None:
    scratch = file.with_name(f".{file.name}.{os.getpid()}.new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
    scratch.replace(file)
