"""What one task reads, as it travels from the runner to an executor."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from penstock.spark.sources.backends.backend import Positions, Ranges
from penstock.spark.sources.batch_choice import Choice


@dataclass(frozen=True)
class LanePartition(InputPartition):
    """What one task reads: the ranges of one lane, as Arrow."""

    log: int
    seq: int
    lane: int
    ranges: bytes
    routes: str | None = None  # the version of its table, where rows are routed
    choice: Choice = Choice()  # noqa: RUF009 - frozen


def packed(names: list[str], start: Positions, end: Positions, rows: Any) -> bytes:
    """Ranges as Arrow."""
    table = pa.table(
        {
            "stream": pa.array(names, pa.string()),
            "start_major": start.major,
            "start_minor": start.minor,
            "end_major": end.major,
            "end_minor": end.minor,
            "rows": rows,
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked(data: bytes) -> Ranges:
    """What `packed` made."""
    table = pa.ipc.open_stream(data).read_all()

    def column(name: str) -> Any:
        return table[name].to_numpy()

    return Ranges(
        table["stream"].to_pylist(),
        Positions(column("start_major"), column("start_minor")),
        Positions(column("end_major"), column("end_minor")),
        column("rows"),
    )
