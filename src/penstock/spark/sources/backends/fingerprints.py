"""Whether a file still is the one that was read: an inode is given anew once its file is deleted.

Of each file the first bytes, the last that had been read and the last there were are remembered,
and compared, as far as they have been read, whenever it has grown. A runner that begins remembers
what it finds.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Unavailable

LENGTH_BYTES = 64
SLACK = 256  # streams that left are forgotten once they are many


@dataclass(slots=True)
class _Fingerprint:
    inode: int
    pieces: list[tuple[int, bytes]]  # with the byte each begins at

    def fits(self, descriptor: int, read: int) -> bool:
        """Whether a file has the same pieces; what was not read yet may have changed."""
        for at, piece in self.pieces:
            length = min(len(piece), read - at)
            if length > 0 and os.pread(descriptor, length, at) != piece[:length]:
                return False
        return True


class Fingerprints:
    """By the name of the stream."""

    def __init__(self, directory: Path) -> None:
        self._prefix = f"{directory}/"
        self._known: dict[str, _Fingerprint] = {}

    def __contains__(self, stream: str) -> bool:
        return stream in self._known

    def forget(self, stream: str) -> None:
        """What comes under this name now is another file."""
        self._known.pop(stream, None)

    def keep_only(self, streams: Collection[str]) -> None:
        """Forget streams that left."""
        if len(self._known) > 2 * len(streams) + SLACK:
            self._known = {name: self._known[name] for name in streams if name in self._known}

    def agree(self, stream: str, file: str, inode: int, read: int) -> bool:
        """Whether a file is the one whose first `read` bytes were read for a stream.

        If so, its fingerprint is taken anew. Raises Unavailable for a file that cannot be opened.
        """
        known = self._known.get(stream)
        try:
            descriptor = os.open(self._prefix + file, os.O_RDONLY)
        except OSError as error:
            raise Unavailable(f"{file} cannot be opened: {error.strerror}.") from error
        try:
            if known is not None and known.inode == inode and not known.fits(descriptor, read):
                return False
            # Most often all that is there now is what will have been read at the next look.
            size = os.fstat(descriptor).st_size
            places = {0, max(0, read - LENGTH_BYTES), max(0, size - LENGTH_BYTES)}
            pieces = [(at, os.pread(descriptor, LENGTH_BYTES, at)) for at in places]
        finally:
            os.close(descriptor)
        self._known[stream] = _Fingerprint(inode, pieces)
        return True
