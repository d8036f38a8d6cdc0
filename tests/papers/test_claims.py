"""Every paper's experiments have one shape, and answer each claim in seconds when quick."""

import doctest
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import experiments
from experiments import claim, statistics
from experiments.admission.workloads.streams import WORKLOADS
from experiments.claim import Claim
from experiments.command import PAPERS

QUICK = ("routing", "fusion")  # in every run; the others take half a minute of a core

FOLDER = Path(experiments.__file__).parent
CLAIMS = {
    "admission": ("A1", "A2", "A3", "A4", "A5", "A6"),
    "routing": ("R1", "R2", "R3", "R4", "R5"),
    "fusion": ("F1", "F2", "F3"),
    "scaling": ("S1", "S2", "S3", "S4", "S5"),
    "drs": ("D1", "D2", "D3", "D4", "D5", "D6"),
    "allocation": ("L1", "L2", "L3", "L4", "L5", "L6"),
}
ON_SPARK = {
    "admission": {"A1", "A2", "A5"}, "routing": {"R1", "R4", "R5"}, "drs": {"D2"},
    "allocation": {"L3", "L6"},
}  # fmt: skip
Answers = dict[str, Claim]


def modules_of_claims(folder: Path) -> set[str]:
    letters = {ids[0][0].lower() for ids in CLAIMS.values()}
    return {
        path.stem.upper()
        for path in folder.glob("*.py")
        if len(path.stem) == 2 and path.stem[0] in letters and path.stem[1].isdigit()
    }


def admission(claims: Answers) -> None:
    moved = claims["A1"].numbers["redirected (judged)"]
    assert all(moved[workload]["par"][0] > moved[workload]["ard"][0] for workload in WORKLOADS)
    above = claims["A4"].numbers["above_fewest (judged)"]
    assert all(values[0] >= 0 for row in above.values() for values in row.values())


def routing(claims: Answers) -> None:
    assert {name: claim.where for name, claim in claims.items()} == {
        "R1": "sim", "R2": "sim", "R3": "sim", "R4": "pure", "R5": "sim",
    }  # fmt: skip
    assert claims["R2"].numbers["default"]["1.5 K=100"][0] < 0.2
    assert claims["R2"].numbers["default"]["1.5 K=0"][0] > 1
    assert claims["R3"].numbers["ours_moved"][0] < claims["R3"].numbers["plain_moved"][0] / 2


def fusion(claims: Answers) -> None:
    saved = claims["F1"].numbers["saved"]
    for degree in (3, 5, 10):
        for stream in ("uniform", "zipf"):
            bound = saved[f"bound d={degree} {stream}"][0]
            mwsc = saved[f"mwsc d={degree} {stream}"][0]
            assert 0 < mwsc <= bound + 1e-9


def scaling(claims: Answers) -> None:
    assert claims["S2"].numbers["parts"]["linear, 3-step: static ConfMin congests for good"]


def drs(claims: Answers) -> None:
    assert claims["D3"].holds  # whatever the size: the split that DRS finds does not depend on it


def allocation(claims: Answers) -> None:
    assert claims["L1"].holds


OF_PAPER: dict[str, Callable[[Answers], None]] = {
    "admission": admission, "routing": routing, "fusion": fusion, "scaling": scaling, "drs": drs,
    "allocation": allocation,
}  # fmt: skip


@pytest.mark.parametrize(
    "paper",
    [p if p in QUICK else pytest.param(p, marks=pytest.mark.long) for p in PAPERS],
)
def test_every_claim_is_answered_with_parts_and_figures(paper: str, tmp_path: Path) -> None:
    claims = {one.id: one for one in import_module(f"experiments.{paper}").run(tmp_path, [1], True)}
    assert tuple(claims) == CLAIMS[paper]
    for one in claims.values():
        assert one.holds == all(one.numbers["parts"].values())
        assert one.holds == (one.reason == "")
        endings = {Path(name).suffix for name in one.figures}
        assert endings == (set() if one.id == "A3" else {".png", ".svg"})  # A3 is a part of A1's
        for name in one.figures:
            assert name.startswith(f"{paper}-{one.id}")
            assert (tmp_path / name).stat().st_size > 1_000
        json.dumps(one.as_json(), allow_nan=False)
    OF_PAPER[paper](claims)


@pytest.mark.parametrize("paper", PAPERS)
def test_papers_have_one_shape(paper: str) -> None:
    folder = FOLDER / paper
    names = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
    assert {"__init__.py", "claims", "trials"} <= names
    assert names <= {"__init__.py", "claims", "trials", "workloads", "on_spark"}
    assert modules_of_claims(folder / "claims") == set(CLAIMS[paper])
    on_spark = folder / "on_spark"
    assert on_spark.is_dir() == hasattr(import_module(f"experiments.{paper}"), "run_on_spark")
    assert modules_of_claims(on_spark) == ON_SPARK.get(paper, set())


def test_every_folder_of_experiments_is_offered() -> None:
    there = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert set(PAPERS) == there == set(CLAIMS)


@pytest.mark.parametrize("module", [claim, statistics])
def test_examples_in_docstrings_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
