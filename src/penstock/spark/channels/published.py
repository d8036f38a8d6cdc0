"""The log of a channel as one of its readers or writers has seen it so far."""

import os
from pathlib import Path

from penstock.errors import InvalidInput
from penstock.spark.channels.entries import Entry, entry_from
from penstock.spark.checkpoint.durable_files import remove, write_new
from penstock.spark.checkpoint.sealed import unsealed

MOST_SEEN = 1_000  # entries taken in one by one before the log is listed anew


class PublishedLog:
    """The directory of entries, in the order of their numbers; others may add and remove some."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[Entry] = []
        self.next_number = 0
        self._listed = 0

    def refresh(self) -> None:
        """Take in what was published since the last look."""
        if not self.entries or len(self.entries) > 2 * self._listed + MOST_SEEN:
            # What others removed meanwhile is forgotten with the list.
            self.entries.clear()
            for number in self._numbers():
                self._take(number)
            self._listed = len(self.entries)
        while True:
            while self._take(self.next_number):
                pass
            # Whoever looks seldom finds entries gone that were published and read meanwhile; the
            # next one itself may have come since it was looked for.
            later = [number for number in self._numbers() if number >= self.next_number]
            if not later:
                return
            self.next_number = later[0]

    def newest(self) -> dict[str, Entry]:
        """The last entry of each writer."""
        return {entry.writer: entry for entry in self.entries}

    def add(self, entry: Entry) -> None:
        """Publish an entry; only for whoever holds the channel's lock."""
        write_new(self._file(entry.sequence), entry.as_json())

    def drop(self, entry: Entry) -> None:
        """Remove an entry; likewise."""
        remove(self._file(entry.sequence))
        self.entries.remove(entry)

    def _numbers(self) -> list[int]:
        """The entries that are there, up to one that was there when this was called.

        A listing made while entries are added may show one and miss an earlier one. That one was
        there before the listing ended, so a second listing shows it, unless it was removed.
        """
        last = max(self._listing(), default=-1)
        return sorted(number for number in self._listing() if number <= last)

    def _listing(self) -> list[int]:
        return [int(name[:-5]) for name in os.listdir(self.folder) if name[:-5].isdigit()]

    def _take(self, number: int) -> bool:
        """Read one entry; False if there is none of that number."""
        file = self._file(number)
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            return False
        try:
            entry = entry_from(unsealed(data))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"channel {self.folder.parent}: log entry {file.name} is damaged ({error}); "
                "restore it, or start with another channel."
            ) from error
        self.entries.append(entry)
        self.next_number = number + 1
        return True

    def _file(self, sequence: int) -> Path:
        return self.folder / f"{sequence:012d}.json"
