"""Many generated streams at once give the rows that each would give alone."""

import json

import numpy as np
import pyarrow as pa

from penstock.spark.sources.backends.backend import Ranges, positions
from penstock.spark.sources.backends.generators import GeneratorsBackend
from penstock.workloads.generator import SCHEMA, Generator
from penstock.workloads.profiles import constant, steps

STREAMS = {
    f"s{n}": Generator(
        constant(10.0 + n % 7) if n % 2 else steps([(10, 5.0), (5, 20.0)]),
        keys=7 + n % 3, skew=(n % 3) * 0.5, seed=n, rows=None if n % 5 else 50,
    )
    for n in range(20)
}  # fmt: skip
EPOCH_S = 1_000.0


def backend(**more: object) -> GeneratorsBackend:
    made = {name: json.loads(stream.to_json()) for name, stream in STREAMS.items()}
    return GeneratorsBackend.from_options({"generators": made, "epoch_s": EPOCH_S, **more})


def test_rows_are_those_of_each_generator_alone() -> None:
    names = list(STREAMS)
    start = np.arange(20)
    end = start + start % 4 * 3
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    for chunk in backend().read(Ranges(names, positions(start), positions(end), end), SCHEMA):
        at = 0
        for place, count in zip(chunk.ranges.tolist(), chunk.counts.tolist(), strict=True):
            found[names[place]].append(chunk.rows.slice(at, count))
            at += count
    for name, first, last in zip(names, start.tolist(), end.tolist(), strict=True):
        rows = pa.Table.from_batches(found[name], schema=SCHEMA).combine_chunks()
        alone = STREAMS[name].batch(first, last, EPOCH_S)
        assert rows.equals(pa.Table.from_batches([alone]))


def test_bounded_streams_end_and_are_whole_when_asked() -> None:
    names = ["s0", "s1"]
    latest = backend().latest(names, positions([0, 0]))
    assert latest.ended.tolist() == [True, False]
    assert latest.waiting_rows[0] == 50
    future = GeneratorsBackend(STREAMS, None, 1e12, {})
    assert future.latest(names, positions([0, 0])).waiting_rows.tolist() == [0, 0]
    assert future.latest(names, positions([0, 0]), whole=True).waiting_rows.tolist() == [50, 0]


def test_unlisted_names_are_made_after_the_template_or_are_faults() -> None:
    assert backend().latest(["who"], positions([0])).fault == ["no generator has this name"]
    made = backend(template=json.loads(Generator(constant(1.0)).to_json()))
    assert made.latest(["who"], positions([0])).fault == [""]
