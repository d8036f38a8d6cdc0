"""What a soak needs before anything runs: its order of faults, its clock and disk, its table."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from soak import forms, report, verify
from soak.faults import FAULTS
from soak.leg import SLOW_A_LEG, Leg
from soak.processes import INSIDE

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


def publish(folder: Path, batches: list[dict[str, list[object]]]) -> None:
    for number, columns in enumerate(batches):
        (folder / f"batch={number}").mkdir(parents=True)
        pd.DataFrame(columns).to_parquet(folder / f"batch={number}/part.parquet")


def test_what_came_twice_does_not_cancel_in_the_loop(tmp_path: Path) -> None:
    wanted = sorted(verify.maximal_patterns(forms.TWEETS, 2_000, forms.THRESHOLD))
    right = {"itemset": wanted, "delta": [1] * len(wanted)}
    more = {"itemset": ["x", "x"], "delta": [1, -1]}
    publish(tmp_path / "right", [more, right])
    assert verify._loop(tmp_path / "right", 2_000).faults == ()
    again = {"itemset": ["x", "x"], "delta": [-1, 1]}
    publish(tmp_path / "wrong", [more, again, right])
    assert "became maximal or ceased to be twice" in verify._loop(tmp_path / "wrong", 2_000).line()
    publish(tmp_path / "lost", [{name: column[1:] for name, column in right.items()}])
    assert "1 patterns lost" in verify._loop(tmp_path / "lost", 2_000).line()


def test_rows_of_a_stream_that_overtake_each_other_are_found() -> None:
    rows = pd.DataFrame({"stream": "s", "batch": [0, 0, 1, 1], "row": [0, 1, 2, 3]})
    assert verify._disorder(rows) == []
    assert verify._disorder(rows.assign(row=[0, 2, 1, 3])) == [
        "1 batches with rows of a stream out of order"
    ]
