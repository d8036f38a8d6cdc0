"""Whose the directory of a file sink is: one run's at a time, by a lock and by a name.

Two runs in one directory would mix their batches, or one would remove the other's. So a run holds
a lock for as long as it lives, and leaves the name of its checkpoint there: who goes on with that
checkpoint goes on, anybody else begins anew or is refused. A remote store has no locks: there the
name alone counts, and who has lost the directory is refused at its next batch.
"""

import errno
import logging
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InvalidInput, PenstockError, Unavailable, documented
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.checkpoint.durable_files import exclusive, make_directory, remove_leftovers
from penstock.spark.checkpoint.sealed import sealed, unsealed
from penstock.spark.sinks import files as file_sink
from penstock.spark.sinks.places import local_path, place_of

log = logging.getLogger(__name__)

OURS = "_penstock"  # readers skip names that begin with an underscore
LIMIT_S = 60.0  # for a run of the same checkpoint that was killed and has not ended yet
POLL_S = 0.05
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class Output:
    """The directory of one file sink, and the run whose it is."""

    sink: str
    directory: str
    writer: str

    def check(self) -> None:
        """Refuse to write where another run has begun meanwhile."""
        if self.owner() not in (self.writer, None):
            raise InvalidInput(
                f"sink {self.sink!r}: {self.directory} was taken over by another run, so nothing "
                "more is written there; end that run and begin anew, or give each a directory of "
                "its own."
            )

    def owner(self) -> str | None:
        """The run that wrote here last; None if there is none, or one that left no name."""
        file = f"{self._ours}/owner"
        found = place_of(file).read(file)
        try:
            return None if found is None else str(unsealed(found)["writer"])
        except (ValueError, KeyError) as error:
            raise InvalidInput(
                f"sink {self.sink!r}: {file} is damaged ({error}); remove it if no other run "
                "writes there."
            ) from error

    def take(self, overwrite: bool, goes_on: bool) -> None:
        """Make it this run's, without batches of another one; only under the lock."""
        owner = self.owner()
        if owner != self.writer:
            # A checkpoint of before there were owners knows which batches are its own.
            if owner is not None or not goes_on:
                self._make_room(overwrite, goes_on)
            file = f"{self._ours}/owner"
            place_of(file).replace(file, sealed({"writer": self.writer}))
        file_sink.sweep(self.directory)

    def _make_room(self, overwrite: bool, goes_on: bool) -> None:
        place, batches = place_of(self.directory), batches_in(self.directory)
        if batches and goes_on:
            self.check()
        refuse_batches(self.sink, batches, overwrite)
        for batch in batches:
            place.remove_tree(batch)
        file_sink.remove(f"{self.directory}/{file_sink.STAGED}")
        # Before the directory is ours: a batch that came back after a power cut would stay.
        place.sync(self.directory)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out; one of the same checkpoint that was killed is waited for."""
        folder = local_path(self._ours)
        with ExitStack() as held:
            if folder is None:
                place_of(self._ours).make(self._ours)
            else:
                make_directory(folder, 0o777)
                self._lock(folder / "lock", held)
                remove_leftovers(folder)
            yield

    def _lock(self, lock: Path, held: ExitStack) -> None:
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                held.enter_context(exclusive(lock, wait=False, mode=0o666))
            except BlockingIOError:
                if self.owner() != self.writer or time.monotonic() > deadline:
                    raise self._in_use() from None
                time.sleep(POLL_S)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                log.warning("sink %r: %s cannot be locked: %s", self.sink, self.directory, error)
                return
            else:
                return

    def refuse_if_held(self) -> None:
        """Refuse a directory that another run writes to; nothing is made or changed."""
        folder = local_path(self._ours)
        if folder is None or not (folder / "lock").exists():
            return
        try:
            with exclusive(folder / "lock", wait=False):
                pass
        except BlockingIOError:
            raise self._in_use() from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise

    def _in_use(self) -> Unavailable:
        return Unavailable(
            f"sink {self.sink!r}: {self.directory} is in use by another run; end that run, or give "
            "the sink a directory of its own."
        )

    @property
    def _ours(self) -> str:
        return f"{self.directory}/{OURS}"


@dataclass(frozen=True)
class Outputs:
    """All that a run holds."""

    held: tuple[Output, ...]

    def check(self, sinks: Collection[str]) -> None:
        """Refuse to write to any of these sinks that is another run's meanwhile."""
        for one in self.held:
            if one.sink in sinks:
                one.check()


@contextmanager
def held_outputs(topology: Topology, writer: str, goes_on: bool) -> Iterator[Outputs]:
    """Hold the directories of all file sinks, and make room in those that are not ours yet.

    `writer` is the same whenever a checkpoint goes on, which `goes_on` says it does.
    """
    with ExitStack() as held:
        yield Outputs(
            tuple(
                _taken(_output(one.name, one.sink, writer), one.sink, goes_on, held)
                for one in topology.sinks
                if isinstance(one.sink, Files)
            )
        )


def _output(name: str, sink: Files, writer: str) -> Output:
    return Output(name, file_sink.directory_of(sink.path), writer)


@documented("reliability")
def _taken(output: Output, sink: Files, goes_on: bool, held: ExitStack) -> Output:
    try:
        held.enter_context(output.held())
        output.take(sink.overwrite, goes_on)
    except PenstockError:
        raise
    except OSError as error:
        raise Unavailable(
            f"sink {output.sink!r}: {sink.path} cannot be used: {error.strerror or error}."
        ) from error
    return output


def refuse_other_runs(name: str, sink: Files) -> None:
    """Refuse a run that begins where another one writes, or has written and may not be removed."""
    _output(name, sink, "").refuse_if_held()
    refuse_batches(name, batches_in(sink.path), sink.overwrite)


def refuse_batches(name: str, batches: list[str], overwrite: bool) -> None:
    """Refuse batches of another run, unless they may be removed."""
    if batches and not overwrite:
        raise InvalidInput(
            f"sink {name!r}: {batches[0]} exists already and this run starts from scratch; "
            "continue the checkpoint it was written with (--checkpoint), give the sink an empty "
            "folder, or have it emptied: Files(..., overwrite=True)."
        )


def batches_in(path: str) -> list[str]:
    """The published batches below a path."""
    names = place_of(path).names(path)
    return [f"{path.rstrip('/')}/{one}" for one in names if one.startswith("batch=")]
