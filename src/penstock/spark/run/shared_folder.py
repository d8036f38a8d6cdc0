"""Whether executors see the driver's files: state, channels and sinks are files of both.

On several hosts, or in pods, a directory that is not mounted there too is another one under the
same name. Executors would write state into it, and it would be gone with them.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.errors import InvalidInput, Unavailable, documented
from penstock.model.sinks import Files, ToChannel
from penstock.model.topology import Topology
from penstock.spark import handles


def folders_of(topology: Topology, checkpoint: Path) -> dict[str, Path]:
    """The directories that the driver and executors write of a run, by what each is."""
    sinks = {
        f"sink {binding.name!r}": Path(binding.sink.path)
        for binding in topology.sinks
        if isinstance(binding.sink, Files | ToChannel)
    }
    return {"checkpoint": checkpoint, **sinks}


@documented("clusters")
def refuse_what_is_not_shared(session: SparkSession, folders: Mapping[str, Path]) -> None:
    """Refuse a directory that executors on other hosts do not see.

    Those are asked that a run begins with; where all are on the driver's host, nobody is.
    """
    here = session.sparkContext.getConf().get("spark.driver.host")
    try:
        executors = [one for one in handles.executors(session) if one.active]
    except Unavailable:
        return
    if all(one.host == here for one in executors):
        return
    signs: dict[str, Path] = {}
    try:
        for what, folder in folders.items():
            signs[what] = _sign(what, folder)
        blind = hosts_without(session, list(signs.values()), len(executors))
    finally:
        for file in signs.values():
            file.unlink(missing_ok=True)
    for (what, file), hosts in zip(signs.items(), blind, strict=True):
        if hosts:
            raise InvalidInput(
                f"{what} is {str(folders[what])!r}, but executors on {', '.join(hosts)} do not see "
                f"{file.parent} as it is here; give a directory that is mounted at the same path "
                "on all hosts."
            )


def _sign(what: str, folder: Path) -> Path:
    """A file that executors are asked for, where the directory is or will be."""
    there = next(one for one in (folder, *folder.absolute().parents) if one.is_dir())
    file = there / f".seen-{secrets.token_hex(8)}"
    try:
        file.touch(0o600)
    except OSError as error:
        raise InvalidInput(
            f"{what} is {str(folder)!r}, and {there} cannot be written: {error.strerror}."
        ) from error
    return file


def hosts_without(session: SparkSession, files: Sequence[Path], executors: int) -> list[list[str]]:
    """Of each file the hosts that do not see it; a task is run for each executor."""
    paths = [str(file.absolute()) for file in files]

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import socket

        for _ in batches:
            found = [[os.path.exists(path) for path in paths]]
            yield pa.RecordBatch.from_pydict({"host": [socket.gethostname()], "found": found})

    asked = session.range(0, executors, 1, executors)
    rows = asked.mapInArrow(look, "host string, found array<boolean>").collect()
    return [
        sorted({row.host for row in rows if not row.found[number]}) for number in range(len(paths))
    ]
