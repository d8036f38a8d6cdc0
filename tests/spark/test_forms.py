"""Equivalent forms on Spark: each answers alike, and a change needs no restart."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.control.actions import UseForms, UseVariants
from penstock.errors import InvalidTopology
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.act.actuator import SparkActuator
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark

APART, KEY_GROUPS = True, 4

ROWS = 1_000


def topology(form: str = "SELECT row, 'index' AS form FROM rows") -> Topology:
    made = Topology("forms", max_latency="20s")
    made.source("rows", Generator(constant(300.0), keys=5, seed=2, rows=ROWS, max_rows=100))
    made.add(
        "named", "SELECT row, 'first' AS form FROM rows", "rows",
        cheaper="SELECT row, 'cheaper' AS form FROM rows",
        forms={"index": form, "vectorised": "SELECT row, 'vectorised' AS form FROM rows"},
    )  # fmt: skip
    made.sink("out", "named", Memory())
    return made


@pytest.mark.long
def test_forms_change_from_batch_to_batch_and_every_row_is_answered_once(
    session: SparkSession, tmp_path: Path
) -> None:
    orders: list[Any] = [
        UseForms({"named": "index"}), UseForms({"named": "vectorised"}), UseVariants(("named",)),
        UseVariants(()), UseForms({}),
    ]  # fmt: skip
    with RunningTopology(topology(), session, tmp_path / "a", Pace(once=True)) as running:
        actuator = SparkActuator(session, (), running, all_ours=True)
        running.after_batch.append(lambda *_: orders and actuator.act(orders.pop(0)))
        assert running.wait(LIMIT_S)
        found = running.rows("out")
    assert sorted(row.row for row in found) == list(range(ROWS))
    forms = [row.form for row in sorted(found, key=lambda row: row.row)]
    assert list(dict.fromkeys(forms)) == ["first", "index", "vectorised", "cheaper"]
    assert forms[-1] == "first"


def test_a_form_with_other_columns_is_refused(session: SparkSession, tmp_path: Path) -> None:
    other = topology("SELECT row, 1 AS other FROM rows")
    with (
        pytest.raises(InvalidTopology, match=r"the form 'index' has the columns row bigint, other"),
        RunningTopology(other, session, tmp_path / "b", Pace(once=True)),
    ):
        pass
