"""Which streams are wanted: those the backend finds, those declared in a file, those asked for.

A later source wins over an earlier one, for membership and for each item of meta-data: discovery,
the declared file, the running program. What cannot be read leaves things as they were and is said.
"""

import logging
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.spark.sources.backends.backend import Backend, Discovered
from penstock.spark.sources.control import FILE, Control, ControlFile
from penstock.spark.sources.declared import Declared, read_declared
from penstock.spark.sources.settings import SourceSettings
from penstock.spark.sources.stream_meta import Meta, contradiction, merged, understood

log = logging.getLogger(__name__)

DISAGREE = "meta-data from several places"


class Membership:
    """Looks at the three places whenever they may have changed."""

    def __init__(self, settings: SourceSettings, backend: Backend) -> None:
        self._settings = settings
        self._backend = backend
        self._control = ControlFile(Path(settings.directory) / FILE)
        self._looked_s = -float("inf")
        self._stamps: dict[Path, object] = {}
        self._found: dict[str, Meta] = {}
        self._discovered: object = None
        self._changed = True  # at first, whatever there is
        self._declared = Declared()
        self.control = Control()
        self.wanted: dict[str, dict[str, Any]] = {}
        self.notes: dict[str, str] = {}  # what could not be read, by place

    def refresh(self, steady_s: float) -> bool:
        """Look again, at a time of the monotonic clock; True if what is wanted has changed."""
        # What was read before a backend turns out to be away is not read again: remember it.
        self._changed |= self._look_at_control()
        self._changed |= self._look_at_declared()
        self._changed |= self._look_around(steady_s)
        changed, self._changed = self._changed, False
        if changed:
            self.wanted = self._merged()
        return changed

    def _merged(self) -> dict[str, dict[str, Any]]:
        removed = set(self.control.removed)
        declared = self._declared
        wanted = {name: dict(meta) for name, meta in self._found.items() if name not in removed}
        for name in (*declared.streams, *self.control.added):
            if name not in removed:
                wanted.setdefault(name, {})
        self.notes.pop(DISAGREE, None)
        if declared.patterns:
            wanted = {
                name: self._agreed(name, meta, declared.of(name)) for name, meta in wanted.items()
            }
        for known in (declared.streams, self.control.added):
            for name, meta in known.items():
                if name not in removed:
                    wanted[name] = self._agreed(name, wanted[name], meta)
        return wanted

    def _agreed(self, name: str, known: Meta, more: Meta) -> dict[str, Any]:
        """Both, or where they contradict each other what was said last; one stream's alone."""
        both = merged(known, more)
        wrong = contradiction(both) if known and more else None
        if wrong is None:
            return both
        self._note(DISAGREE, f"stream {name!r}: {wrong}; what was said last holds alone")
        return dict(more)

    def _look_around(self, steady_s: float) -> bool:
        due = steady_s - self._looked_s >= self._settings.discovery_period_s
        if not self._settings.discover or not due:
            return False
        self._looked_s = steady_s
        discovered = self._backend.discover()
        if discovered is self._discovered:
            return False
        self._discovered = discovered
        found = {
            stream.name: self._understood(stream) if stream.meta else stream.meta
            for stream in discovered
        }
        if found == self._found:
            return False
        self._found = found
        return True

    def _understood(self, stream: Discovered) -> Meta:
        """What the backend knows of a stream; nothing, if that makes no sense."""
        try:
            return understood(stream.name, stream.meta)
        except InvalidInput as error:
            self._note("meta-data of the backend", str(error))
            return {}

    def _look_at_control(self) -> bool:
        before, self.control = self.control, self._control.read()
        if self._control.fault:
            self._note("control file", self._control.fault)
        else:
            self.notes.pop("control file", None)
        return (before.added, before.removed) != (self.control.added, self.control.removed)

    def _look_at_declared(self) -> bool:
        if self._settings.declared is None:
            return False
        file = Path(self._settings.declared)
        if not self._has_changed(file):
            return False
        try:
            self._declared = read_declared(file)
        except InvalidInput as error:
            self._note("declared streams", f"{error} The streams stay as they were.")
            return False
        self.notes.pop("declared streams", None)
        return True

    def _has_changed(self, file: Path) -> bool:
        try:
            found = file.stat()
            stamp: object = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            stamp = None
        if file in self._stamps and self._stamps[file] == stamp:
            return False
        self._stamps[file] = stamp
        return True

    def _note(self, place: str, said: str) -> None:
        if self.notes.get(place) == said:
            return
        self.notes[place] = said
        log.warning("source %s: %s: %s", self._settings.source, place, said)
