"""Whether executors see the driver's files: state, channels and sinks are files of both.

On several hosts, or in pods, a directory that is not mounted there too is another one under the
same name. Executors would write state into it, and it would be gone with them.
"""

import logging
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.errors import InvalidInput, PenstockError, Unavailable, documented
from penstock.model.sinks import Files, ToChannel
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.handles.messages import SPARK_ERRORS, first_line
from penstock.spark.sinks.places import local_path

log = logging.getLogger(__name__)


def folders_of(topology: Topology, checkpoint: Path) -> dict[str, Path]:
    """The directories that the driver and executors write of a run, by what each is.

    A remote store is the same one from everywhere.
    """
    sinks = {
        f"sink {binding.name!r}": folder
        for binding in topology.sinks
        if isinstance(binding.sink, Files | ToChannel)
        and (folder := local_path(binding.sink.path)) is not None
    }
    return {"checkpoint": checkpoint, **sinks}


@documented("clusters")
def refuse_what_is_not_shared(session: SparkSession, folders: Mapping[str, Path]) -> frozenset[str]:
    """Refuse a directory that executors on other hosts do not see; the hosts there are.

    Those are asked that a run begins with; where all are on the driver's host, nobody is.
    """
    try:
        executors = [one for one in handles.executors(session) if one.active]
    except Unavailable:
        return frozenset()
    hosts = frozenset(one.host for one in executors)
    if hosts - {_here(session)}:
        for sentence in _not_shared(session, folders, len(executors)):
            raise InvalidInput(sentence)
    return hosts


class LaterHosts:
    """Asks again once executors come on hosts that were not there when the run began.

    The run goes on, as the others work: a warning says what those hosts do not see.
    """

    def __init__(
        self, session: SparkSession, folders: Mapping[str, Path], known: frozenset[str]
    ) -> None:
        self._session, self._folders = session, folders
        self._hosts = known | {_here(session)}
        self._executors: frozenset[str] = frozenset()

    def look(self, executors: Iterable[str]) -> None:
        """Nothing is asked of Spark unless there are executors of other names than before."""
        before, self._executors = self._executors, frozenset(executors)
        if self._executors <= before:
            return
        with suppress(Unavailable):
            there = [one for one in handles.executors(self._session) if one.active]
            came = {one.host for one in there} - self._hosts
            self._hosts |= came
            if came:
                # As many tasks as slots: on a busy cluster the newest executors have free ones.
                slots = sum(one.cores for one in there)
                # Tasks may have to wait for a batch; the loop must not wait with them.
                threading.Thread(
                    target=self._ask, args=(slots,), name="penstock-later-hosts", daemon=True
                ).start()

    def _ask(self, tasks: int) -> None:
        try:
            said = _not_shared(self._session, self._folders, tasks)
        except (PenstockError, OSError, *SPARK_ERRORS) as error:
            said = [f"what they see is not known: {first_line(error)}"]
        for sentence in said:
            log.warning("executors came on other hosts: %s", sentence)


def _here(session: SparkSession) -> str:
    return str(session.sparkContext.getConf().get("spark.driver.host"))


def _not_shared(session: SparkSession, folders: Mapping[str, Path], tasks: int) -> list[str]:
    """A sentence for each directory that executors do not see as it is here."""
    signs: dict[str, Path] = {}
    try:
        for what, folder in folders.items():
            signs[what] = _sign(what, folder)
        blind = hosts_without(session, list(signs.values()), tasks)
    finally:
        for file in signs.values():
            file.unlink(missing_ok=True)
    return [
        f"{what} is {str(folders[what])!r}, but executors on {', '.join(hosts)} do not see "
        f"{file.parent} as it is here; give a directory that is mounted at the same path "
        "on all hosts."
        for (what, file), hosts in zip(signs.items(), blind, strict=True)
        if hosts
    ]


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


def hosts_without(session: SparkSession, files: Sequence[Path], tasks: int) -> list[list[str]]:
    """Of each file the hosts that do not see it, of those that so many tasks came to."""
    paths = [str(file.absolute()) for file in files]

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import socket

        for _ in batches:
            found = [[os.path.exists(path) for path in paths]]
            yield pa.RecordBatch.from_pydict({"host": [socket.gethostname()], "found": found})

    asked = session.range(0, tasks, 1, tasks)
    rows = asked.mapInArrow(look, "host string, found array<boolean>").collect()
    return [
        sorted({row.host for row in rows if not row.found[number]}) for number in range(len(paths))
    ]
