"""The `penstock` source: its own cost for very many streams, and its speed beside Spark's own."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._sessions import local_session
from benchmarks._source_throughput import throughput
from penstock.model.sources import Admission, Streams
from penstock.spark.sources.frames import announce_sources, read_streams
from penstock.spark.sources.generator_source import FORMAT
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

STREAMS = 10_000
RATE_PER_S = 10.0  # of each stream
BATCHES, WARM_UP = 10, 4  # of a query; the first ones are not counted
GROWING = 500  # of the files, in every batch
ALLOWED_MS = 100.0
CASES = ("throughput", "overhead")


def run(case: str | None = None) -> Iterator[dict[str, Any]]:
    """Rows a second, and milliseconds a batch."""
    with local_session() as session:
        if case != "overhead":
            yield from throughput(session)
        if case != "throughput":
            yield from _overheads(session)


def _overheads(session: Any) -> Iterator[dict[str, Any]]:
    # Two lanes, as the trivial source has two tasks.
    admission = Admission(lane_capacity=0.6 * STREAMS * RATE_PER_S, lanes_max=2, period="1s")

    def trivial() -> dict[str, float]:
        stream = Generator(constant(STREAMS * RATE_PER_S), lanes=2)
        reader = session.readStream.format(FORMAT).option("generator", stream.to_json())
        return _batch_times(reader.option("epoch_s", repr(time.time())).load())

    def generators() -> dict[str, float]:
        made = {f"s{n}": Generator(constant(RATE_PER_S), seed=n) for n in range(STREAMS)}
        return _with(session, Streams(generators=made, admission=admission), lambda: None)

    def files() -> dict[str, float]:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
            paths = [Path(folder) / f"s{n}.json" for n in range(STREAMS)]
            for path in paths:
                path.write_text('{"seq": 0}\n')
            turn = iter(range(10**9))

            def grow() -> None:
                for number in range(GROWING):
                    place = (next(turn) * 7 + number) % STREAMS
                    with paths[place].open("a") as stream:
                        stream.write('{"seq": 1}\n' * 20)

            streams = Streams(files=folder, schema="seq BIGINT", admission=admission)
            return _with(session, streams, grow)

    for name, ours in (("generated streams", generators), ("files, 500 of which grow", files)):
        rounds = [(trivial(), ours()) for _ in range(2)]
        # A machine is never quite quiet: of two rounds, the one that was disturbed less.
        plain, many = (min(side, key=lambda t: t["whole"]) for side in zip(*rounds, strict=True))
        extra_ms = many["whole"] - plain["whole"]
        yield {
            "name": f"source overhead per batch, {STREAMS} {name}",
            "baseline": plain["whole"],
            "ours": many["whole"],
            "unit": "ms per batch",
            "ratio": plain["whole"] / many["whole"],
            "conditions": (
                f"baseline: one generated stream of the same rate in as many tasks; median of "
                f"{BATCHES - WARM_UP} batches, one a second, local[2], the better of two rounds; "
                f"{extra_ms:.0f} ms beyond it, "
                f"{ALLOWED_MS:g} allowed; deciding (latestOffset) {many['deciding']:.0f} ms "
                f"against {plain['deciding']:.0f}"
            ),
        }


def _with(session: Any, streams: Streams, before: Callable[[], None]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        announce_sources(session, Path(folder))
        frame = read_streams("many", streams, session, time.time(), None)
        return _batch_times(frame, before)


def _batch_times(frame: Any, before: Callable[[], None] = lambda: None) -> dict[str, float]:
    """Median milliseconds of a batch with rows, whole and for deciding what it takes."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(processingTime="1 second").start()
        try:
            while len(filled := [p for p in query.recentProgress if p.numInputRows]) < BATCHES:
                assert query.isActive, query.exception()
                before()
                time.sleep(0.4)
        finally:
            query.stop()
    warm = filled[WARM_UP:BATCHES]
    return {
        "whole": median(p.durationMs["triggerExecution"] for p in warm),
        "deciding": median(p.durationMs["latestOffset"] for p in warm),
    }
