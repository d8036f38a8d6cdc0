"""What a soak needs before anything runs: its order of faults, its clock and disk, its table."""

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from soak import forms, report, verify
from soak.campaign import LEG_S, REST_S, length_of_leg
from soak.faults import FAULTS
from soak.leg import SLOW_A_LEG, Leg
from soak.processes import INSIDE

IN_A_MOVE = "driver killed in a move"
FORMS_HERE = [form for form in forms.FORMS if form not in forms.WRITTEN]


@pytest.mark.parametrize("form", FORMS_HERE)
def test_a_seed_gives_the_same_faults_and_every_kind_comes(tmp_path: Path, form: str) -> None:
    def volleys() -> list[list[str]]:
        leg = Leg(tmp_path, form, seed=5, length_s=1e6)
        return list(leg._volleys(60, None))

    given = volleys()
    assert given == volleys()
    kinds = [kind for volley in given for kind in volley]
    assert len(kinds) == 60
    possible = {kind for kind, fault in FAULTS.items() if fault.possible(Leg(tmp_path, form, 5, 1))}
    assert set(kinds) >= {kind for kind in possible if not FAULTS[kind].slow}
    slow = [kind for kind in kinds if FAULTS[kind].slow]
    assert len(slow) == len(set(slow)) == SLOW_A_LEG
    assert all(kinds.count(kind) <= 1 for kind in FAULTS if FAULTS[kind].alone)
    assert max(map(len, given)) > 3
    for volley in given:
        assert len(volley) == len(set(volley))
        assert len(volley) == 1 or not any(FAULTS[kind].alone for kind in volley)


def test_kinds_that_were_had_least_often_come(tmp_path: Path) -> None:
    had = Counter[str]()
    for form in ["plain", "fused", "joined", "windowed"]:
        leg = Leg(tmp_path, form, seed=5, length_s=1e4)
        had.update(kind for volley in leg._volleys(60, None, had) for kind in volley)
    slow = {kind for kind, fault in FAULTS.items() if fault.slow}
    assert {had[kind] for kind in slow} == {1}


class Telling:
    """A run that tells of a move once it was asked for it some times."""

    def __init__(self, after: int) -> None:
        self.told, self._left = Counter[str](), after

    def __call__(self, kind: str, limit_s: float) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize(
    ("after", "order"),
    [
        (0, ["slow disk", IN_A_MOVE, "page killed", "clock step"]),
        (2, ["slow disk", "page killed", "clock step", IN_A_MOVE]),
        (9, ["slow disk", "page killed", "clock step", "driver killed"]),
    ],
)
def test_a_fault_waits_for_its_moment_while_others_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, order: list[str]
) -> None:
    leg = Leg(tmp_path, "plain", seed=5, length_s=1e4)
    monkeypatch.setattr(leg, "_comes", Telling(after))
    given = [["slow disk"], [IN_A_MOVE], ["page killed"], ["clock step"]]
    assert [volley[0] for volley in leg._in_their_moments(given)] == order


def test_each_form_has_its_turn_and_time_that_is_left_is_used() -> None:
    left_s, lengths = 1800.0, list[float]()
    while (length_s := length_of_leg(left_s, len(lengths), 10)) is not None:
        lengths.append(length_s)
        left_s -= length_s / 2 + REST_S  # quicker than it might be
    assert len(lengths) > 12
    assert min(lengths) >= 60.0
    assert left_s > -60.0
    assert length_of_leg(30.0, 0, 1) == 1.0  # however little there is
    assert length_of_leg(60 * 1e9, 3, 10) == LEG_S


def test_a_process_sees_its_clock_stepped_and_its_disk_slow(tmp_path: Path) -> None:
    (tmp_path / "clock").write_text("-3600")
    (tmp_path / "sync").write_text("0.05")
    code = """import os, time
began = time.monotonic(); os.fsync(os.open(".", os.O_RDONLY)); print(time.monotonic() - began)
print(time.time()); print(time.time_ns())"""
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(INSIDE), "PENSTOCK_SOAK_FAULTS": str(tmp_path)},
    ).stdout.split()  # fmt: skip
    synced_s, now_s, now_ns = map(float, said)
    assert synced_s >= 0.05
    assert now_s < time.time() - 3000
    assert now_ns < time.time_ns() - 3000e9


def test_the_table_has_a_row_for_each_kind_and_one_for_all() -> None:
    faults = [
        {"kind": "slow disk", "at_s": 1.0, "recovery_s": took_s, "restarted": took_s > 2}
        for took_s in (1.0, 2.0, 3.0)
    ]
    rows = report.table([{"faults": faults[:1]}, {"faults": faults[1:]}])
    assert [(row["fault"], row["count"], row["restarted"]) for row in rows] == [
        ("slow disk", 3, 1), ("all", 3, 1),
    ]  # fmt: skip
    assert rows[0]["median_s"] == 2.0
    assert "| slow disk | each sync" in report.as_markdown(rows)


def test_the_summary_says_how_many_recoveries_kept_what_was_asked() -> None:
    faults = [{"kind": "slow disk", "recovery_s": took_s} for took_s in (1.0, 14.9, 15.0, 40.0)]
    leg = {"form": "plain", "rows": 1000, "seconds": 60, "met": {"move": 1}, "wrong": []}
    said = report.summary([{**leg, "faults": faults[:3]}, {**leg, "faults": faults[3:]}])
    assert "4 faults in 2 legs and 2 minutes; 2,000 rows; 0 legs with something wrong" in said
    assert "within 15 s: 50.0%; recovered within 30 s: 75.0%" in said
    assert said.endswith("forms: plain\nmove: 2")


def publish(folder: Path, batches: list[dict[str, list[object]]]) -> None:
    for number, columns in enumerate(batches):
        (folder / f"batch={number}").mkdir(parents=True)
        pd.DataFrame(columns).to_parquet(folder / f"batch={number}/part.parquet")


Change = tuple[str, int, int]  # itemset, delta and number, all of one bucket


@pytest.mark.parametrize(
    ("batches", "fault"),
    [
        ([[("x", 1, 1)], [("x", -1, 2), ("x", 1, 3)]], None),
        ([[("x", 1, 1)], [("x", -1, 2), ("x", 1, 3)], [("x", -1, 2), ("x", 1, 3)]],
         "2 changes of patterns twice"),
        ([[("x", 1, 1)], [("y", 1, 4)]], "2 changes of patterns lost"),
        ([[("x", 1, 1), ("y", 1, 2), ("y", -1, 3)], [("z", 1, 2), ("z", -1, 3)]],
         "2 changes of patterns twice"),
        ([[("x", 1, 1), ("z", 1, 9), ("z", -1, 10)]], "7 changes of patterns lost"),
        ([[("x", 1, 3)], [("y", 1, 1), ("y", -1, 2)]],
         "1 batches with changes of patterns out of order"),
        ([[("x", 1, 1), ("x", 1, 2)]], "x became maximal or ceased to be twice"),
        ([[("x", -1, 1)]], "x became maximal or ceased to be twice"),
    ],
)  # fmt: skip
def test_changes_of_patterns_cannot_cancel(batches: list[list[Change]], fault: str | None) -> None:
    parts = [
        pd.DataFrame(changes, columns=["itemset", "delta", "number"]).assign(batch=batch)
        for batch, changes in enumerate(batches)
    ]
    faults = verify.in_turns(pd.concat(parts).assign(bucket=0))
    assert (fault is None and not faults) or fault in faults


def test_a_pattern_that_was_lost_or_is_foreign_is_found_in_the_loop(tmp_path: Path) -> None:
    wanted = sorted(verify.maximal_patterns(forms.all_tweets(), 2_000, forms.THRESHOLD))
    numbers = list(range(1, len(wanted) + 1))
    right: dict[str, list[object]] = {
        "itemset": [*wanted], "delta": [1] * len(wanted), "number": [*numbers],
        "bucket": [0] * len(wanted),
    }  # fmt: skip
    publish(tmp_path / "right", [right])
    assert verify._loop(tmp_path / "right", 2_000).faults == ()
    publish(tmp_path / "lost", [{name: column[:-1] for name, column in right.items()}])
    assert "1 patterns lost" in verify._loop(tmp_path / "lost", 2_000).line()
    foreign: dict[str, list[object]] = {
        "itemset": ["x"],
        "delta": [1],
        "bucket": [1],
        "number": [1],
    }
    publish(tmp_path / "foreign", [right, foreign])
    assert "1 patterns too many" in verify._loop(tmp_path / "foreign", 2_000).line()


def test_rows_of_a_stream_that_overtake_each_other_are_found() -> None:
    rows = pd.DataFrame({"stream": "s", "batch": [0, 0, 1, 1], "row": [0, 1, 2, 3]})
    assert verify._disorder(rows) == []
    assert verify._disorder(rows.assign(row=[0, 2, 1, 3])) == [
        "1 batches with rows of a stream out of order"
    ]
