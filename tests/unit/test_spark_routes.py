"""Tables and lanes of a routed source, without Spark: what is decided, kept and repeated."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import InvalidInput, InvalidTopology
from penstock.model.plan import TopologyPlan
from penstock.model.route import AUTO, METHODS, Route
from penstock.model.topology import Topology
from penstock.routing.advice import load_ratio, node_loads
from penstock.routing.cost_sketch import empty_cost_sketch
from penstock.routing.hashing import key_hashes
from penstock.spark.routes import exchange as exchange_module
from penstock.spark.routes.by_cost import SHAPE, ByCost, sketch_as_json, sketch_of
from penstock.spark.routes.costed import Costed, costed
from penstock.spark.routes.exchange import KEPT_TABLES, RouteExchange
from penstock.spark.routes.reading import LaneRouter
from penstock.spark.routes.table_versions import KEPT_REPORTS_S, RouteTableVersions
from penstock.spark.run.explain import Explanation
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

STREAM = Generator(constant(1_000.0), keys=500, skew=1.5, seed=3)


def route(method: str, partitions: int = 8) -> Route:
    if "panes" in method:
        return Route(method, partitions=partitions, time="at", window="4s", slide="2s")
    key = () if method == "round-robin" else "key"
    return Route(method, key=key, partitions=partitions, period="1ms")


class Source:
    """The runner and the lanes of one routed source, batch after batch."""

    def __init__(self, wanted: Route, path: Path, lanes: int = 2) -> None:
        self.route, self.exchange, self.lanes = wanted, RouteExchange(path), lanes
        self.tasks: int | None = None  # as the driver orders
        self.tables = RouteTableVersions(wanted, self.exchange, wanted_tasks=lambda: self.tasks)

    def batch(self, version: str, number: int, rows: int = 4_000) -> list[int]:
        """Routes of all rows of a batch; every lane has two Arrow batches."""
        found: list[int] = []
        for lane in range(self.lanes):
            router = LaneRouter(self.route, self.exchange, "rows", version, lane)
            first = (number * self.lanes + lane) * rows
            for start in (first, first + rows // 2):
                made = router.routed(STREAM.batch(start, start + rows // 2, 0.0))
                found += made.column("__route_rows").to_pylist()
            router.close()
        return found


@pytest.mark.parametrize("method", [method for method in METHODS if method != AUTO])
def test_a_repeated_batch_is_routed_alike(method: str, tmp_path: Path) -> None:
    source = Source(route(method), tmp_path)
    version: str | None = None
    for number in range(3):
        version = source.tables.version(version)
        routes = source.batch(version, number)
        assert set(routes) <= set(range(8))
    assert version is not None
    later = Source(route(method), tmp_path)  # another process, after more was learnt
    later.tables.version(version)
    assert later.batch(version, 2) == routes
    assert later.batch(version, 2) == routes


def test_hot_keys_are_split_from_the_second_batch_on(tmp_path: Path) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    first = source.tables.version(None)
    before = load_ratio(node_loads(np.array(source.batch(first, 0)), 8))
    second = source.tables.version(first)
    after = load_ratio(node_loads(np.array(source.batch(second, 1)), 8))
    assert second != first
    document = source.exchange.read_table(second)
    assert document is not None
    assert "split '0'" in document["reasons"][0]
    assert after < before / 3


def test_a_restart_goes_on_with_the_table_it_had(tmp_path: Path) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    version = source.tables.version(None)
    source.batch(version, 0)
    version = source.tables.version(version)
    assert RouteTableVersions(source.route, source.exchange).version(version) == version


def test_another_route_begins_anew(tmp_path: Path) -> None:
    version = Source(route("frequency-aware"), tmp_path).tables.version(None)
    changed = Source(route("frequency-aware", partitions=4), tmp_path)
    assert changed.tables.version(version) > version  # the newest is kept longest
    assert max(changed.batch(version, 0)) == 3  # what is left of the old one is not obeyed


def test_a_lost_or_damaged_table_costs_balance_and_nothing_else(tmp_path: Path) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    first = source.tables.version(None)
    routes = source.batch(first, 0)
    version = source.tables.version(first)
    (tmp_path / "tables" / f"{version}.json").write_text("{", encoding="utf-8")
    assert source.batch(version, 0) == routes
    assert source.batch("00000009-gone", 0) == routes


def test_damaged_reports_are_left_out(tmp_path: Path) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    version = source.tables.version(None)
    source.batch(version, 0)
    for name, text in (("keys-7", "{"), ("keys-8", '{"sketch": "AAAA"}'), ("keys-9", "[]")):
        (tmp_path / "reports" / f"{10**18:020d}-{name}.json").write_text(text, encoding="utf-8")
    document = source.exchange.read_table(source.tables.version(version))
    assert document is not None
    assert "split" in document["reasons"][0]


def test_files_do_not_pile_up(tmp_path: Path) -> None:
    source = Source(route("rate-aware-panes"), tmp_path, lanes=1)
    clock = Clock()
    source.tables = RouteTableVersions(source.route, source.exchange, clock)
    old = tmp_path / "reports" / f"{1:020d}-costs-0.json"
    version = source.tables.version(None)
    old.write_text("{}", encoding="utf-8")
    for number in range(KEPT_TABLES + 20):
        source.batch(version, number, rows=20)
        version = source.tables.version(version)
    for now_s in (60.0, 60.0 + KEPT_REPORTS_S):  # from when it was seen first
        assert old.exists()
        clock.now_s = now_s
        version = source.tables.version(version)
    assert len(list((tmp_path / "tables").iterdir())) == KEPT_TABLES
    assert source.exchange.read_table(version) is not None
    assert not old.exists()
    assert (tmp_path / "tables").stat().st_mode & 0o777 == 0o700


def test_a_damaged_table_is_said_once_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    version = source.tables.version(None)
    file = tmp_path / "tables" / f"{version}.json"
    file.write_bytes(file.read_bytes().replace(b"1", b"2", 1))
    for lane in range(3):
        LaneRouter(source.route, source.exchange, "rows", version, lane)
    assert RouteTableVersions(source.route, source.exchange).version(version) != version
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert str(file) in said[0]
    assert LaneRouter(source.route, source.exchange, "rows", "00000009-gone", 0) is not None
    assert len(caplog.records) == 1, "one that is gone, as after a restore, is no damage"


def test_text_and_missing_keys_are_routed(tmp_path: Path) -> None:
    exchange = RouteExchange(tmp_path)
    keys = pa.array(["a", None, "b", "a"])
    batch = pa.record_batch([keys], ["key"])
    router = LaneRouter(Route("osg", key="key", partitions=4), exchange, "rows", None, 1)
    assert sorted(router.routed(batch).column("__route_rows").to_pylist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"method": "modulo", "key": "a"}, "Route(method) is 'modulo'; allowed: hash"),
        ({"method": "hash"}, "Route(key) is missing"),
        ({"method": "round-robin", "key": "a"}, "uses no key"),
        ({"key": "a", "partitions": 0}, "Route(partitions) is 0; give a whole number from 1"),
        ({"key": "a", "top_k": 1.5}, "Route(top_k) is 1.5"),
        ({"key": 3}, "Route(key) is 3; name a column"),
        ({"key": ["a", "a"]}, "name each only once"),
        ({"key": "a", "period": "soon"}, "Route(period) is 'soon'"),
        ({"key": "a", "time": "at"}, "only panes and rate-aware-panes use time"),
        ({"method": "panes", "time": "at", "window": "2s"}, "Route(slide) is missing"),
        ({"method": "panes", "time": "at", "window": "2s", "slide": 1e-9}, "Route(slide) is 1e-09"),
    ],
)
def test_a_wrong_route_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Route(**wrong)  # type: ignore[arg-type]
    assert said in str(refused.value)


def test_a_source_takes_routes_only() -> None:
    with pytest.raises(InvalidTopology, match="source 'rows': route is 'key'; give a Route"):
        Topology("t", "5s").source("rows", STREAM, route="key")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [method for method in METHODS if method != AUTO])
def test_tasks_in_use_change_with_the_next_table(method: str, tmp_path: Path) -> None:
    source = Source(route(method), tmp_path)
    source.tasks = 3
    version = source.tables.version(None)
    assert set(source.batch(version, 0)) <= {0, 1, 2}
    source.tasks = 50  # no more than there are
    version = source.tables.version(version)
    assert max(source.batch(version, 1)) == 7
    document = source.exchange.read_table(version)
    assert document is not None
    assert document["reasons"][0] == "tasks in use 3 -> 8"


class Clock:
    """Time that passes when a function says so."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_an_operator_times_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("penstock.spark.routes.costed.time.perf_counter", clock)
    reported: list[tuple[list[int], list[float]]] = []
    monkeypatch.setattr(Costed, "_report", lambda _, meter: reported.append(_columns(meter)))
    keys = [3, 1, 3, 2, 1, 3]

    def waits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            clock.now_s += sum(batch.column("key").to_pylist())
            yield batch
            clock.now_s += 0.5 * batch.num_rows  # also after its output was taken

    def arriving() -> Iterator[pa.RecordBatch]:
        clock.now_s += 100.0  # waiting for input is nobody's cost
        yield pa.record_batch([pa.array(keys)], ["key"])

    seen = []
    for batch in costed(waits, by="key", source="rows")(arriving()):
        seen += batch.column("key").to_pylist()
        clock.now_s += 1_000.0  # nor is waiting for whoever takes the output
    assert sorted(seen) == sorted(keys)
    ((hashes, seconds),) = reported
    expected = {int(h): k + 0.5 for k, h in enumerate(key_hashes(np.arange(4)))}
    assert seconds == [expected[key] for key in hashes]
    assert len(hashes) == len(keys)


def _columns(meter: Any) -> tuple[list[int], list[float]]:
    hashes, seconds = meter.columns()
    return hashes.tolist(), seconds.tolist()


def test_a_cheap_operator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.routes.costed.time.perf_counter", lambda: 0.0)
    rows = pa.record_batch([pa.array(range(1_000))], ["key"])
    batches = list(costed(iter, by="key", source="rows")(iter([rows] * 3)))
    assert sum(batch.num_rows for batch in batches) == 3_000
    assert batches[-1].num_rows == 1_000  # no longer cut


def test_an_operator_that_raises_raises() -> None:
    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        next(batches)
        raise ValueError("no answer")

    rows = pa.record_batch([pa.array([1])], ["key"])
    with pytest.raises(ValueError, match="no answer"):
        list(costed(fails, by="key", source="rows")(iter([rows])))
    with pytest.raises(InvalidInput, match=r"costed\(by\) is 'vehicle'; columns: key"):
        list(costed(iter, by="vehicle", source="rows")(iter([rows])))


def test_learnt_costs_level_the_tasks(tmp_path: Path) -> None:
    source = Source(Route("osg", key="key", partitions=8, period="1ms"), tmp_path, lanes=1)
    first = source.tables.version(None)
    costs_s = np.linspace(0.01, 0.09, 500)
    keys = np.array(STREAM.batch(0, 4_000, 0.0).column("key"))
    learnt = empty_cost_sketch(SHAPE).learn(key_hashes(keys), costs_s[keys])
    source.exchange.report("costs", "0", sketch_as_json(learnt))
    second = source.tables.version(first)
    load = [
        node_loads(np.array(source.batch(version, 0)), 8, costs_s[keys])
        for version in (first, second)
    ]
    assert load_ratio(load[1]) < load_ratio(load[0]) / 2


def test_explain_describes_the_route() -> None:
    explained = Explanation(
        "t", TopologyPlan(()), {}, (), {"rows": route("frequency-aware").description()}
    )
    assert (
        "  route of rows: frequency-aware by key over 8 tasks, the 100 most frequent keys split, "
        "a new table every 0.001 s"
    ) in explained.lines()


def test_a_table_that_cannot_be_kept_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    version = source.tables.version(None)
    source.batch(version, 0)

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("penstock.spark.routes.exchange.write_atomically", full)
        assert source.tables.version(version) == version
    source.batch(version, 1)
    assert source.tables.version(version) != version


def test_reports_count_although_the_clock_was_set_back_and_a_table_could_not_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_ns = [10**19]
    monkeypatch.setattr(exchange_module.time, "time_ns", lambda: now_ns[0])
    source = Source(route("frequency-aware"), tmp_path)
    clock = iter(range(0, 10**6, 10**4))
    source.tables = RouteTableVersions(source.route, source.exchange, lambda: float(next(clock)))
    versions = [source.tables.version(None)]
    for number in range(4):
        source.batch(versions[-1], number)
        now_ns[0] += 10**9
        if number == 1:
            now_ns[0] -= 3600 * 10**9
        if number == 2:
            with monkeypatch.context() as full:

                def refuse(*_: object) -> None:
                    raise OSError(28, "No space left on device")

                full.setattr(exchange_module, "write_atomically", refuse)
                assert source.tables.version(versions[-1]) == versions[-1]
                assert "No space left on device" in caplog.text
        versions.append(source.tables.version(versions[-1]))
    assert len(set(versions)) == len(versions), "every batch's reports made a new table"


def test_a_cost_that_changed_is_known_within_a_minute() -> None:
    """An hour at 10 ms, then a minute at 90: of sums that never fade, 11.3 ms would be left."""
    method, route = ByCost(), Route("osg", key="key", period="5s")
    hashes = key_hashes(np.arange(20).repeat(10))

    def reported(cost_s: float) -> list[dict[str, object]]:
        return [sketch_as_json(empty_cost_sketch(SHAPE).learn(hashes, np.full(200, cost_s)))]

    content = method.first(route)
    for _ in range(720):
        content = method.next(route, content, reported(0.01)).content
    for _ in range(12):
        content = method.next(route, content, reported(0.09)).content
    estimates = sketch_of(content).estimate_s(key_hashes(np.arange(20)))
    assert estimates == pytest.approx(0.09, rel=0.05)


def test_a_value_that_stays_away_keeps_its_estimate_for_a_while() -> None:
    learnt = empty_cost_sketch(SHAPE).learn(key_hashes(np.zeros(10)), np.full(10, 0.05))
    assert learnt.faded(0.7).estimate_s(key_hashes([0.0]))[0] == pytest.approx(0.05)
    long_ago = learnt
    for _ in range(60):
        long_ago = long_ago.faded(0.7)
    assert not long_ago.occurrences.any()
