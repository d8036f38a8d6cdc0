"""Tables and lanes of a routed source, without Spark: what is decided, kept and repeated."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import InvalidInput, InvalidTopology
from penstock.model.route import METHODS, Route
from penstock.model.topology import Topology
from penstock.routing.balance import load_ratio, node_loads
from penstock.spark.routes.desk import RouteDesk
from penstock.spark.routes.exchange import KEPT_TABLES, RouteExchange
from penstock.spark.routes.lane import LaneRouter
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
        self.desk = RouteDesk(wanted, self.exchange)

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


@pytest.mark.parametrize("method", METHODS)
def test_a_repeated_batch_is_routed_alike(method: str, tmp_path: Path) -> None:
    source = Source(route(method), tmp_path)
    version: str | None = None
    for number in range(3):
        version = source.desk.version(version)
        routes = source.batch(version, number)
        assert set(routes) <= set(range(8))
    assert version is not None
    later = Source(route(method), tmp_path)  # another process, after more was learnt
    later.desk.version(version)
    assert later.batch(version, 2) == routes
    assert later.batch(version, 2) == routes


def test_hot_keys_are_split_from_the_second_batch_on(tmp_path: Path) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    first = source.desk.version(None)
    before = load_ratio(node_loads(np.array(source.batch(first, 0)), 8))
    second = source.desk.version(first)
    after = load_ratio(node_loads(np.array(source.batch(second, 1)), 8))
    assert second != first
    document = source.exchange.read_table(second)
    assert document is not None
    assert "split '0'" in document["reasons"][0]
    assert after < before / 3


def test_a_restart_goes_on_with_the_table_it_had(tmp_path: Path) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    version = source.desk.version(None)
    source.batch(version, 0)
    version = source.desk.version(version)
    assert RouteDesk(source.route, source.exchange).version(version) == version


def test_another_route_begins_anew(tmp_path: Path) -> None:
    version = Source(route("frequency-aware"), tmp_path).desk.version(None)
    changed = Source(route("frequency-aware", partitions=4), tmp_path)
    assert changed.desk.version(version) != version
    assert max(changed.batch(version, 0)) == 3  # what is left of the old one is not obeyed


def test_a_lost_or_damaged_table_costs_balance_and_nothing_else(tmp_path: Path) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    first = source.desk.version(None)
    routes = source.batch(first, 0)
    version = source.desk.version(first)
    (tmp_path / "tables" / f"{version}.json").write_text("{", encoding="utf-8")
    assert source.batch(version, 0) == routes
    assert source.batch("00000009-gone", 0) == routes


def test_damaged_reports_are_left_out(tmp_path: Path) -> None:
    source = Source(route("frequency-aware"), tmp_path)
    version = source.desk.version(None)
    source.batch(version, 0)
    for name, text in (("keys-7", "{"), ("keys-8", '{"sketch": "AAAA"}'), ("keys-9", "[]")):
        (tmp_path / "reports" / f"{10**18:020d}-{name}.json").write_text(text, encoding="utf-8")
    document = source.exchange.read_table(source.desk.version(version))
    assert document is not None
    assert "split" in document["reasons"][0]


def test_files_do_not_pile_up(tmp_path: Path) -> None:
    source = Source(route("rate-aware-panes"), tmp_path, lanes=1)
    version: str | None = None
    for number in range(KEPT_TABLES + 20):
        version = source.desk.version(version)
        source.batch(version, number, rows=20)
    assert len(list((tmp_path / "tables").iterdir())) == KEPT_TABLES
    assert (tmp_path / "tables").stat().st_mode & 0o777 == 0o700


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
        ({"method": "round-robin", "key": "a"}, "goes by none"),
        ({"key": "a", "partitions": 0}, "Route(partitions) is 0; give a whole number from 1"),
        ({"key": "a", "top_k": 1.5}, "Route(top_k) is 1.5"),
        ({"key": 3}, "Route(key) is 3; name a column"),
        ({"key": ["a", "a"]}, "each may stand once"),
        ({"key": "a", "period": "soon"}, "Route(period) is 'soon'"),
        ({"key": "a", "time": "at"}, "only panes and rate-aware-panes go by time"),
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
