"""Records that could not be understood: kept with their reason, once for each batch and lane.

A lane's file is named after the log entry it belongs to. The same entry holds the same ranges
whenever it is read, so a task that is repeated replaces its file by an equal one.

They are kept for a time and up to a size. What goes is counted first, in a file that says up to
which entry everything has gone, so that a program killed in between neither forgets nor counts
anything twice.
"""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from penstock.errors import InvalidInput
from penstock.spark.checkpoint.durable_files import (
    make_directory,
    remove,
    replacing,
    write_atomically,
)
from penstock.spark.checkpoint.sealed import read_sealed
from penstock.spark.sources.backends.backend import Malformed

logger = logging.getLogger(__name__)

SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("offset", pa.string()),
        ("reason", pa.string()),
        ("raw", pa.binary()),
    ]
)


@dataclass(frozen=True)
class Gone:
    """How many records of a log are no longer kept, and up to which entry."""

    upto: int = -1
    records: int = 0


def letter_file(folder: Path, log: int, seq: int, lane: int) -> Path:
    """Where the malformed records of one lane of one batch are."""
    return folder / f"{log}-{seq:012d}-{lane}.arrow"


def letter_files(folder: Path, log: int) -> list[tuple[int, Path]]:
    """The files of one log with the entries they belong to."""
    return [(int(file.stem.split("-")[1]), file) for file in folder.glob(f"{log}-*.arrow")]


def write_letters(file: Path, records: Sequence[Malformed]) -> None:
    """Publish a lane's malformed records, whole."""
    make_directory(file.parent)
    table = pa.Table.from_pylist(
        [
            {"stream": r.stream, "offset": r.offset, "reason": r.reason, "raw": r.raw}
            for r in records
        ],
        schema=SCHEMA,
    )
    with replacing(file) as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


def read_letters(folder: str | Path) -> pa.Table:
    """All malformed records so far, in order of batches."""
    files = sorted(Path(folder).glob("*.arrow"))
    tables = [_read(file) for file in files]
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def _read(file: Path) -> pa.Table:
    try:
        table = pa.ipc.open_file(pa.BufferReader(file.read_bytes())).read_all()
        table.validate(full=True)
    except (OSError, pa.ArrowInvalid) as error:
        raise InvalidInput(f"dead letters {file} are damaged ({error}); remove it.") from error
    return table


def count_letters(file: Path) -> int:
    """Records in a lane's file; none when there is no file, or only a damaged one."""
    try:
        with pa.OSFile(str(file)) as stream:
            reader = pa.ipc.open_file(stream)
            return sum(
                reader.get_batch(number).num_rows for number in range(reader.num_record_batches)
            )
    except FileNotFoundError:
        return 0
    except (OSError, pa.ArrowInvalid) as error:
        logger.warning("dead letters %s are damaged and not counted: %s", file, error)
        return 0


def read_gone(folder: Path, log: int) -> Gone:
    """What is no longer kept of a log."""
    try:
        return Gone(**read_sealed(_gone_file(folder, log)))
    except FileNotFoundError:
        return Gone()
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"{_gone_file(folder, log)} is damaged ({error}); restore it, or remove it to count "
            "dead letters anew."
        ) from error


def forget_letters(folder: Path, log: int, seq: int, oldest_s: float, most_bytes: int) -> Gone:
    """Remove letters of entries up to `seq` that are from before a time, or too many."""
    found = sorted((entry, file) for entry, file in letter_files(folder, log) if entry <= seq)
    before = read_gone(folder, log)
    kept_bytes, upto = 0, before.upto
    for entry, file in reversed(found):
        stat = file.stat()
        kept_bytes += stat.st_size
        if kept_bytes > most_bytes or stat.st_mtime < oldest_s:
            upto = max(upto, entry)
            break
    going = [(entry, file) for entry, file in found if entry <= upto]
    if not going:
        return before
    new = sum(count_letters(file) for entry, file in going if entry > before.upto)
    gone = Gone(upto, before.records + new)
    write_atomically(_gone_file(folder, log), asdict(gone))
    for _, file in going:
        remove(file)
    return gone


def _gone_file(folder: Path, log: int) -> Path:
    return folder / f"{log}-gone.json"
