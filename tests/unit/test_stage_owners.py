"""Which component the tasks of a stage work for."""

from penstock.spark.handles import StagePart
from penstock.spark.measure.stage_owners import owned_parts
from penstock.spark.routes.method import COLUMN

HOME = {"s": "s", "clean": "s", "count": "count", "top": "top"}


def test_a_part_belongs_to_the_first_operator_met_from_its_top() -> None:
    last = StagePart(nodes=("top", "count"))
    middle = StagePart(nodes=("count", "clean"), downstream=0, shuffle=4, exchange_rdd=7)
    first = StagePart(nodes=("clean",), reads_source=True, downstream=1, shuffle=3, exchange_rdd=5)
    owned = owned_parts((last, middle, first), HOME, None)
    assert [one.component for one in owned] == ["top", "count", "s"]
    assert [one.feeds for one in owned] == [None, "top", "count"]


def test_a_part_without_edges_works_for_who_reads_it_or_for_its_source() -> None:
    last = StagePart(nodes=("count",))
    between = StagePart(nodes=(), downstream=0)
    reading = StagePart(nodes=(), reads_source=True, downstream=1)
    parts = (last, between, reading)
    assert [one.component for one in owned_parts(parts, HOME, "s")] == ["count", "count", "s"]
    assert [one.component for one in owned_parts(parts, HOME, None)] == ["count"] * 3
    assert [one.component for one in owned_parts((StagePart(()),), HOME, None)] == ["s"]


def test_without_a_plan_parts_are_named_after_their_state() -> None:
    parts = (StagePart(("x",)), StagePart((), downstream=0, stateful=(0, 2), key_groups=4))
    owned = owned_parts(parts, {}, None)
    assert [one.component for one in owned] == ["stateless", "state-0-2"]
    assert owned[1].feeds == "stateless"


def test_the_route_column_of_any_exchange_read_tells_whose_routes_they_are() -> None:
    plain, routed = "hashpartitioning(k#3, 4)", f"shufflepartitionid({COLUMN}cars#12, 8)"
    parts = (StagePart(("count",), divided_by=(plain, routed)), StagePart((), divided_by=(plain,)))
    assert [one.routed for one in owned_parts(parts, HOME, "s")] == ["cars", None]
