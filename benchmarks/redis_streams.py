"""5,000 Redis streams at once: is the sum of their rates held, and how fast is a backlog read."""

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks._brokers import redis_server
from benchmarks._sessions import local_session
from penstock.model.sinks import ForeachBatch
from penstock.model.sources import Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.run.together import Pace, RunningTopology

STREAMS = 5_000
KEYS = [f"s:{number}" for number in range(STREAMS)]
SWEEPS_PER_S = 2  # entries a second in each stream
WARM_S, HELD_S, PLAIN_S = 10.0, 30.0, 10.0
BACKLOG_SWEEPS = 100
BATCH_ROWS = 100_000
LIMIT_S = 240.0
ADD = """
for i, key in ipairs(KEYS) do
  redis.call('XADD', key, '*', 'value', '{"seq": ' .. ARGV[1] .. ', "value": 0.5}')
end
"""
KEYS_PER_CALL = 500


def run() -> Iterator[dict[str, Any]]:
    """Both in one run; nothing where there is no server."""
    missing = redis_server.missing()
    if missing is not None:
        print(f"benchmarks: redis_streams is skipped: {missing}.", file=sys.stderr)
        return
    with local_session() as session, tempfile.TemporaryDirectory(prefix="penstock-") as made:
        folder = Path(made)
        with redis_server.redis_server(folder) as server:
            yield _held(session, server, folder)
            server.client().flushall()
            yield _read_backlog(session, server, folder)


def _topology(url: str) -> Topology:
    made = Topology("redis", max_latency="60s")
    admission = Admission(
        lane_capacity=STREAMS * SWEEPS_PER_S, lanes_max=2, lane_rows=BATCH_ROWS // 2, period="2s"
    )
    schema = "seq BIGINT, value DOUBLE"
    made.source("rows", Streams(redis=url, keys="s:*", schema=schema, admission=admission))

    def drop(frame: Any, _batch_id: int) -> None:
        frame.write.format("noop").mode("overwrite").save()

    made.sink("out", "rows", ForeachBatch(drop))
    return made


class _Writer:
    """Adds one entry to every stream, so many times a second."""

    def __init__(self, server: redis_server.RedisServer) -> None:
        self.added = 0
        self._client = server.client()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        sweep, began_s = 0, time.monotonic()
        while not self._ended.wait(max(0.0, began_s + sweep / SWEEPS_PER_S - time.monotonic())):
            self.added += _sweep(self._client, sweep)
            sweep += 1

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self._client.close()


def _sweep(client: Any, seq: int) -> int:
    for at in range(0, STREAMS, KEYS_PER_CALL):
        some = KEYS[at : at + KEYS_PER_CALL]
        client.eval(ADD, len(some), *some, seq)
    return STREAMS


class _PlainConsumer:
    """What one writes without a source: XREAD over all streams in a loop, values parsed as JSON."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._at: dict[str, Any] = dict.fromkeys(KEYS, "0")
        self.rows = 0

    def step(self) -> int:
        found = self._client.xread(self._at, count=BATCH_ROWS // STREAMS, block=100) or []
        taken = 0
        for key, entries in found:
            for _, fields in entries:
                json.loads(fields[b"value"])
            self._at[key.decode()] = entries[-1][0]
            taken += len(entries)
        self.rows += taken
        return taken


def _held(session: Any, server: redis_server.RedisServer, folder: Path) -> dict[str, Any]:
    """Rows taken against rows added while all streams are written to, after a warm-up."""
    writer = _Writer(server)
    try:
        plain_share = _plain_share(server, writer)
        with RunningTopology(_topology(server.url), session, folder / "held", Pace()) as running:
            # What was added before is read first; then the query keeps up, or it does not.
            _await(running, lambda status: status["waiting_rows"] < BATCH_ROWS // 2)
            time.sleep(WARM_S)
            taken, added, began_s = (
                _status(running)["admitted_rows"],
                writer.added,
                time.monotonic(),
            )
            time.sleep(HELD_S)
            running.raise_failure()
            status, took_s = _status(running), time.monotonic() - began_s
            ours, offered = status["admitted_rows"] - taken, writer.added - added
    finally:
        writer.stop()
    return {
        "name": f"redis_streams: sum of the rates of {STREAMS:,} streams",
        "baseline": round(offered / took_s),
        "ours": round(ours / took_s),
        "unit": "rows/s",
        "ratio": round(ours / offered, 3),
        "conditions": f"baseline: rows added to {STREAMS:,} streams in {took_s:.0f} s; ours: rows "
        f"admitted in that time, {status['waiting_rows']:,} waiting at its end; a plain loop of "
        f"XREAD over all streams took {plain_share:.2f} of what was added, in the same run before; "
        "writer, server and Spark on local[2] share the machine; about 1 means held",
    }


def _plain_share(server: redis_server.RedisServer, writer: _Writer) -> float:
    client = server.client()
    plain = _PlainConsumer(client)
    while plain.step() > STREAMS:  # what was added before it began
        pass
    taken, added, until_s = plain.rows, writer.added, time.monotonic() + PLAIN_S
    while time.monotonic() < until_s:
        plain.step()
    client.close()
    return (plain.rows - taken) / max(writer.added - added, 1)


def _read_backlog(session: Any, server: redis_server.RedisServer, folder: Path) -> dict[str, Any]:
    """The same entries by a plain loop of XREAD and by the source, both parsing JSON."""
    client = server.client()
    rows = sum(_sweep(client, seq) for seq in range(BACKLOG_SWEEPS))
    plain = _PlainConsumer(client)
    began_s = time.monotonic()
    while plain.rows < rows:
        plain.step()
    plain_per_s = rows / (time.monotonic() - began_s)
    with RunningTopology(_topology(server.url), session, folder / "backlog", Pace()) as running:
        _await(running, lambda status: status["admitted_rows"] >= rows)
        running.queries[0].processAllAvailable()
        progress = [p for p in running.queries[0].recentProgress if p.numInputRows][1:]
    ours_per_s = _rows(progress) / sum(p.durationMs["triggerExecution"] / 1e3 for p in progress)
    return {
        "name": f"redis_streams: backlog of {STREAMS:,} streams",
        "baseline": round(plain_per_s),
        "ours": round(ours_per_s),
        "unit": "rows/s",
        "ratio": round(ours_per_s / plain_per_s, 3),
        "conditions": f"baseline: one process that reads all streams by XREAD and parses values as "
        f"JSON; ours: the source on local[2], 2 lanes, batches of up to {BATCH_ROWS:,} rows, the "
        f"first of which also starts the query and is not counted; {rows:,} entries",
    }


def _rows(progress: Sequence[Any]) -> int:
    return sum(int(p.numInputRows) for p in progress)


def _status(running: RunningTopology) -> dict[str, Any]:
    found = running.sources.statuses("rows")
    return found[0] if found else {"admitted_rows": 0, "waiting_rows": 2**60}


def _await(running: RunningTopology, holds: Any) -> None:
    until_s = time.monotonic() + LIMIT_S
    while not holds(_status(running)):
        running.raise_failure()
        if time.monotonic() > until_s:
            raise RuntimeError(f"not so within {LIMIT_S:g} s: {_status(running)}")
        time.sleep(0.05)


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
