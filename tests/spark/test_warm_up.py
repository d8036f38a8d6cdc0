"""Warming up: nothing of a stream is used up, and what it shows speaks for a plan."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.model.plan_document import Fusion
from penstock.model.route import Route
from penstock.model.sinks import Files
from penstock.model.sources import Admission, Streams
from penstock.spark.run.warm_up import warm_up
from penstock.workloads.gantries import Gantries
from penstock.workloads.toll_road import toll_road

pytestmark = pytest.mark.spark


def test_generated_streams_speak_for_a_plan_before_they_begin(
    session: SparkSession, tmp_path: Path
) -> None:
    gantries = Gantries(100.0)
    declared = tmp_path / "gantries.toml"
    declared.write_text(gantries.declaration())
    out = tmp_path / "out"
    road = toll_road(
        gantries.streams(str(declared), Admission()), Files(str(out)), Files(str(tmp_path / "b")),
        route=Route("frequency-aware", key="key", partitions=2), lookup_wait_s=0.0,
    )  # fmt: skip
    made = warm_up(road, session)
    assert made is not None
    assert isinstance(made.plan, Fusion)
    assert {"speeds", "tolls"} in [set(group.operators) for group in made.plan.groups]
    assert "warming up" in made.reasons[-1]
    assert not out.exists()


def test_streams_of_others_are_not_read_for_exercise(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    files = Streams(files=str(tmp_path / "in"), schema="key BIGINT, value DOUBLE, at TIMESTAMP")
    road = toll_road(files, Files(str(tmp_path / "a")), Files(str(tmp_path / "b")))
    assert warm_up(road, session) is None
