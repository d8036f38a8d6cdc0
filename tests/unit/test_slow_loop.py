"""Proposals of the slow loop: kept as data, and the newest word on an order holds."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from penstock.control.history.digest import room_changes
from penstock.control.history.store import HistoryStore
from penstock.control.records import RunRecord
from penstock.errors import InvalidTopology
from penstock.fusion.order import StatelessOperator, swapped_unduly
from penstock.fusion.price import Price
from penstock.model.decision import RoomDecision
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    Observation,
    OperatorObservation,
    Shuffles,
)
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.model.plan_document import Fusion, Group, Order
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.builder import BuiltQuery, BuiltTopology
from penstock.spark.compile.fused import Fused, PlanChoice, possible_part
from penstock.spark.compile.inspection import Inspection
from penstock.spark.compile.sharing import Sharing
from penstock.spark.handles.analysed_plan import Columns, OperatorAnalysis, Watermark
from penstock.spark.run import slow_loop
from penstock.spark.run.place import choose_plan
from penstock.spark.run.slow_loop import (
    HORIZON_S,
    MEASURED,
    ORDER,
    PERIODS,
    SlowLoop,
    carried_out,
    divided_once,
    proposed,
)


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


def period(
    at_s: float, left: float, right: float, left_s: float = 1e-4, right_s: float = 1e-4
) -> Observation:
    """1,000 rows a second came, of which the operators let these shares through."""
    busy_s = 5.0 * 1000.0 * (left_s + left * right_s)
    return Observation(
        at_s, 5.0, 1000.0, 0.0,
        operators=(
            OperatorObservation("left", 1000.0, 1000.0 * left),
            OperatorObservation("right", 1000.0 * left, 1000.0 * left * right),
        ),
        components=(ComponentObservation("rows", ("left", "right"), 1000.0, 1e-4, 2, busy_s),),
    )  # fmt: skip


def test_an_order_is_proposed_again_when_selectivities_change() -> None:
    decisions: list[RoomDecision] = []
    loop = SlowLoop(built(), decisions.append)
    for shares in ((0.9, 0.1), (0.9, 0.1), (0.1, 0.9), (0.1, 0.9)):
        for n in range(PERIODS):
            loop.look(period(5.0 * n, *shares))
    orders = [(d.what, d.numbers["expected_gain"]) for d in decisions if d.room == ORDER]
    assert [what for what, _ in orders] == ["right > left", "left > right"]
    assert orders[0][1] > 0.4


def test_an_order_goes_by_what_each_operator_cost_not_by_an_even_share() -> None:
    """Both let half through; the first costs twenty times as much as the second."""
    decisions: list[RoomDecision] = []
    loop = SlowLoop(built(), decisions.append)
    for n in range(PERIODS):
        loop.look(period(5.0 * n, 0.4 + 0.02 * (n % 10), 0.5, left_s=2e-3, right_s=1e-4))
    orders = [d for d in decisions if d.room == ORDER]
    assert [d.what for d in orders] == ["right > left"]
    assert orders[0].numbers["expected_gain"] > 0.3


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
    gains = {
        Fusion((Group(("left", "one", "two"), ("a",)),)): {"expected_gain": 0.9},
        Order(("right", "left")): {"expected_gain": 0.3},
    }
    decisions = [(d.room, d.what, d.numbers) for d in carried_out(taken, gains)]
    assert decisions == [
        ("fusion", "fuse one + two by (a)", {"expected_gain": 0.9}),
        ("order", "right > left", {"expected_gain": 0.3}),
    ]
    other = {Fusion((Group(("one", "two"), ("b",)),)): {"expected_gain": 0.9}}
    assert [d.numbers for d in carried_out(taken, other)] == [{}, {}]


def test_a_price_foretold_is_told_beside_the_one_measured() -> None:
    fused = Fusion((Group(("left", "right"), ("a",)),))
    foretold = {"expected_gain": 0.5, **Price(900.0, 9e4, 0.8).numbers("present"),
                **Price(600.0, 6e4, 0.5).numbers("foretold")}  # fmt: skip
    kept: list[RoomDecision] = []
    loop = SlowLoop(built(), kept.append, foretold=(fused, foretold))
    for number in range(2 * PERIODS):
        seen = period(1000.0 + number, 1.0, 1.0)
        batches = BatchObservation(2, 0.6, 0.1, 500.0)
        loop.look(replace(seen, batches=batches, shuffles=Shuffles(650.0, 6.5e4)))
    (told,) = [decision for decision in kept if decision.policy == MEASURED]
    assert told.reasons == (
        "rows of a batch: 900 before, foretold 600, measured 650",
        "bytes of a batch: 9e+04 before, foretold 6e+04, measured 6.5e+04",
        "seconds of a batch: 0.8 before, foretold 0.5, measured 0.6",
    )
    assert not room_changes(told)


RUN = RunRecord("steps", "static", 1000.0, 5.0, 5.0)
ODD = "p, q"  # a column's name may hold anything


def keyed() -> BuiltTopology:
    """Two operators that group by the same, oddly named column."""
    made = Topology("steps", max_latency="5s")
    made.source("rows", object())
    made.add("left", "SELECT * FROM rows", "rows", key=ODD)
    made.add("right", "SELECT * FROM left", "left", key=ODD)
    made.sink("out", "right", Memory())
    analysis = OperatorAnalysis((frozenset({ODD}),), True, True)
    inspection = Inspection({"left": analysis, "right": analysis}, {}, frozenset(), {}, {})
    return BuiltTopology(TopologyPlan(()), (), {}, {}, inspection, made)


def test_a_proposal_comes_back_from_the_history_as_it_was_made(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        loop = SlowLoop(keyed(), run.room_decided)
        loop.look(period(1005.0, 1.0, 1.0))
        made = loop.propose()
        run.flush()
        assert made is not None
        assert made.what == "fuse left + right by (p, q)"
        assert store.read_room_decisions(run.run_id) == [made]
        found = proposed(store, "steps")
        choice = choose_plan("auto", False, store, "steps", tmp_path)
    assert found.groups == (Group(("left", "right"), (ODD,)),)
    assert found.expected == {made.plan: made.numbers}
    assert choice.plan == found.groups


def test_what_was_proposed_last_holds_though_it_was_proposed_before(tmp_path: Path) -> None:
    fused, alone = Fusion((Group(("left", "right"), (ODD,)),)), Fusion(())
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        for number, plan in enumerate((fused, alone, fused)):
            gain = {"expected_gain": 0.1 * number}
            run.room_decided(RoomDecision.of_plan(1.0, "fusion", "plan proposal", plan, gain))
        run.flush()
        found = proposed(store, "steps")
    assert found.groups == fused.groups
    assert {plan: n["expected_gain"] for plan, n in found.expected.items()} == {fused: 0.2}


def test_a_proposal_that_is_only_text_is_said_to_be_old_and_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = RoomDecision(1.0, "fusion", "plan proposal", "fuse a + b by (k)", {"expected_gain": 0.5})
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        run.room_decided(text)
        run.flush()
        with caplog.at_level(logging.WARNING):
            choice = choose_plan("auto", False, store, "steps", tmp_path)
    assert choice.plan is None
    (said,) = caplog.messages
    assert "holds its proposal for steps as text, the form of an earlier Penstock" in said


def test_the_slow_loop_holds_a_bounded_part_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_loop, "MOST_PERIODS", 40)
    loop = SlowLoop(built(), lambda _: None)
    for number in range(40 + PERIODS):
        loop.look(period(0.1 * number, 0.9, 0.1))
    assert len(loop.window) == 40
    late_s = 10 * HORIZON_S
    for number in range(3):
        loop.look(period(late_s + HORIZON_S / 2 * number, 0.9, 0.1))
    assert [one.at_s for one in loop.window] == [
        late_s, late_s + HORIZON_S / 2, late_s + HORIZON_S
    ]  # fmt: skip


def test_a_shuffle_is_shared_only_where_watermarks_let_one_serve_all_readers() -> None:
    def read(node: str, *delays_ms: int | None, timed: frozenset[str]) -> bool:
        analyses = {
            f"reader{n}": OperatorAnalysis(
                (frozenset({"k"}),), True, True,
                watermarks={} if delay is None else {node: Watermark("at", delay)},
            )
            for n, delay in enumerate(delays_ms)
        }  # fmt: skip
        inspection = Inspection(analyses, {}, timed, {}, {})
        keys = dict.fromkeys(analyses, ("k",))
        return node in divided_once(inspection, keys, [(node, name) for name in analyses])

    readers = frozenset({"reader0", "reader1"})
    assert read("rows", None, None, timed=frozenset())
    assert read("rows", 1000, 1000, timed=readers)
    assert not read("rows", 1000, 2000, timed=readers)
    assert not read("rows", 1000, None, timed=readers)
    assert not read("rows", None, None, timed=readers | {"rows"})


def test_a_column_is_a_key_whatever_its_name_and_a_window_of_time_is_not() -> None:
    made = Topology("seats", max_latency="5s")
    made.source("rows", object())
    made.add("sold", "SELECT * FROM rows", "rows")
    made.add("held", "SELECT * FROM sold", "sold")
    made.sink("out", "held", Memory())
    time = StructType([StructField("start", TimestampType()), StructField("end", TimestampType())])
    came = StructType([StructField("window_seat", StringType()), StructField("row", StringType())])
    left = StructType([StructField("window_seat", StringType()), StructField("window", time)])
    keys = (frozenset({"window_seat", "window"}),)
    analyses = dict.fromkeys(("sold", "held"), OperatorAnalysis(keys, True, True))
    inspection = Inspection(analyses, {}, frozenset(), {"rows": came, "sold": left}, {})
    topology = BuiltTopology(TopologyPlan(()), (), {}, {}, inspection, made)
    loop = SlowLoop(topology, lambda _: None)
    operators = tuple(OperatorObservation(name, 1000.0, 1000.0) for name in analyses)
    loop.look(Observation(5.0, 5.0, 1000.0, 0.0, operators=operators))
    proposal = loop.propose()
    assert proposal is not None
    assert proposal.what == "fuse sold + held by (window_seat)"


def test_a_group_that_cannot_be_applied_leaves_the_others() -> None:
    good, bad, also = (Group((name, f"{name}2"), ("k",)) for name in ("good", "bad", "also"))

    def build(groups: tuple[Group, ...]) -> None:
        if bad in groups:
            raise InvalidTopology("key 'k' contradicts operator 'bad2'")

    whole = PlanChoice((good, bad, also), True, if_possible=True, orders=(("x", "y"),))
    tried = list(possible_part(whole, build, InvalidTopology("refused")))
    assert [choice.plan for choice in tried] == [(good, also), None]
    assert [(choice.apply, choice.orders) for choice in tried] == [
        (True, whole.orders), (False, whole.orders)
    ]  # fmt: skip
    # Where each alone is possible it was the state that could not be carried over.
    fits = replace(whole, plan=(good, also))
    assert [c.plan for c in possible_part(fits, build, InvalidTopology("refused"))] == [None]
