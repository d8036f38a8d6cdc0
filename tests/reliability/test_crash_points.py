"""Every single step of our durable files: stopped there, without power there, failing there."""

import errno
import os
import random
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.spark.checkpoint import durable_files, key_groups
from penstock.spark.routes import exchange as route_exchange
from penstock.spark.sinks import commit_records
from penstock.spark.sources import log as admission_log

from . import key_groups as changes
from .crash_points import Campaign, Scenario
from .key_groups import ChangedAgain, GivenUp, InPlace
from .orders import Orders
from .routes import Routes
from .scenarios import Admission, Batches, Records

# What is damaged; a damaged table is replaced, orders before damaged ones hold, and a plain query
# has no file of ours.
REFUSING = [Batches, Admission, Records, ChangedAgain, GivenUp]
SCENARIOS = [*REFUSING, Routes, InPlace, Orders]
LEAST_STEPS = {
    Batches: 250,
    Admission: 80,
    Records: 150,
    Routes: 220,
    ChangedAgain: 170,
    GivenUp: 170,
    InPlace: 40,
    Orders: 100,
}  # as docs/reliability.md tells
ERRORS = (errno.ENOSPC, errno.EACCES, errno.EIO)
MEMORY = Path("/dev/shm")  # thousands of directories, synced all the time


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(dir=MEMORY)) if MEMORY.is_dir() else tmp_path
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few batches pass through everything."""
    monkeypatch.setattr(admission_log, "MOST_ENTRIES", 3)
    monkeypatch.setattr(commit_records, "KEPT_COMMITS", 1)
    monkeypatch.setattr(route_exchange, "KEPT_TABLES", 4)
    monkeypatch.setattr(key_groups, "_divided", changes.divided)
    monkeypatch.setattr(key_groups, "held_by_driver", lambda *_: nullcontext())


@pytest.fixture
def every(request: pytest.FixtureRequest) -> bool:
    """Whether each step is tried in each way, or in one after the other."""
    return bool(request.config.getoption("--long"))


@pytest.mark.parametrize("kind", SCENARIOS)
def test_stopped_at_each_step_and_again_while_it_recovers(
    kind: type[Scenario], room: Path, every: bool
) -> None:
    campaign = Campaign(kind, room)
    assert campaign.points >= LEAST_STEPS[kind]
    moments = random.Random(7)
    for number in range(campaign.points):
        again = moments.randrange(60)
        for moment in (None, again) if every else ((None, again)[number % 2],):
            campaign.stopped(number, again=moment)


@pytest.mark.parametrize("kind", SCENARIOS)
def test_without_power_at_each_step(kind: type[Scenario], room: Path) -> None:
    campaign = Campaign(kind, room)
    for number in range(campaign.points):
        campaign.without_power(number)


@pytest.mark.parametrize("kind", SCENARIOS)
def test_without_power_when_some_of_what_was_not_synced_is_there(
    kind: type[Scenario], room: Path, every: bool
) -> None:
    campaign = Campaign(kind, room)
    luck = random.Random(13)
    for number in range(0, campaign.points, 1 if every else 2):
        campaign.without_power(number, luck)


class Forgetful:
    """The module `os` for durable files, which leaves out one kind of sync."""

    def __init__(self, left_out: str) -> None:
        self._left_out = left_out

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        if self._left_out != ("folder" if folder else "file"):
            os.fsync(descriptor)

    def fdatasync(self, descriptor: int) -> None:
        if self._left_out != "append":
            os.fdatasync(descriptor)


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [(Batches, "file"), (Batches, "folder"), (Admission, "folder"), (Admission, "append"),
     (Records, "file"), (Records, "folder")],
)  # fmt: skip
def test_a_sync_that_is_left_out_is_noticed(
    kind: type[Scenario], left_out: str, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign(kind, room)
    monkeypatch.setattr(durable_files, "os", Forgetful(left_out))
    with pytest.raises((AssertionError, PenstockError)):
        _all_without_power(campaign, random.Random(17))


def _all_without_power(campaign: Campaign, luck: random.Random) -> None:
    for number in range(campaign.points):
        campaign.without_power(number)
        campaign.without_power(number, luck)


@pytest.mark.parametrize("kind", REFUSING)
def test_a_byte_is_damaged(kind: type[Scenario], room: Path, every: bool) -> None:
    campaign = Campaign(kind, room)
    moments = random.Random(11)
    often = campaign.points * 10 if every else campaign.points // 3
    refused = sum(
        campaign.damaged(moments.randrange(campaign.points), moments) for _ in range(often)
    )
    assert refused > often // 6  # the rest was not read again


@pytest.mark.parametrize("kind", SCENARIOS)
def test_failing_at_each_step(kind: type[Scenario], room: Path, every: bool) -> None:
    campaign = Campaign(kind, room)
    for number in range(campaign.points):
        for error in ERRORS if every else (ERRORS[number % len(ERRORS)],):
            campaign.failed(number, error)
