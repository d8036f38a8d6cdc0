"""Proposals of the slow loop: the newest word on an order holds."""

from dataclasses import replace

from penstock.fusion.order import StatelessOperator, swapped_unduly
from penstock.model.decision import RoomDecision
from penstock.model.observation import ComponentObservation, Observation, OperatorObservation
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.builder import BuiltQuery, BuiltTopology
from penstock.spark.compile.fused import Fused
from penstock.spark.compile.inspection import Inspection
from penstock.spark.compile.sharing import Sharing
from penstock.spark.handles.analysed_plan import Columns, OperatorAnalysis
from penstock.spark.run.slow_loop import ORDER, PERIODS, SlowLoop, carried_out


def built() -> BuiltTopology:
    made = Topology("steps", max_latency="5s")
    made.source("rows", object())
    made.add("left", "SELECT * FROM rows WHERE a", "rows")
    made.add("right", "SELECT * FROM left WHERE b", "left")
    made.sink("out", "right", Memory())
    analyses = {
        name: OperatorAnalysis((), False, False, columns=Columns(frozenset(column), frozenset()))
        for name, column in (("left", "a"), ("right", "b"))
    }
    inspection = Inspection(analyses, {}, frozenset(), {}, {})
    return BuiltTopology(TopologyPlan(()), (), {}, {}, inspection, made)


def period(at_s: float, left: float, right: float) -> Observation:
    """1,000 rows a second came, of which the operators let these shares through."""
    return Observation(
        at_s, 5.0, 1000.0, 0.0,
        operators=(
            OperatorObservation("left", 1000.0, 1000.0 * left),
            OperatorObservation("right", 1000.0 * left, 1000.0 * left * right),
        ),
        components=(ComponentObservation("rows", ("left", "right"), 1000.0, 1e-4, 2, 0.1),),
    )  # fmt: skip


def test_an_order_is_proposed_again_when_selectivities_change() -> None:
    told: list[RoomDecision] = []
    loop = SlowLoop(built(), told.append)
    for shares in ((0.9, 0.1), (0.9, 0.1), (0.1, 0.9), (0.1, 0.9)):
        for n in range(PERIODS):
            loop.look(period(5.0 * n, *shares))
    orders = [(d.what, d.numbers["expected_gain"]) for d in told if d.room == ORDER]
    assert [what for what, _ in orders] == ["right > left", "left > right"]
    assert orders[0][1] > 0.4


def test_an_order_may_not_swap_what_does_not_commute() -> None:
    def step(name: str, reads: str, writes: str) -> StatelessOperator:
        return StatelessOperator(name, frozenset(reads), frozenset(writes), 1.0, 1.0)

    run = [step("one", "a", "b"), step("two", "c", ""), step("three", "b", "")]
    assert swapped_unduly(run, ("two", "one", "three")) is None
    assert swapped_unduly(run, ("three", "two", "one")) == (run[0], run[2])


def test_the_gain_expected_is_told_of_what_a_start_takes_up() -> None:
    made = built()
    parts = (Component("rows", ("left",)), Component("one", ("one", "two"), ("a",)))
    fused = Fused("one", ("a",), frozenset({"one", "two"}), frozenset())
    query = BuiltQuery(
        QueryPlan("q", parts, ("out",)), None, (), {}, Sharing((), {}), (fused,)  # type: ignore[arg-type]
    )  # fmt: skip
    taken = replace(made, queries=(query,), orders=(("right", "left"),))
    gains = {"fuse left + one + two by (a)": 0.9, "right > left": 0.3}
    told = [(d.room, d.what, d.numbers) for d in carried_out(taken, gains)]
    assert told == [
        ("fusion", "fuse one + two by (a)", {"expected_gain": 0.9}),
        ("order", "right > left", {"expected_gain": 0.3}),
    ]
    assert [d.numbers for d in carried_out(taken, {"fuse one + two by (b)": 0.9})] == [{}, {}]
