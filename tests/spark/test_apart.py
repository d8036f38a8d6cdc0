"""Components apart: results, processors that change between batches, measurements, clean-up."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from penstock.control.actions import SetParallelism
from penstock.control.clock import WallClock
from penstock.errors import InvalidInput, InvalidTopology
from penstock.model.channels import FromChannel
from penstock.model.observation import Observation
from penstock.model.sinks import Memory, ToChannel
from penstock.model.sources import Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.act.apart import ApartActuator
from penstock.spark.act.executors import SparkExecutors
from penstock.spark.channels.log import Channel
from penstock.spark.compile.apart import build_apart
from penstock.spark.compile.inspection import Reading
from penstock.spark.measure.apart import ApartMeasurer
from penstock.spark.run.apart import RunningApart
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

pytestmark = pytest.mark.spark

APART, KEY_GROUPS = True, 4

WAIT_S = 0.002
ROWS = 1_500
LIMIT_S = 300.0


def windows(rows: int | None = ROWS) -> Topology:
    """A chain with a watermark that goes through two channels, and state at both ends."""
    made = Topology("windows", max_latency="20s")
    stream = Generator(constant(300.0), keys=5, seed=2, rows=rows, lanes=2, max_rows=400)
    made.source("rows", stream)

    def waiting(batches: Iterator[Any]) -> Iterator[Any]:
        import time

        for batch in batches:
            time.sleep(WAIT_S * batch.num_rows)
            yield batch

    @made.operator("rows")
    def slow(rows: Any) -> Any:
        return rows.mapInArrow(waiting, rows.schema).withWatermark("at", "1 second")

    made.add("bright", "SELECT key, value, at FROM slow WHERE value > 0.5", "slow", separate=True)
    made.add(
        "by_key",
        "SELECT key, window, count(*) AS n FROM bright GROUP BY key, window(at, '1 second')",
        "bright",
    )
    made.add(
        "by_window",
        """SELECT window(window, '2 seconds').start AS since, sum(n) AS n
           FROM by_key GROUP BY window(window, '2 seconds')""",
        "by_key",
    )
    made.sink("all", "slow", Memory())
    made.sink("keys", "by_key", Memory())
    made.sink("windows", "by_window", Memory())
    return made


def test_results_are_those_of_a_batch_recomputation_through_every_rescale(
    session: SparkSession, tmp_path: Path
) -> None:
    with RunningApart(windows(), session, tmp_path / "b", Pace(once=True)) as apart:
        apart.after_batch.append(
            lambda _, batch: apart.set_parallelism({"rows": 1 + batch % 3, "by_key": 1 + batch % 4})
        )
        assert [part.component.name for part in apart.apart.parts] == [
            "rows", "bright", "by_key", "by_window",
        ]  # fmt: skip
        assert apart.wait(LIMIT_S)
        found = {sink: apart.rows(sink) for sink in ("all", "keys", "windows")}
        lag = [apart.channel_backlog(part.component.name) for part in apart.apart.parts]
        arrivals = [entry.arrivals for entry in apart.published_since("slow", 0)]
        epoch_s = apart.epoch_s
    assert sorted(row.row for row in found["all"]) == list(range(ROWS))
    assert lag == [0, 0, 0, 0]
    stream = windows().sources[0].reader
    rows = stream.batch(0, ROWS, epoch_s).to_pandas().query("value > 0.5")
    rows["at"] = rows["at"].dt.tz_localize(None)
    rows["window"] = rows["at"].dt.floor("1s")
    closed = rows["at"].max().floor("1ms") - pd.Timedelta(seconds=1)
    rows = rows[rows["window"] + pd.Timedelta(seconds=1) <= closed]
    keys = {(row.window.start, row.key): row.n for row in found["keys"]}
    assert len(keys) == len(found["keys"])
    assert keys == rows.groupby(["window", "key"]).size().to_dict()
    # Closed windows carry their end as the watermark: two seconds are closed with their last one.
    rows["since"] = rows["window"].dt.floor("2s")
    last = rows["window"].max() + pd.Timedelta(seconds=1)
    rows = rows[rows["since"] + pd.Timedelta(seconds=2) <= last]
    pairs = [(row.since, row.n) for row in found["windows"]]
    assert sorted(pairs) == sorted(rows.groupby("since").size().items())
    assert pairs
    # What arrived is told by every entry that is left, through a channel or two.
    assert all(one is not None and one.first_s >= epoch_s - 1e-3 for one in arrivals)


@pytest.mark.long
def test_processors_change_at_the_next_batch_and_everything_is_measured(
    session: SparkSession, tmp_path: Path
) -> None:
    with RunningApart(
        windows(rows=None), session, tmp_path / "c", processors={"rows": 2, "by_key": 2}
    ) as running:
        measurer = ApartMeasurer(running)
        actuator = ApartActuator(running, SparkExecutors(session))
        last = _until(measurer, _whole)
        assert {c.name: c.parallelism for c in last.components} == {
            "rows": 2, "bright": 1, "by_key": 2, "by_window": 1,
        }  # fmt: skip
        tasks = {component.name: component.tasks for component in last.components}
        assert tasks["rows"] == 2
        assert tasks["bright"] == 1
        rows, bright, *_ = last.components
        usual = pytest.approx(300.0, rel=0.1)
        assert rows.arrival_rate_per_s == usual
        assert rows.service_time_s > WAIT_S
        assert rows.backlog_rows >= 0
        assert bright.arrival_scv > 0.5, "rows come in bulks"
        # The first of them had waited while the queries started.
        _until(measurer, lambda seen: seen.components[1].arrival_rate_per_s == usual)
        late = _until(measurer, lambda seen: seen.latency is not None).latency
        assert late is not None
        assert late.mean_s > 0

        refused = actuator.act(SetParallelism({"nobody": 2}))
        assert not refused.done
        assert "nobody" in refused.detail
        done = actuator.act(SetParallelism({"rows": 4, "bright": 3, "by_key": 1}))
        assert done.done
        assert "rows 2 -> 4" in done.detail
        changed = _until(measurer, lambda seen: _tasks(seen, "rows") == 4)
        assert {c.name: c.parallelism for c in changed.components}["bright"] == 3
        changed = _until(measurer, lambda seen: _tasks(seen, "bright") == 3)
        # Reading and state are two stages, of one task each.
        _until(measurer, lambda seen: _tasks(seen, "by_key") == 2)


def test_a_channel_that_two_topologies_share_keeps_what_the_slower_needs(
    session: SparkSession, tmp_path: Path
) -> None:
    where = tmp_path / "channel"
    writer = Topology("writer", max_latency="20s")
    writer.source("rows", Generator(constant(1000.0), keys=5, rows=900, max_rows=300))
    writer.sink("out", "rows", ToChannel(str(where)))
    with RunningTopology(writer, session, tmp_path / "w", Pace(once=True)) as running:
        assert running.wait(LIMIT_S)
    channel = Channel(where)
    assert channel.end_row() == 900
    channel.register("slow")

    def read(name: str) -> list[int]:
        made = Topology(f"reader-{name}", max_latency="20s")
        made.source("rows", FromChannel(str(where), name, max_rows=250))
        made.sink("out", "rows", Memory())
        with RunningTopology(made, session, tmp_path / name, Pace(once=True)) as running:
            assert running.wait(LIMIT_S)
            running.settle(LIMIT_S)
            arrivals = [part for entry in running.ledger.take() for part in entry.arrivals]
            assert sum(part.rows for part in arrivals) == pytest.approx(900), "arrivals came along"
            return [row.row for row in running.rows("out")]

    assert sorted(read("quick")) == list(range(900))
    assert len(list((where / "data").iterdir())) == 6, "the slow one still needs them"
    assert sorted(read("slow")) == list(range(900))
    # A reader is told of its last batch when it plans the one after it.
    assert channel.positions() == {"quick": 750, "slow": 750}
    assert len(list((where / "data").iterdir())) == 2


def test_work_that_two_readers_make_twice_is_told(session: SparkSession, tmp_path: Path) -> None:
    made = Topology("twice", max_latency="5s")
    made.source("rows", Generator(constant(10.0), rows=10))
    made.add("timed", lambda rows: rows.withWatermark("at", "1 second"), "rows")
    made.add(
        "n", "SELECT key, count(*) AS n FROM timed GROUP BY key, window(at, '1 second')", "timed"
    )
    for name, sign in (("few", "<"), ("many", ">=")):
        made.add(name, f"SELECT * FROM n WHERE n {sign} 3", "n")
        made.sink(f"{name}_out", name, Memory())
    built = build_apart(made, session, Reading(0.0), tmp_path.joinpath).built
    told = "component n: n runs 2 times per batch: its consumers cannot share its"
    assert any(one.startswith(told) for one in built.repeats), built.repeats


def test_what_cannot_run_is_refused_in_a_sentence(session: SparkSession, tmp_path: Path) -> None:
    looped = Topology("looped", max_latency="5s")
    looped.source("rows", Generator(constant(10.0), rows=10))
    looped.feedback("back", "step", "row BIGINT")

    @looped.operator(["rows", "back"])
    def step(rows: Any, back: Any) -> Any:
        return rows.select("row", "key").unionByName(back.selectExpr("row", "0L AS key"))

    looped.sink("out", "step", Memory())
    with pytest.raises(InvalidTopology, match="runs apart only"):
        RunningTopology(looped, session, tmp_path / "d").__enter__()
    with pytest.raises(InvalidTopology, match=r"feedback 'back': schema .* emits"):
        RunningApart(looped, session, tmp_path / "e").__enter__()
    with pytest.raises(InvalidInput, match="names component 'nobody'"):
        RunningApart(windows(), session, tmp_path / "f", processors={"nobody": 1}).__enter__()
    foreign = Topology("foreign", max_latency="5s")
    foreign.source("rows", FromChannel(str(tmp_path), "reader"))
    foreign.sink("out", "rows", Memory())
    with pytest.raises(InvalidInput, match="is not a channel"):
        RunningTopology(foreign, session, tmp_path / "g").__enter__()


def _whole(seen: Observation) -> bool:
    known = [c.service_time_s > 0 and c.tasks > 0 for c in seen.components[:2]]
    comes = all(c.arrival_rate_per_s > 0 for c in seen.components[:2])
    return all(known) and comes and seen.backlog_rows > 0


def _tasks(seen: Observation, component: str) -> int:
    return next(c.tasks for c in seen.components if c.name == component)


def _until(measurer: ApartMeasurer, holds: Callable[[Observation], bool]) -> Observation:
    """Observe until a period shows something, or the limit is over."""
    clock, deadline = WallClock(), time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        clock.wait_s(1.0)
        seen = measurer.observe()
        if seen is not None and holds(seen):
            return seen
    pytest.fail(f"not seen within {LIMIT_S:g} s; the last period was {seen}")


def files(folder: Path, counts: list[int]) -> Topology:
    """Two components over files of so many lines each; the first waits for a file named `go`."""
    (folder / "in").mkdir(parents=True)
    for number, count in enumerate(counts):
        lines = (json.dumps({"stream": number, "seq": seq}) + "\n" for seq in range(count))
        (folder / f"in/{number}.json").write_text("".join(lines))
    made = Topology("files", max_latency="20s")
    where = Streams(
        files=str(folder / "in"), schema="stream BIGINT, seq BIGINT", discovery_period="0.1s",
        admission=Admission(max_rows=40),
    )  # fmt: skip
    made.source("lines", where)
    go = str(folder / "go")

    def held(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import time

        until_s = time.monotonic() + LIMIT_S
        while not os.path.exists(go) and time.monotonic() < until_s:
            time.sleep(0.05)
        yield from batches

    @made.operator("lines", separate=True)
    def even(rows: Any) -> Any:
        return rows.mapInArrow(held, rows.schema).where("seq % 2 = 0")

    made.add("doubled", "SELECT stream, 2 * seq AS seq FROM even", "even", separate=True)
    made.sink("out", "doubled", Memory())
    return made


def test_files_wait_are_worked_off_once_and_then_the_run_ends(
    session: SparkSession, tmp_path: Path
) -> None:
    counts = [100, 60, 7]
    topology = files(tmp_path, counts)
    with RunningApart(topology, session, tmp_path / "c", Pace(once=True)) as apart:
        _await(lambda: apart.backlog(time.time()) > 100)
        assert not apart.finished()
        assert apart.source_backlog("even", time.time()) > 100
        (tmp_path / "go").touch()
        assert apart.wait(LIMIT_S)
        assert apart.backlog(time.time()) == 0
        found = [(row.stream, row.seq) for row in apart.rows("out")]
    assert sorted(found) == [
        (number, 2 * seq) for number, count in enumerate(counts) for seq in range(0, count, 2)
    ]
    # Another run over the same checkpoint takes what has come since, and only that.
    (tmp_path / "in/9.json").write_text(json.dumps({"stream": 9, "seq": 4}) + "\n")
    with RunningApart(topology, session, tmp_path / "c", Pace(once=True)) as apart:
        assert apart.wait(LIMIT_S)
        assert [(row.stream, row.seq) for row in apart.rows("out")] == [(9, 8)]


def test_a_run_over_files_that_are_not_there_ends(session: SparkSession, tmp_path: Path) -> None:
    with RunningApart(files(tmp_path, []), session, tmp_path / "c", Pace(once=True)) as apart:
        assert apart.wait(LIMIT_S)
        assert apart.rows("out") == []


@pytest.mark.long
def test_streams_that_have_an_end_are_measured_and_end(
    session: SparkSession, tmp_path: Path
) -> None:
    made = Topology("bounded", max_latency="20s")
    streams = {f"s{n}": Generator(constant(20.0), seed=n, rows=600) for n in range(3)}
    made.source("rows", Streams(generators=streams))
    made.add("kept", "SELECT row, key FROM rows", "rows", separate=True)
    made.add("again", "SELECT row, key FROM kept", "kept", separate=True)
    made.sink("out", "again", Memory())
    with RunningApart(made, session, tmp_path / "c") as running:
        measurer = ApartMeasurer(running)
        _until(measurer, lambda seen: seen.components[0].arrival_rate_per_s > 0)
        assert running.wait(LIMIT_S)
        assert len(running.rows("out")) == 1_800
        assert running.backlog(time.time()) == 0


def _await(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.05)


def test_a_run_over_what_is_there_needs_sources_that_say_when_it_is_read(
    session: SparkSession, tmp_path: Path
) -> None:
    made = Topology("endless", max_latency="20s")
    made.source("rows", lambda session: session.readStream.format("rate").load())
    made.sink("out", "rows", Memory())
    with pytest.raises(
        InvalidTopology, match="source 'rows' does not report when it has been read"
    ):
        RunningApart(made, session, tmp_path / "c", Pace(once=True))
