"""The jobs of Madsen et al. 2017 as topologies write what a recomputation without Spark does."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from experiments.allocation.on_spark.edits import top_edits
from experiments.allocation.on_spark.flights import flights_job, replay
from experiments.allocation.workloads.flight_data import flights, planes, weather
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

pytestmark = pytest.mark.spark

DAYS = 4


def frame_of(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas()
    first = frame["at"].iloc[0]
    return frame[frame["at"] < first + pd.Timedelta(days=DAYS)]


def test_flights_with_planes_routes_and_weather(session: SparkSession, tmp_path: Path) -> None:
    days = replay(tmp_path / "days", DAYS, days_per_batch=2)
    sinks = {"planes": Memory(), "routes": Memory(), "couriers": Memory()}
    job = flights_job(4, days, sinks, window_days=1)
    with RunningTopology(job, session, tmp_path / "checkpoint", Pace(once=True)) as running:
        running.wait(120)
        found = {name: running.rows(name) for name in sinks}
    flown = frame_of(flights())
    flown["late"] = flown["delay"].clip(lower=0)
    flown["since"] = flown["at"].dt.floor("D")
    flown = flown.merge(planes().to_pandas()[["plane", "seats"]], on="plane", how="left")
    flown["seat_minutes"] = flown["late"] * flown["seats"].fillna(0)

    by_plane = flown.groupby(["plane", "since"])[["late", "seat_minutes"]].sum()
    closed = {row.since for row in found["planes"]}
    assert len(closed) >= DAYS - 1
    assert len(found["planes"]) == sum(since.tz_localize(None) in closed
                                       for _, since in by_plane.index)  # fmt: skip
    for row in found["planes"]:
        wanted = by_plane.loc[(row.plane, pd.Timestamp(row.since, tz="UTC"))]
        assert (row.late, row.seat_minutes) == (wanted["late"], wanted["seat_minutes"])

    by_route = flown.groupby(["origin", "dest", "since"])["late"].sum()
    for row in found["routes"]:
        assert row.late == by_route[(row.origin, row.dest, pd.Timestamp(row.since, tz="UTC"))]

    rain = frame_of(weather()).rename(columns={"at": "hour"})
    flown["hour"] = flown["at"].dt.floor("h")
    rainy = flown.merge(rain, on=["hour", "origin"])
    rainy["tenth"] = (rainy["rain"].astype(int) // 10).clip(upper=9)
    by_courier = rainy.groupby(["carrier", "tenth", "since"])["late"].sum()
    assert found["couriers"]
    for row in found["couriers"]:
        assert row.late == by_courier[(row.carrier, row.tenth, pd.Timestamp(row.since, tz="UTC"))]


def test_the_articles_edited_most(session: SparkSession, tmp_path: Path) -> None:
    rate, rows = constant(1_000.0), 4_000
    job: Topology = top_edits(
        rate, Memory(), articles=300, k=3, span_s=1, rows=rows, max_rows=2_000, seed=4
    )
    with RunningTopology(job, session, tmp_path / "checkpoint", Pace(once=False)) as running:
        running.wait(120)
        found = {row.since.timestamp(): row.best for row in running.rows("out")}
        epoch_s = running.epoch_s
    stream = Generator(rate, keys=300, skew=0.6, seed=4, rows=rows)
    made = stream.batch(0, rows, epoch_s)
    second = made.column("at").cast("int64").to_numpy() // 1_000_000
    key = made.column("key").to_numpy()
    assert len(found) >= 2
    for since, best in found.items():
        counts = Counter(key[second == int(since)].tolist())
        wanted = sorted(((n, article) for article, n in counts.items()), reverse=True)[:3]
        assert [(one.edits, one.article) for one in best] == wanted
