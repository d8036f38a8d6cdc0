"""`penstock why`: a decision with its numbers, and what other sizes would have come to."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.short_scenario import SCENARIO, STEADY, write_scenario
from penstock.cli import app
from penstock.cli.moments import moment_s
from penstock.control.records import RunRecord
from penstock.errors import InvalidInput

STEPS = '{ profile = "steps", steps = [["60s", 20], ["60s", 90]] }'
RISING = SCENARIO.replace(STEADY, STEPS).replace('"40ms"', '"20ms"')


def penstock(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("why")
    where = str(folder / "h.sqlite")
    made = penstock("simulate", str(write_scenario(folder, RISING, "2m")), "--history", where)
    assert made.exit_code == 0
    return where


def asked(history: str, *words: str) -> Any:
    result = penstock("why", "--history", history, "--json", *words)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_other_sizes_are_judged_by_what_was_recorded(history: str) -> None:
    answer = asked(history)
    found = {one["executors"]: one for one in answer["alternatives"]}
    assert sorted(found) == [1, 2, 3, 4]
    chosen = [one for one in found.values() if one["chosen"]]
    assert [one["processors"] for one in chosen] == [answer["decision"]["guarded"]["processors"]]
    # 90 rows of 20 ms a second keep 1.8 processors busy, and more may come.
    assert (found[1]["latency_s"], found[1]["keeps_promise"]) == (None, False)
    assert found[1]["verdict"].startswith("too few: rows come faster")
    assert found[1]["asks_for"] >= 2


def test_a_quiet_load_says_why_not_more(history: str) -> None:
    answer = asked(history, "--at", "45s")
    assert answer["decision"]["guarded"]["processors"] == 1
    found = {one["executors"]: one for one in answer["alternatives"]}
    assert found[1]["verdict"] == "chosen"
    assert found[2]["verdict"].startswith(
        ("no faster, and 1 executor-hour", "faster than promised")
    )
    assert "3 executor-hours more for every hour" in found[4]["verdict"]
    assert all(one["latency_s"] > 0.25 and one["keeps_promise"] for one in found.values())
    assert answer["observation"]["at_s"] == answer["decision"]["at_s"] == 45


def test_asked_again_with_the_same_options_the_policy_says_what_it_said(history: str) -> None:
    for at in ("30s", "70s", "100s"):
        assert asked(history, "--at", at)["notes"] == []
    other = asked(history, "--at", "30s", "--policy-option", "step=4")
    assert other["notes"][0].startswith("asked again now, promise suggests ")


def test_the_text_is_for_people(history: str) -> None:
    result = penstock("why", "1", "--history", history)
    first, seen, *rest = result.stdout.splitlines()
    assert first.startswith("run 1 of short, ")
    assert "(promise): " in first
    assert seen.startswith("seen: input ")
    assert any("(99% of results within 5 s are promised, for " in line for line in rest)
    assert sum("(chosen)" in line for line in rest) == 1
    assert rest[-1].startswith("Executors were last changed at ")


def test_what_is_not_there_is_refused_in_a_sentence(history: str) -> None:
    unknown = penstock("why", "7", "--history", history)
    assert (unknown.exit_code, unknown.stderr.count("\n")) == (2, 1)
    early = penstock("why", "--at", "1s", "--history", history)
    assert early.exit_code == 2
    assert "run 1 of 'short' holds no decision at or before that time." in early.stderr
    wrong = penstock("why", "--at", "teatime", "--history", history)
    assert wrong.exit_code == 2
    assert "--at is 'teatime'; write a time of day such as 14:05:30" in wrong.stderr


def test_moments_by_the_clock_are_the_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    began = datetime(2026, 5, 1, 23, 50, tzinfo=UTC).astimezone()
    run = RunRecord("road", "promise", began.timestamp(), 5.0, 5.0)
    ten_later = began.timestamp() + 600
    later = datetime.fromtimestamp(ten_later).astimezone()
    for text in (f"{later:%H:%M}", f"{later:%Y-%m-%dT%H:%M}", later.isoformat()):
        assert moment_s(text, "--at", run) == pytest.approx(ten_later, abs=1)
    assert moment_s("10m", "--at", run) == ten_later
    for text in ("25:00", "1:2:3:4", "2026-13-01T00:00", "-", ""):
        with pytest.raises(InvalidInput, match="--at is"):
            moment_s(text, "--at", run)


def test_a_policy_that_is_not_known_here_is_not_asked(history: str, tmp_path: Path) -> None:
    import shutil
    import sqlite3

    copy = tmp_path / "h.sqlite"
    shutil.copy(history, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute("update penstock_decisions set policy = 'mine'")
    answer = asked(str(copy))
    assert {one["asks_for"] for one in answer["alternatives"]} == {None}
    assert answer["alternatives"][0]["verdict"].startswith("too few")
