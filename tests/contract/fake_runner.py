"""What a host runs topologies with, without Spark."""

import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.sharing.quotas import Quota
from penstock.spark.host.submission import Submission

LIMIT_S = 120.0  # only against what never comes


class FakeRunning:
    """What a topology's run is to its host."""

    def __init__(self, fails: bool) -> None:
        self._over, self._fails = threading.Event(), fails

    def wait(self) -> None:
        if self._fails:
            raise RuntimeError("the user's code raised")
        assert self._over.wait(LIMIT_S)

    def stop(self) -> None:
        self._over.set()

    def status(self) -> Mapping[str, Any]:
        return {"processors": 1, "processors_wanted": 2, "results": 7, "in_time_share": 0.5,
                "max_latency_s": 2.0}  # fmt: skip

    def results(self, sink: str | None, rows: int) -> Mapping[str, Any]:
        return {"sink": sink or "out", "columns": ["a", "b"], "rows": [["1", "x"]] * rows}


class FakeRunner:
    """Runs nothing; files that say so are refused, or fail."""

    def __init__(self, most: int = 3) -> None:
        self.processors, self.started = most, list[str]()
        self.there, self.quotas = set[str](), dict[str, Quota]()

    def check(self, submission: Submission, code: Path) -> str | None:
        if "refuse" in (code / submission.parts[0].name / submission.file).read_text(
            encoding="utf-8"
        ):
            raise InvalidInput(f"{submission.file} is refused.")
        self.there.add(submission.name)
        count = len(self.there)
        return None if count <= self.processors else f"{count} are too many."

    def left(self, name: str) -> None:
        self.there.discard(name)

    def set_quotas(self, quotas: Mapping[str, Quota]) -> None:
        self.quotas = dict(quotas)

    def common(self, names: Collection[str]) -> list[dict[str, Any]]:
        found = {"topologies": sorted(names), "steps": ["rows"], "once": False, "saving": "s"}
        return [found] if len(names) > 1 else []

    def start(self, submission: Submission, code: Path, checkpoint: Path) -> FakeRunning:
        text = (code / submission.parts[0].name / submission.file).read_text(encoding="utf-8")
        if "exit" in text:
            raise SystemExit(3)
        self.started.append(submission.name)
        return FakeRunning("fail" in text)
