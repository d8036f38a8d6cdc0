"""The driver's view of its sources: their statuses, and how rows arrived over restarts."""

import json
from pathlib import Path
from typing import Any

from penstock.spark.source.reader import LOGS
from penstock.spark.source.status import read_status


class SourceWatch:
    """Follows the sources of one run, whose files are below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._counted: dict[str, tuple[float, int, int]] = {}  # began, last count, sum before it

    def statuses(self, source: str) -> list[dict[str, Any]]:
        """What each reader of a source said last; a source read twice has two."""
        logs = self.folder / source / LOGS
        found = [read_status(path) for path in sorted(logs.glob("*"), key=lambda p: p.name)]
        return [status for status in found if status is not None]

    def status_at(self, offset: str | None) -> dict[str, Any] | None:
        """The status of the reader that gave an offset; None if it is none of ours."""
        document = json.loads(offset) if offset else None
        if not isinstance(document, dict) or not {"log", "seq", "source"} <= document.keys():
            return None
        status = read_status(self.folder / str(document["source"]) / LOGS / str(document["log"]))
        return None if status is None else {**status, "reached": int(document["seq"])}

    def arrived_rows(self) -> int:
        """Rows that came to all sources since this run began; never falls."""
        total = 0
        for path in sorted(self.folder.glob(f"*/{LOGS}/0")):
            status = read_status(path)
            if status is None:
                continue
            began, last, before = self._counted.get(str(path), (status["began_s"], 0, 0))
            if began != status["began_s"]:  # the runner is another one and counts anew
                before, last = before + last, 0
            count = max(last, int(status["arrived_rows"]))
            self._counted[str(path)] = (status["began_s"], count, before)
            total += before + count
        return total


def waiting_rows(status: dict[str, Any]) -> int:
    """Rows of a source that are in no committed batch."""
    in_flight = status["batch_rows"] if status["seq"] > status["reached"] else 0
    return int(status["waiting_rows"]) + int(in_flight)
