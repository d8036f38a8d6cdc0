"""The driver's view of its sources: their statuses, and how rows arrived over restarts."""

from pathlib import Path
from typing import Any

from penstock.model.observation import AdmissionRecord, LaneObservation, SourceObservation
from penstock.spark.sources.reader import LOGS
from penstock.spark.sources.status import read_status


class SourceWatch:
    """Follows the sources of one run, whose files are below a folder."""

    def __init__(self, folder: Path, of_new_run: bool = False) -> None:
        """With `of_new_run`, what has been said by now is of readers that are no more."""
        self.folder = folder
        # Known by what it says: the clock may be set back between two runs, and within one.
        self._earlier = {str(log): read_status(log) for log in self._logs()} if of_new_run else {}
        self._decided: dict[str, tuple[float, int]] = {}  # by log: the runner, its newest decision
        self._counted: dict[str, tuple[float, int, int]] = {}  # began, last count, sum before it

    def statuses(self, source: str) -> list[dict[str, Any]]:
        """What each reader of a source said last; a source read twice has two."""
        found = map(read_status, self._logs(source))
        return [status for status in found if status is not None]

    def fresh_statuses(self, source: str) -> list[dict[str, Any]]:
        """What readers of this run said; a reader of an earlier one is no more."""
        found = map(self._fresh, self._logs(source))
        return [status for status in found if status is not None]

    def status_at(self, source: str, log: int, seq: int) -> dict[str, Any] | None:
        """What the reader of a log says, with the entry up to which it is `reached`."""
        status = self._fresh(self.folder / source / LOGS / str(log))
        return None if status is None else {**status, "reached": seq}

    def arrived(self) -> dict[str, tuple[int, float]]:
        """Rows that came to each source since this run began, and when it counted them.

        Counts never fall. A source looks once a batch, so one may be older than the question.
        """
        total: dict[str, tuple[int, float]] = {}
        for path in self._logs():
            status = self._fresh(path)
            if status is None:
                continue
            began, last, before = self._counted.get(str(path), (status["began_s"], 0, 0))
            arrived = int(status["arrived_rows"])
            if began != status["began_s"]:  # another runner, which counts anew from what waits
                before, last = before + last - arrived, arrived
            self._counted[str(path)] = (status["began_s"], max(last, arrived), before)
            source = path.parent.parent.name  # read twice, its rows still came once
            counted = (before + max(last, arrived), float(status["at_s"]))
            total[source] = max(total.get(source, counted), counted)
        return total

    def observe(self) -> tuple[SourceObservation, ...]:
        """Every source with the decisions it made since the last call."""
        found = []
        for path in self._logs():
            status = self._fresh(path)
            if status is not None:
                found.append(self._observed(str(path), status))
        return tuple(found)

    def _logs(self, source: str = "*") -> list[Path]:
        return sorted(self.folder.glob(f"{source}/{LOGS}/*"))

    def _fresh(self, log: Path) -> dict[str, Any] | None:
        """What the reader of a log says; None where it was said before this run."""
        status = read_status(log)
        if status is not None and status == self._earlier.get(str(log)):
            return None
        self._earlier.pop(str(log), None)
        return status

    def _observed(self, log: str, status: dict[str, Any]) -> SourceObservation:
        began, newest = self._decided.get(log, (0.0, 0))
        newest = newest if began == status["began_s"] else 0
        records = [
            AdmissionRecord(
                **{**made, "reasons": tuple(made["reasons"]), "source": status["source"]}
            )
            for made in status["decisions"]
            if made["number"] > newest
        ]
        self._decided[log] = (status["began_s"], records[-1].number if records else newest)
        foreseen = status.get("foreseen") or {}  # not of a runner that has yet to decide
        return SourceObservation(
            source=status["source"],
            live=status["streams"]["live"],
            leaving=status["streams"]["leaving"],
            suspended=status["streams"]["suspended"],
            waiting_rows=status["waiting_rows"],
            malformed_rows=status["malformed_rows"],
            redirected=status["redirected"],
            lanes=tuple(LaneObservation(**lane) for lane in status["lanes"]),
            decisions=tuple(records),
            notes=tuple(status["notes"]),
            foreseen_rate_per_s=foreseen.get("rate_per_s"),
            foreseen_horizon_s=foreseen.get("horizon_s"),
        )


def waiting_rows(status: dict[str, Any]) -> int:
    """Rows of a source that are in no committed batch."""
    in_flight = status["batch_rows"] if status["seq"] > status["reached"] else 0
    return int(status["waiting_rows"]) + int(in_flight)
