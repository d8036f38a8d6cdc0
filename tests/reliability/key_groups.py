"""What is disturbed, besides: another number of key groups, and the run that goes on after it."""

import json
from pathlib import Path
from typing import Any

from penstock.errors import InvalidTopology, PenstockError
from penstock.model.plan import QueryPlan, TopologyPlan
from penstock.spark.checkpoint.carried_state import forget_after, numbered
from penstock.spark.checkpoint.durable_files import copy_tree, remove_tree, sync_tree
from penstock.spark.checkpoint.key_groups import ChangedQuery, change_key_groups
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.checkpoint.plan_record import PlanRecord
from penstock.spark.checkpoint.stored_query import PARTITIONS, StoredQuery
from penstock.spark.checkpoint.superseded import Superseded

from .crash_points import Scenario

FEW, MANY = 4, 8
QUERIES = ("road", "tolls")
PLAN = TopologyPlan(tuple(QueryPlan(name, (), (), "append") for name in QUERIES))


def divided(_: Any, query: StoredQuery, new: Path, wanted: int) -> ChangedQuery:
    """A copy in so many key groups, but for what Spark does with the state in it."""
    remove_tree(new)
    copy_tree(query.folder, new)
    forget_after(new / "offsets", query.batch)
    for folder in ("offsets", "commits"):
        _log(new / folder, query.batch + 1, wanted)
    sync_tree(new)
    return ChangedQuery(query.name, query.key_groups, wanted, 1, str(query.folder))


class ChangedAgain(Scenario):
    """Key groups are changed, twice if the first time was cut short, and the run goes on."""

    insists = True

    def prepare(self) -> None:
        self.attempts, self.held = 0, None
        with Checkpoint(self._folder) as checkpoint:
            checkpoint.check_identity(_identity(FEW))
            checkpoint.epoch_s(1.0)
            checkpoint.writer_id()
            checkpoint.record_plan(PlanRecord(PLAN, {}, {}).to_json())
            checkpoint.mark_handed(dict.fromkeys(QUERIES, 1))
            for name in QUERIES:
                for batch in range(2):
                    for folder in ("offsets", "commits"):
                        _log(checkpoint.query_folder(name) / folder, batch, FEW)
                state = checkpoint.query_folder(name) / "state/0/0"
                state.mkdir(parents=True)
                (state / "1.zip").write_text(f"state of {name}")

    def run(self) -> None:
        self.attempts += 1
        if self.insists:
            self.retried(lambda: change_key_groups(_NO_SESSION, self._folder, MANY))
        elif self.attempts == 1:
            try:
                change_key_groups(_NO_SESSION, self._folder, MANY)
            except PenstockError as error:
                self.failures.append(str(error))
        self._go_on()

    def _go_on(self) -> None:
        """As a run does: each query goes on from where it is, and then forgets where it was."""

        def entered() -> None:
            self.abandon()
            self.held = Checkpoint(self._folder).__enter__()

        self.retried(entered)
        held = self.held
        assert held is not None
        of_all = self._number_said(held)
        superseded = Superseded(held)
        for name in QUERIES:
            folder = held.query_folder(name)
            last = numbered(folder / "commits")[-1]
            assert _key_groups(folder, last) == of_all, "one number for all of the checkpoint"
            for batch in (last + 1, last + 2):
                _log(folder / "offsets", batch, of_all)
                self.retried(lambda n=name, b=batch: superseded.batch_written(n, b))  # type: ignore[misc]
                _log(folder / "commits", batch, of_all)
            assert (folder / "state").is_dir(), "what a query goes on with stays"

    def _number_said(self, held: Checkpoint) -> int:
        """As who starts the run finds out: with the number it had, or else with the other."""
        try:
            held.check_identity(_identity(FEW))
        except InvalidTopology:
            held.check_identity(_identity(MANY))
            return MANY
        return FEW

    def abandon(self) -> None:
        if self.held is not None:
            self.held.__exit__(None, None, None)
            self.held = None

    def result(self) -> Any:
        with Checkpoint(self._folder) as checkpoint:
            folders = [checkpoint.query_folder(name) for name in QUERIES]
        left = set((self._folder / "queries").iterdir()) - set(folders)
        states = [(folder / "state/0/0/1.zip").read_text() for folder in folders]
        return states, sorted(left), self._many(folders)

    def _many(self, folders: list[Path]) -> bool:
        return all(_key_groups(one, numbered(one / "commits")[-1]) == MANY for one in folders)

    @property
    def _folder(self) -> Path:
        return self.directory / "checkpoint"


class GivenUp(ChangedAgain):
    """The same, but whoever was refused starts the run again as it was."""

    insists = False

    def _many(self, folders: list[Path]) -> bool:
        return True  # or not: it is one or the other, which was seen to


class InPlace(Scenario):
    """The checkpoint of a query without Penstock, whose path must stay."""

    def prepare(self) -> None:
        for batch in range(2):
            for folder in ("offsets", "commits"):
                _log(self._folder / folder, batch, FEW)
        (self._folder / "state").mkdir()

    def run(self) -> None:
        assert numbered(self._folder / "commits"), "its query could be started at any time"
        self.retried(lambda: change_key_groups(_NO_SESSION, self._folder, MANY))

    def abandon(self) -> None:
        """There is no lock of ours in it."""

    def result(self) -> Any:
        left = sorted(one.name for one in self.directory.iterdir())
        return left, _key_groups(self._folder, numbered(self._folder / "commits")[-1])

    @property
    def _folder(self) -> Path:
        return self.directory / "query"


_NO_SESSION: Any = None


def _identity(key_groups: int) -> dict[str, Any]:
    return {"topology": "road", "key_groups": key_groups}


def _log(folder: Path, batch: int, key_groups: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    settings = json.dumps({"conf": {PARTITIONS: str(key_groups)}})
    (folder / str(batch)).write_text(f"v1\n{settings}\n{batch}")


def _key_groups(folder: Path, batch: int) -> int:
    text = (folder / "offsets" / str(batch)).read_text()
    return int(json.loads(text.split("\n")[1])["conf"][PARTITIONS])
