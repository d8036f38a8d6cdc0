"""Files that only tell or tidy: that one cannot be written must not end a query.

What a query needs to go on after a crash is written through durable_files.py, and its failures end
the query or make it wait.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


class AdvisoryFiles:
    """Says once what cannot be written, and again when it can and then cannot."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._failing: set[str] = set()

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Go on without it where the file system refuses."""
        try:
            yield
        except OSError as error:
            if what not in self._failing:
                log.warning("%s goes on without %s: %s", self._whose, what, error)
            self._failing.add(what)
        else:
            self._failing.discard(what)
