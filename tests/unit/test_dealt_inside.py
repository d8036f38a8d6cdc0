"""Rows dealt behind a shuffle: alike however they come, by the table that a batch was named."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from penstock.errors import InvalidTopology
from penstock.model.route import Route
from penstock.model.topology import Topology
from penstock.routing.cost_sketch import empty_cost_sketch
from penstock.routing.hashing import key_hashes
from penstock.spark.routes.by_cost import SHAPE, sketch_as_json
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.inside import check_inside, in_own_order
from penstock.spark.routes.reading import LaneRouter
from penstock.spark.routes.table_versions import RouteTableVersions

ROUTE = Route("osg", key="k", partitions=4)


def rows(count: int) -> pa.Table:
    numbers = np.arange(count)
    window = pa.StructArray.from_arrays(
        [pa.array(numbers), pa.array(numbers + 1)], ["start", "end"]
    )
    return pa.table({"k": pa.array(numbers % 7), "window": window, "n": pa.array(numbers * 3)})


def routed(exchange: RouteExchange, given: pa.Table, version: str | None) -> dict[int, int]:
    found = LaneRouter(ROUTE, exchange, "answers", version, 2).routed(in_own_order(given))
    return dict(zip(found.column("n").to_pylist(), found.columns[-1].to_pylist(), strict=True))


def test_a_task_that_is_run_again_deals_its_rows_alike(tmp_path: Path) -> None:
    exchange, given = RouteExchange(tmp_path / "answers"), rows(200)
    version = RouteTableVersions(ROUTE, exchange).version(None)
    first = routed(exchange, given, version)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(200)
        assert routed(exchange, given.take(pa.array(order)), version) == first
    assert set(first.values()) == {0, 1, 2, 3}


def test_a_batch_keeps_its_table_whatever_was_learnt_meanwhile(tmp_path: Path) -> None:
    now = [0.0]
    exchange = RouteExchange(tmp_path / "answers")
    tables = RouteTableVersions(ROUTE, exchange, clock=lambda: now[0])
    exchange_first = tables.version(None)
    exchange.name(7, exchange_first)
    hashes = key_hashes(pa.array([3] * 50))
    learnt = empty_cost_sketch(SHAPE).learn(hashes, np.full(50, 0.1))
    exchange.report("costs", "0-0", sketch_as_json(learnt))
    now[0] = 10.0
    later = tables.version(None)
    assert later != exchange_first
    exchange.name(7, later)
    assert exchange.named(7) == exchange_first
    exchange.name(8, later)
    assert exchange.named(8) == later
    assert exchange.named(9) is None


def test_costly_values_are_spread(tmp_path: Path) -> None:
    """Of seven values one costs a hundred times as much: its rows are on all tasks."""
    exchange = RouteExchange(tmp_path / "answers")
    now = [0.0]
    tables = RouteTableVersions(ROUTE, exchange, clock=lambda: now[0])
    tables.version(None)
    now[0] = 9.0
    keys = pa.array([k for k in range(7) for _ in range(20)])
    cost = np.where(np.array(keys.to_pylist()) == 3, 0.1, 0.001)
    learnt = empty_cost_sketch(SHAPE).learn(key_hashes(keys), cost)
    exchange.report("costs", "0-0", sketch_as_json(learnt))
    found = routed(exchange, rows(280), tables.version(None))
    costly = [task for n, task in found.items() if (n // 3) % 7 == 3]
    assert np.bincount(costly, minlength=4).tolist() == [10, 10, 10, 10]


def test_what_cannot_be_dealt_is_refused() -> None:
    with pytest.raises(InvalidTopology, match="these are possible: osg, hash, round-robin"):
        check_inside("answers", Route("frequency-aware", key="k"), StructType())
    listed = StructType([StructField("all", ArrayType(LongType()))])
    with pytest.raises(InvalidTopology, match=r"column 'all' of its input is array<bigint>"):
        check_inside("answers", ROUTE, listed)
    with pytest.raises(InvalidTopology, match="give a Route"):
        Topology("t", "5s").add("answers", "SELECT 1", "rows", route="osg")  # type: ignore[arg-type]
