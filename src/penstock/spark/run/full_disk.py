"""A disk that was full: how a failure says so, and when it is worth another try.

Which disk it was is not known: a checkpoint's or a sink's can be asked by writing there, one of an
executor cannot. So a query is also tried again where all that can be asked have room, each time
after a longer pause.
"""

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.spark.checkpoint.durable_files import StorageFailure

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
_WORDS = re.compile("|".join(re.escape(os.strerror(number)) for number in _NUMBERS))
_NUMBERED = re.compile(rf"\[errno (?:{'|'.join(map(str, _NUMBERS))})\]", re.IGNORECASE)
_KIND = re.compile(r"([\w.$]+(?:Exception|Error|Failure)): ")
_OF_FILES = re.compile(
    r"(?:IOException|FileNotFoundException|FileSystemException|SyncFailedException|FSError"
    rf"|RocksDBException|OSError|{StorageFailure.__name__})$"
)


def says_full(causes: Sequence[str]) -> bool:
    """Whether a file system said that it is full, and not somebody who quotes one.

    >>> says_full(["org.apache.spark.SparkException: java.io.IOException: No space left on device"])
    True
    >>> says_full(["ValueError: the answer was: No space left on device"])
    False
    """
    return any(_line_says_full(line) for said in causes for line in said.splitlines())


def _line_says_full(line: str) -> bool:
    words = _WORDS.search(line)
    if words is None or line.startswith("    "):  # a line of code in a trace
        return False
    before = line[: words.start()]
    kinds = _KIND.findall(before)
    # Python's own exceptions have no module before their names; those of Java wrap others.
    if any("." not in kind and _OF_FILES.search(kind) is None for kind in kinds):
        return False
    of_files = bool(kinds) and _OF_FILES.search(kinds[-1]) is not None
    return of_files or _NUMBERED.search(before) is not None


@dataclass(frozen=True)
class FullDisk:
    """How long a query has been without room, and when it is looked at again."""

    since_s: float
    again_s: float
    pause_s: float = 0.0  # after the last try; 0: there was none
    told: bool = False

    def put_off(self, now_s: float) -> "FullDisk":
        """There is no room yet, as far as can be asked."""
        return replace(self, again_s=now_s + FIRST_PAUSE_S)

    def tried(self, now_s: float) -> "FullDisk":
        """It is started again; should that fail too, a longer pause follows."""
        pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * self.pause_s))
        return replace(self, again_s=now_s + pause_s, pause_s=pause_s)
