"""What topologies were seen to take, kept for the next time that the same code is submitted."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.spark.checkpoint.durable_files import make_directory, remove, write_atomically
from penstock.spark.checkpoint.sealed import read_sealed
from penstock.spark.host.submission import Submission

MOST_COSTS = 1000  # of the code that was run last; each version of a file is one


@dataclass(frozen=True)
class Cost:
    """Processors that a topology wanted last, and its latency by processors."""

    wanted: int = 1
    expected_s: Mapping[int, float] = field(default_factory=dict)

    def wanted_for(self, bound_s: float) -> int:
        """The fewest that keep a bound, else the fastest number; as before, if nothing is known."""
        if not self.expected_s:
            return self.wanted
        enough = [number for number, late_s in self.expected_s.items() if late_s <= bound_s]
        fastest = min(self.expected_s, key=lambda number: (self.expected_s[number], number))
        return min(enough, default=fastest)


class Costs:
    """By the code of a submission, whatever it is called and promised."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_directory(folder)

    def of(self, submission: Submission) -> Cost:
        """What is known of it; nothing at first, or where the record is damaged."""
        try:
            found = read_sealed(self._file(submission))
            late = {
                int(number): math.inf if seconds is None else float(seconds)
                for number, seconds in found["expected_s"].items()
            }
            return Cost(max(1, int(found["wanted"])), late)
        except (OSError, KeyError, TypeError, ValueError, AttributeError):
            return Cost()

    def keep(self, submission: Submission, cost: Cost) -> None:
        """Remember it."""
        late = {
            str(number): seconds if math.isfinite(seconds) else None
            for number, seconds in cost.expected_s.items()
        }
        write_atomically(self._file(submission), {"wanted": cost.wanted, "expected_s": late})
        kept = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        for file in kept[:-MOST_COSTS]:
            remove(file)

    def _file(self, submission: Submission) -> Path:
        code = json.dumps([vars(part) for part in submission.parts], sort_keys=True)
        return self._folder / f"{hashlib.sha256(code.encode()).hexdigest()}.json"
