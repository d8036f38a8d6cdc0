"""A history that forgets: what goes, what stays, and that the room it takes has a bound."""

from pathlib import Path

import pytest

from contract.fakes import rich_observation
from penstock.control.actions import Outcome, SetExecutors
from penstock.control.history.retention import Retention, used_bytes
from penstock.control.history.store import PRUNE_EVERY_S, HistoryStore, RunHistory
from penstock.control.records import ActionRecord, RunRecord

HOUR_S = 3600.0


def run(started_at_s: float) -> RunRecord:
    return RunRecord("road", "static", started_at_s, 5.0, 5.0)


def write(history: RunHistory, times_s: list[float]) -> None:
    for at_s in times_s:
        history.observed(rich_observation(at_s))
        history.acted(ActionRecord(at_s, Outcome(SetExecutors(2), True, "done", 1.0)))
    history.flush()


def seen(store: HistoryStore, number: int) -> list[float]:
    return [one.at_s for one in store.read_observations(number)]


def test_periods_go_whole_by_their_age(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(1000.0))
        write(history, [1000.0, 2000.0, 3000.0])
        gone = store.prune(Retention(age_s=1500.0), 4000.0)
        assert (gone.periods, gone.runs) == (2, 0)
        assert seen(store, history.run_id) == [3000.0]
        assert [one.at_s for one in store.read_actions(history.run_id)] == [3000.0]


def test_ended_runs_go_with_their_last_period_and_running_ones_stay(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        ended, running = store.begin(run(1000.0)), store.begin(run(1000.0))
        write(ended, [1000.0])
        write(running, [1000.0])
        ended.end(1500.0)
        gone = store.prune(Retention(age_s=100.0), 4000.0)
        assert (gone.periods, gone.runs) == (2, 1)
        assert list(store.runs()) == [running.run_id]


def test_simulated_runs_do_not_age_by_the_clock_on_the_wall(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(0.0))
        write(history, [5.0, 10.0])
        assert store.prune(Retention(age_s=100.0), 1e9).periods == 0


@pytest.mark.parametrize("started_at_s", [0.0, 1e9])
def test_a_run_of_months_keeps_to_its_age(tmp_path: Path, started_at_s: float) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(started_at_s), Retention(age_s=24 * HOUR_S))
        for hour in range(24 * 8):
            write(history, [started_at_s + hour * HOUR_S])
        kept = seen(store, history.run_id)
        assert kept[-1] == started_at_s + (24 * 8 - 1) * HOUR_S
        assert 24 <= len(kept) <= 24 + PRUNE_EVERY_S / HOUR_S + 1


def test_a_run_of_months_keeps_to_its_size_and_to_its_newest(tmp_path: Path) -> None:
    limit = 400_000
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(1e9), Retention(bytes=limit))
        for hour in range(400):
            write(history, [1e9 + hour * HOUR_S + second for second in range(0, 50, 5)])
            with store.reading() as connection:
                assert used_bytes(connection) < 1.5 * limit
        kept = seen(store, history.run_id)
        assert kept[-1] == 1e9 + 399 * HOUR_S + 45
        assert len(kept) > 100


def test_pruning_gives_the_room_back(tmp_path: Path) -> None:
    file = tmp_path / "h.sqlite"
    with HistoryStore(str(file)) as store:
        history = store.begin(run(1e9))
        write(history, [1e9 + 5 * number for number in range(2000)])
        history.end(2e9)
    with HistoryStore(str(file)) as store:
        before = file.stat().st_size
        store.prune(Retention(age_s=1.0), 3e9)
    assert file.stat().st_size < before / 5
