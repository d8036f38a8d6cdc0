"""Fused components on Spark: the same rows, with the shuffles that were planned and no others."""

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from examples.linear_road import Windows, linear_road
from penstock.errors import InvalidTopology
from penstock.model.observation import Observation, OperatorObservation
from penstock.model.plan_document import Fusion, Group
from penstock.model.sinks import Memory
from penstock.model.topology import Source, Topology
from penstock.spark.compile import assembler, inspection
from penstock.spark.compile.apart import build_apart
from penstock.spark.compile.builder import build
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.compile.inspection import Reading, read_source
from penstock.spark.handles.driver import STRICT
from penstock.spark.run.apart import RunningApart
from penstock.spark.run.slow_loop import SlowLoop
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.diamond_run import MEMBERS, diamond, expected, tolls
from spark.run_to import run_to

pytestmark = pytest.mark.spark

KEY_GROUPS = 3

STREAM = Generator(constant(1000.0), keys=60, seed=5, rows=3000, lanes=2, max_rows=1500)
# So many batches that a run stopped after a few has not read it all: Spark closes no window at the
# start of a query that finds nothing new to read.
MANY_BATCHES = dataclasses.replace(STREAM, max_rows=200)
SHORT = Windows("1 second", "2 seconds", "1 second")
ONE_BATCH = dataclasses.replace(STREAM, rows=500)
DIAMOND = dataclasses.replace(STREAM, rows=5000)
# The key is named in another order than the join has it, in which Spark divides.
FUSED_DIAMOND = (Group(MEMBERS, ("segment", "direction")),)
ROAD = (Group(("speeds", "segments", "tolls", "accidents"), ("direction", "segment")),)


def road() -> Topology:
    return linear_road(STREAM, Memory(), Memory(), Memory(), windows=SHORT, max_latency="60s")


def run(
    topology: Topology, session: SparkSession, checkpoint: Path, choice: PlanChoice,
    batches: int | None = None,
) -> dict[str, Counter[Any]]:  # fmt: skip
    """The rows of every sink, of all batches or of those up to a number."""
    pace = Pace(once=batches is None)
    with RunningTopology(topology, session, checkpoint, pace, choice=choice) as running:
        run_to(running, batches)
    return {sink.name: Counter(running.rows(sink.name)) for sink in topology.sinks}


def chain(keys: list[tuple[str, ...]], stateless: bool, stream: Generator = STREAM) -> Topology:
    """Aggregations that follow each other, each by fewer columns than the one before."""
    made = Topology("chain", max_latency="60s")
    made.source("rows", stream)
    made.add("cut", "SELECT key AS a, key % 7 AS b, key % 3 AS c, value, at FROM rows", "rows")
    above = "cut"
    for number, key in enumerate(keys):
        name = f"step{number}"
        made.add(name, _step(key, first=number == 0), above)
        above = name
        if stateless:
            made.add(f"{name}_big", lambda rows: rows.where("n >= 1"), above)
            above = f"{name}_big"
    made.sink("out", above, Memory())
    return made


def _step(key: tuple[str, ...], first: bool) -> Any:
    def step(rows: DataFrame) -> DataFrame:
        columns = ", ".join(key)
        if first:
            timed = rows.withWatermark("at", "1 second")
            text = f"""SELECT {columns}, window, count(*) AS n, sum(value) AS value FROM {{timed}}
                       GROUP BY {columns}, window(at, '1 second')"""
            return timed.sparkSession.sql(text, timed=timed)
        text = f"""SELECT {columns}, window(window, '1 second') AS window, sum(n) AS n,
                   sum(value) AS value FROM {{rows}}
                   GROUP BY {columns}, window(window, '1 second')"""
        return rows.sparkSession.sql(text, rows=rows)

    return step


def batch_counts(keys: tuple[str, ...], epoch_s: float) -> Counter[Any]:
    """What the last step of a chain counts, from one look at all rows."""
    rows = STREAM.batch(0, STREAM.rows or 0, epoch_s).to_pandas()
    rows = rows.assign(a=rows["key"], b=rows["key"] % 7, c=rows["key"] % 3)
    closed = (rows["at"].max() - np.timedelta64(1, "s")).floor("1ms")
    start = rows["at"].dt.floor("1s")
    rows = rows.assign(start=start)[start + np.timedelta64(1, "s") <= closed]
    sizes = rows.groupby([*keys, "start"]).size()
    return Counter(
        {(*map(int, key[:-1]), key[-1].timestamp(), int(n)): 1 for key, n in sizes.items()}
    )


def shuffles(topology: Topology, session: SparkSession, groups: tuple[Group, ...]) -> list[str]:
    (query,) = build(topology, session, Reading(0.0), groups).queries
    assert query.shape is not None
    return list(query.shape.texts)


def test_a_component_has_one_shuffle_for_each_stream_that_enters_it(session: SparkSession) -> None:
    made = chain([("a", "b", "c"), ("b", "c"), ("c",)], stateless=True)
    together = (Group(("step0", "step1", "step1_big", "step0_big", "step2"), ("c",)),)
    assert shuffles(made, session, together) == ["c into 3"]
    # One for the rows of reports, which all three consumers read; one more for traffic.
    assert set(shuffles(road(), session, ROAD)) == {
        "direction, segment into 3", "vehicle, window into 3",
    }  # fmt: skip


def test_fused_unfused_and_batch_give_the_same_rows(
    session: SparkSession, tmp_path: Path, topologies: int
) -> None:
    random = np.random.default_rng(3)
    for number in range(topologies):
        depth = int(random.integers(2, 4))
        last = tuple(sorted(random.choice(["a", "b", "c"], int(random.integers(1, 3)), False)))
        keys = [last]
        for _ in range(depth - 1):
            more = set(random.choice(["a", "b", "c"], int(random.integers(0, 3)), False))
            keys.insert(0, tuple(sorted(set(keys[0]) | more)))
        made = chain(keys, stateless=bool(random.integers(2)))
        steps = tuple(operator.name for operator in made.operators if operator.name != "cut")
        folder = tmp_path / str(number)
        fused = PlanChoice((Group(steps, last),))
        ours = run(made, session, folder / "fused", fused)["out"]
        plain = run(made, session, folder / "plain", PlanChoice(()))["out"]
        # Streams begin when a run does, so each is compared with its own rows.
        for rows, name in ((ours, "fused"), (plain, "plain")):
            epoch_s = _epoch_s(folder / name)
            found = Counter(
                {(*(row[k] for k in last), row.window.start.timestamp(), row.n): n
                 for row, n in rows.items()}
            )  # fmt: skip
            assert found == batch_counts(last, epoch_s), (keys, name)


def _epoch_s(checkpoint: Path) -> float:
    return float(json.loads((checkpoint / "penstock/epoch.json").read_text())["epoch_s"])


@pytest.fixture
def topologies(request: pytest.FixtureRequest) -> int:
    """How many random topologies are tried."""
    return 12 if request.config.getoption("--long") else 1


UNFUSED = r"was created with no fused components, and would now"
FUSED = r"step0 \+ step1 fused by \(b\) in 3 key groups"


@pytest.mark.long
@pytest.mark.parametrize("fused_first", [False, True])
def test_a_plan_changes_and_no_row_is_lost_or_repeated(
    fused_first: bool, session: SparkSession, tmp_path: Path
) -> None:
    made = chain([("a", "b"), ("b",)], stateless=False, stream=MANY_BATCHES)
    plans = [((), UNFUSED), ((Group(("step0", "step1"), ("b",)),), FUSED)]
    (first, named_first), (second, named_second) = plans[::-1] if fused_first else plans
    checkpoint = tmp_path / "c"
    rows = run(made, session, checkpoint, PlanChoice(first), batches=1)["out"]
    with pytest.raises(InvalidTopology, match=named_first):
        run(made, session, checkpoint, PlanChoice(second))
    rows += run(made, session, checkpoint, PlanChoice(second, apply=True), batches=4)["out"]
    with pytest.raises(InvalidTopology, match=named_second):
        run(made, session, checkpoint, PlanChoice(first))
    rows += run(made, session, checkpoint, PlanChoice(first, apply=True))["out"]
    found = Counter({(row.b, row.window.start.timestamp(), row.n): n for row, n in rows.items()})
    assert found == batch_counts(("b",), _epoch_s(checkpoint))


@pytest.mark.long
def test_every_kind_of_aggregate_is_the_same_when_fused(
    session: SparkSession, tmp_path: Path
) -> None:
    made = Topology("kinds", max_latency="60s")
    made.source("rows", STREAM)

    @made.operator("rows")
    def each(rows: DataFrame) -> DataFrame:
        timed = rows.selectExpr("*", "key % 7 AS b").withWatermark("at", "1 second")
        text = """SELECT b, key, window, count(*) AS n, sum(value) AS sum, avg(value) AS avg,
                         min(value) AS min, max(at) AS last, stddev(value) AS dev,
                         count(*) FILTER (WHERE value > 0.5) AS high, bool_or(value > 0.99) AS any,
                         approx_count_distinct(value) AS kinds, max_by(value, at) AS newest,
                         sort_array(collect_set(value)) AS all
                  FROM {timed} GROUP BY b, key, window(at, '1 second')"""
        return timed.sparkSession.sql(text, timed=timed)

    made.add(
        "some",
        """SELECT b, window(window, '2 seconds').start AS since, sum(n) AS n, sum(high) AS high,
                  avg(dev) AS dev, max(last) AS last, count(newest) AS newest, sum(kinds) AS kinds,
                  array_join(sort_array(flatten(collect_list(all))), ' ') AS all,
                  percentile_approx(sum, 0.5) AS half
           FROM each GROUP BY b, window(window, '2 seconds')""",
        "each",
    )
    made.sink("out", "some", Memory())
    fused = (Group(("each", "some"), ("b",)),)
    assert build(made, session, Reading(0.0), fused).queries[0].row_by_row
    found = []
    for name, groups in (("fused", fused), ("plain", ())):
        (tmp_path / name / "penstock").mkdir(parents=True, mode=0o700)
        (tmp_path / name / "penstock/epoch.json").write_text('{"epoch_s": 1700000000.0}')
        rows = run(made, session, tmp_path / name, PlanChoice(groups))["out"]
        found.append(sorted(tuple(map(_rounded, row)) for row in rows))
    assert len(found[0]) >= 7
    assert found[0] == found[1]


def _rounded(value: Any) -> Any:
    """Sums of floats depend on their order in the last digits."""
    return round(value, 6) if isinstance(value, float) else value


def test_rows_are_merged_one_by_one_only_where_nothing_else_changes(session: SparkSession) -> None:
    made = chain([("a", "b"), ("b",)], stateless=False)
    fused = (Group(("step0", "step1"), ("b",)),)
    assert build(made, session, Reading(0.0), fused).queries[0].row_by_row
    # Spark divides the rows of traffic, and has fewer to send when it aggregates them before.
    assert not build(road(), session, Reading(0.0), ROAD).queries[0].row_by_row


def test_a_source_is_read_once_however_often_its_query_is_put_together(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Counter[str]()

    def counted(source: Source, *arguments: Any) -> DataFrame:
        read[source.name] += 1
        return read_source(source, *arguments)

    for module in (inspection, assembler):
        monkeypatch.setattr(module, "read_source", counted)
    made = chain([("a", "b"), ("b",)], stateless=False)
    build(made, session, Reading(0.0), (Group(("step0", "step1"), ("b",)),))
    assert set(read.values()) == {1}  # each time is a Python process


def test_other_queries_of_the_session_stay_strict(session: SparkSession) -> None:
    before = session.conf.get(STRICT, None)
    build(road(), session, Reading(0.0), ROAD)
    assert session.conf.get(STRICT, None) == before


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (Group(("step0", "step1"), ("a",)), "key 'a' contradicts operator 'step1'"),
        (Group(("step0", "step1"), ()), "has no key; name columns that all of them group by"),
        (Group(("step0", "lost"), ("b",)), "operator 'lost' is unknown"),
    ],
)
def test_what_cannot_be_fused_is_refused(session: SparkSession, group: Group, words: str) -> None:
    made = chain([("a", "b"), ("b",)], stateless=False)
    with pytest.raises(InvalidTopology) as refused:
        build(made, session, Reading(0.0), (group,))
    assert words in str(refused.value)


def test_what_is_possible_of_a_proposal_is_applied(session: SparkSession, tmp_path: Path) -> None:
    made = Topology("two", max_latency="60s")
    made.source("rows", ONE_BATCH)
    made.source("others", ONE_BATCH)
    for name in ("rows", "others"):
        made.add(f"{name}0", _step(("key",), first=True), name)
        made.add(f"{name}1", _step(("key",), first=False), f"{name}0")
        made.sink(f"{name}_out", f"{name}1", Memory())
    groups = (Group(("rows0", "rows1"), ("value",)), Group(("others0", "others1"), ("key",)))
    choice = PlanChoice(groups, if_possible=True)
    with RunningTopology(made, session, tmp_path / "c", Pace(once=True), choice=choice) as running:
        fused = [part.members for query in running.built.queries for part in query.fused]
        assert fused == [{"others0", "others1"}]
        run_to(running, None)


def test_a_python_step_that_hides_the_key_is_refused(session: SparkSession) -> None:
    made = Topology("hidden", max_latency="60s")
    made.source("rows", STREAM)
    made.add("step0", _step(("key",), first=True), "rows")
    made.add("map", lambda rows: rows.mapInArrow(lambda parts: parts, rows.schema), "step0")
    made.add("step1", _step(("key",), first=False), "map")
    made.sink("out", "step1", Memory())
    with pytest.raises(InvalidTopology, match="does not reach it unchanged; take that"):
        build(made, session, Reading(0.0), (Group(("step0", "map", "step1"), ("key",)),))


def test_a_join_is_fused_where_its_key_is_the_components(session: SparkSession) -> None:
    assert shuffles(diamond(Memory()), session, FUSED_DIAMOND) == ["direction, segment into 3"] * 2


@pytest.mark.long
def test_fused_and_unfused_joins_give_the_same_rows(session: SparkSession, tmp_path: Path) -> None:
    made = diamond(Memory(), DIAMOND)
    for name, groups in (("fused", FUSED_DIAMOND), ("plain", ())):
        rows = run(made, session, tmp_path / name, PlanChoice(groups))["tolls"]
        found = tolls(row.asDict() for row in rows.elements())
        assert found == expected(_epoch_s(tmp_path / name), DIAMOND), name


def test_a_join_is_not_fused_by_part_of_its_key(session: SparkSession) -> None:
    with pytest.raises(InvalidTopology, match=r"sets equal \(direction, segment\); let the"):
        build(diamond(Memory()), session, Reading(0.0), (Group(MEMBERS, ("direction",)),))


def test_a_fusion_of_a_join_is_proposed(session: SparkSession) -> None:
    built = build(diamond(Memory()), session, Reading(0.0))
    slow = SlowLoop(built, lambda _: None)
    rates = {"reports": 2000.0, "average": 900.0, "volume": 10.0, "toll": 900.0}
    operators = tuple(OperatorObservation(name, 2000.0, rate) for name, rate in rates.items())
    slow.window.append(Observation(60.0, 5.0, 2000.0, 0.0, operators=operators))
    proposal = slow.propose()
    assert proposal is not None
    assert isinstance(proposal.plan, Fusion)
    (group,) = proposal.plan.groups
    assert set(group.operators) == set(MEMBERS)
    assert shuffles(diamond(Memory()), session, (group,)) == ["direction, segment into 3"] * 2


def test_fused_operators_are_one_query_where_components_run_apart(
    session: SparkSession, tmp_path: Path
) -> None:
    made = chain([("a", "b"), ("b",)], stateless=True)
    groups = (Group(("step0", "step1"), ("b",)),)
    found = build_apart(made, session, Reading(0.0), tmp_path.joinpath, wanted=groups).built
    shapes = {query.plan.name: query.shape for query in found.queries}
    assert shapes.keys() == {"chain-rows", "chain-step0"}
    assert shapes["chain-step0"] is not None
    assert shapes["chain-step0"].texts == ("b into 3",)


@pytest.mark.long
def test_fused_operators_run_apart_from_others_as_one_query(
    session: SparkSession, tmp_path: Path
) -> None:
    made = chain([("a", "b"), ("b",)], stateless=True)
    choice = PlanChoice((Group(("step0", "step1"), ("b",)),))
    folder = tmp_path / "c"
    for one in (choice, PlanChoice()):  # the second goes on with what the checkpoint knows
        with RunningApart(made, session, folder, Pace(once=True), choice=one) as running:
            run_to(running, None)
            queries = {query.plan.name: query.shape for query in running.built.queries}
        if one is choice:
            rows = Counter(running.rows("out"))
    assert queries.keys() == {"chain-rows", "chain-step0"}
    assert queries["chain-step0"] is not None
    assert queries["chain-step0"].texts == ("b into 3",)
    found = Counter({(row.b, row.window.start.timestamp(), row.n): n for row, n in rows.items()})
    assert found == batch_counts(("b",), _epoch_s(folder))


def test_a_group_that_rows_leave_and_come_back_to_cannot_run_apart(
    session: SparkSession, tmp_path: Path
) -> None:
    made = chain([("a", "b"), ("a", "b"), ("b",)], stateless=False)
    groups = (Group(("step0", "step2"), ("b",)),)
    with pytest.raises(
        InvalidTopology, match="'step0' would get back rows that it sent to 'step1'"
    ):
        build_apart(made, session, Reading(0.0), tmp_path.joinpath, wanted=groups)
