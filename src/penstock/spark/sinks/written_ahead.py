"""What was written by batches that the checkpoint knows nothing of, looked for when a run starts.

A batch that comes again finds its record. But a batch without output has none, so after a
checkpoint was restored in part such a number may be planned over rows that a later batch has
written before.
Nothing of ours is ever ahead of Spark's log, whose entry is on the disk before a record is written.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.errors import InvalidInput
from penstock.model.sinks import Files, ToChannel
from penstock.model.topology import SinkBinding
from penstock.spark.channels.log import Channel
from penstock.spark.checkpoint.carried_state import numbered
from penstock.spark.sinks.commit_records import CommitRecords
from penstock.spark.sinks.places import place_of

_BATCH, _CHANNEL = "batch=", "channel "


def refuse_what_is_ahead(
    query: str, sinks: Iterable[SinkBinding], records: CommitRecords, writer: str | None
) -> None:
    """Refuse records and outputs of batches behind the last that Spark has planned."""
    if records.offsets is None:
        return
    planned = max(numbered(records.offsets), default=-1)
    if planned < 0 and records.newest() is None:
        return  # it begins; batches of another run are refused when they are met, from 0 on
    written = [*_recorded(records), *_in_sinks(sinks, writer)]
    batch, what = max(written, key=lambda pair: pair[0], default=(-1, ""))
    if batch <= planned:
        return
    ends = f"ends with batch {planned}" if planned >= 0 else "is empty"
    instead = (
        f"remove what is later, with its records in {records.folder}, to have it written again"
    )
    if what.startswith(_CHANNEL):  # of which no batch can be removed
        instead = "start with another checkpoint and channel"
    raise InvalidInput(
        f"query {query!r}: batch {batch} was written before ({what}), but the log of offsets "
        f"{records.offsets} {ends}: the checkpoint was restored in part, so nothing was started; "
        f"restore all of it and its outputs from the same time, or {instead}."
    )


def _recorded(records: CommitRecords) -> Iterator[tuple[int, str]]:
    newest = records.newest()
    if newest is not None:
        yield newest, str(records.file(newest))


def _in_sinks(sinks: Iterable[SinkBinding], writer: str | None) -> Iterator[tuple[int, str]]:
    for binding in sinks:
        sink = binding.sink
        if isinstance(sink, Files):
            for name in place_of(sink.path).names(sink.path):
                number = name.removeprefix(_BATCH)
                if name.startswith(_BATCH) and number.isdigit():
                    yield int(number), f"{sink.path.rstrip('/')}/{name}"
        elif isinstance(sink, ToChannel):
            for entry in Channel(Path(sink.path).absolute()).since(0):
                if entry.writer == writer:
                    yield entry.batch, f"{_CHANNEL}{sink.path}"
