"""The slow loop on Spark: is there a better plan than the one that runs, from what was measured?

It proposes; the plan changes at a start, because that needs the query to stand still.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql.types import StructField, StructType, TimestampNTZType, TimestampType

from penstock.control.clock import steady_s
from penstock.control.history.store import HistoryStore
from penstock.fusion.operator_costs import costs_by_operator
from penstock.fusion.order import StatelessOperator, decide_order
from penstock.fusion.planner import Algorithm
from penstock.fusion.price import Price, measured_price
from penstock.fusion.proposal import ProposalRules, propose_fusion
from penstock.fusion.shuffles import Key
from penstock.fusion.statistics import measured_graph
from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation
from penstock.model.plan_document import Fusion, Group, Order, PlanChange
from penstock.spark.compile.builder import BuiltTopology
from penstock.spark.compile.fused import needs_division
from penstock.spark.compile.inspection import Inspection
from penstock.spark.compile.reordering import movable, runs_of
from penstock.spark.handles.analysed_plan import Columns
from penstock.spark.handles.messages import first_line
from penstock.spark.run.fusion_price import FusionPrice

ROOM = "fusion"
ORDER = "order"
POLICY = "plan proposal"
APPLIED = "plan applied"
MEASURED = "plan measured"
PERIODS = 12  # between two proposals
HORIZON_S = 3600.0  # what was measured earlier speaks for no plan any more
MOST_PERIODS = 2_000  # within the horizon, where periods are short
MOST_EXACT = 40  # operators for which the best plan is searched

_TIME_WINDOWS = tuple(
    StructType([StructField("start", time, nullable), StructField("end", time, nullable)])
    for time in (TimestampType(), TimestampNTZType())
    for nullable in (True, False)
)

log = logging.getLogger(__name__)


class SlowLoop:
    """Proposes a plan every so many periods and at the end of a run."""

    def __init__(
        self,
        built: BuiltTopology,
        keep: Callable[[RoomDecision], None],
        rules: ProposalRules = ProposalRules(),  # noqa: B008 - frozen
        foretold: tuple[PlanChange, Mapping[str, float]] | None = None,
    ) -> None:
        """`foretold` is the fusion that this run took up, with the numbers of its proposal."""
        self._rules = rules
        self._foretold = foretold
        self._topology = built.topology
        self._built = built
        self._keep = keep
        self.window: deque[Observation] = deque(maxlen=MOST_PERIODS)  # what a proposal rests on
        self._seen = 0  # observations so far
        self.latest: RoomDecision | None = None
        self._orders: dict[tuple[str, ...], Order] = {}

    def look(self, observation: Observation | None) -> None:
        """Take one more observation into account."""
        if observation is None:
            return
        self.window.append(observation)
        while self.window[0].at_s < observation.at_s - HORIZON_S:
            self.window.popleft()
        self._seen += 1
        if self._seen % PERIODS == 0:
            self._tell_price()
            self.propose_safely()

    def _tell_price(self) -> None:
        """What the plan that runs was foretold to cost, and what it does, once for a run."""
        measured = measured_price(tuple(self.window)[-PERIODS:])
        if self._foretold is None or measured is None:
            return
        plan, numbers = self._foretold
        self._foretold = None
        prices = {
            name: n for name, n in numbers.items() if name.startswith(("present", "foretold"))
        }
        prices |= measured.numbers("measured")
        reasons = tuple(
            f"{what} of a batch: {prices[f'present_{key}']:.4g} before, foretold "
            f"{prices[f'foretold_{key}']:.4g}, measured {prices[f'measured_{key}']:.4g}"
            for what, key in (("rows", "rows"), ("bytes", "bytes"), ("seconds", "batch_s"))
        )
        self._keep(RoomDecision.of_plan(steady_s(), ROOM, MEASURED, plan, prices, reasons))

    def propose_safely(self) -> None:
        """Propose; what goes wrong with that must not end the loop or the run."""
        try:
            self.propose()
        except Exception as error:  # noqa: BLE001 - advice only
            log.warning("no plan was proposed: %s", first_line(error))

    def propose(self) -> RoomDecision | None:
        """What the measurements so far speak for; kept if it differs from the last proposal."""
        found = self._built.inspection
        keys, edges, once, exact = self._shape()
        stateful = frozenset(name for name, a in found.operators.items() if a.stateful)
        graph = measured_graph(tuple(self.window), keys, edges, stateful, once, exact)
        if graph is None:
            return None
        present = [
            part.operators for query in self._built.plan.queries for part in query.components
        ]
        # The exact search may take half a minute on hundreds of operators, and the loop waits.
        algorithm: Algorithm = "mwsc" if len(keys) <= MOST_EXACT else "greedy"
        decision = propose_fusion(graph, present, algorithm, self._rules)
        plan = decision.plan
        numbers = {"expected_gain": plan.gain, "present_cost": plan.present_cost, "cost": plan.cost}
        prices = self.prices(tuple(self.window)[-PERIODS:], plan.groups)
        if prices is not None:
            numbers |= prices[0].numbers("present") | prices[1].numbers("foretold")
        made = RoomDecision.of_plan(
            steady_s(), ROOM, POLICY, Fusion(plan.groups), numbers,
            decision.reasons, decision.infeasible,
        )  # fmt: skip
        if self.latest is None or self.latest.plan != made.plan:
            self._keep(made)
        self.latest = made
        self._propose_orders()
        return made

    def prices(
        self, window: Sequence[Observation], groups: Sequence[Group]
    ) -> tuple[Price, Price] | None:
        """What a batch costs now, and what it would with these groups."""
        return FusionPrice(self._built, *self._shape()).of(window, groups)

    def _shape(
        self,
    ) -> tuple[dict[str, Key], list[tuple[str, str]], frozenset[str], frozenset[str]]:
        """Keys, edges, nodes that are divided once for all readers, and operators that join."""
        found = self._built.inspection
        operators = self._topology.ordered()
        keys = {o.name: self._key(o.name) for o in operators}
        edges = [(upstream, o.name) for o in operators for upstream in o.upstreams]
        exact = frozenset(name for name, analysis in found.operators.items() if analysis.joins)
        return keys, edges, divided_once(found, keys, edges), exact

    def _propose_orders(self) -> None:
        """Orders of less work for runs of stateless operators, by the selectivities measured.

        The present order is proposed too once another was, so that the newest word holds.
        """
        columns = movable(self._topology, self._built.inspection)
        costs = costs_by_operator(tuple(self.window))
        for names in runs_of(self._topology, self._built.inspection):
            run = [self._stateless(name, columns[name], costs) for name in names]
            decision = decide_order(run)
            order = Order(tuple(decision.plan.order))
            if self._orders.get(names, Order(names)) != order:
                gain = {"expected_gain": decision.plan.gain}
                self._keep(
                    RoomDecision.of_plan(steady_s(), ORDER, POLICY, order, gain, decision.reasons)
                )
            self._orders[names] = order

    def _stateless(
        self, name: str, columns: Columns, costs: Mapping[str, float]
    ) -> StatelessOperator:
        """What was measured of it lately."""
        came = left = 0.0
        for one in tuple(self.window)[-PERIODS:]:
            for operator in one.operators:
                if operator.name == name:
                    came += operator.arrival_rate_per_s * one.period_s
                    left += operator.emission_rate_per_s * one.period_s
        selectivity = left / came if came > 0 else float("nan")
        cost_s = costs.get(name, float("nan"))
        return StatelessOperator(name, columns.reads, columns.writes, selectivity, cost_s)

    def _key(self, name: str) -> Key:
        """Columns an operator may be divided by; one of its own where nothing else will do."""
        found = self._built.inspection.operators[name]
        if not needs_division(self._topology, self._built.inspection, name):
            return None if found.opaque else ()
        own = (f"{name}'s own rows",)
        if found.shuffles and not found.keys:
            return own
        declared = self._topology.find_operator(name).key
        shared = frozenset.intersection(*found.keys) if found.keys else frozenset(declared or ())
        chosen = declared if declared is not None else tuple(sorted(shared))
        incoming = _incoming(self._built.inspection, self._topology.find_operator(name).upstreams)
        columns = tuple(
            column
            for column in chosen
            if column in shared and (incoming is None or column in incoming)
        )
        if any(join.ordered(columns) is None for join in found.joins):
            return own
        return columns or own


def _incoming(inspection: Inspection, upstreams: Sequence[str]) -> set[str] | None:
    """Columns of the rows that come in by which they can be divided; None where not known.

    A window of time is none: what an operator groups by under the same name is mostly another one.
    """
    if not all(upstream in inspection.types for upstream in upstreams):
        return None
    return {
        field.name
        for upstream in upstreams
        for field in inspection.types[upstream].fields
        if field.dataType not in _TIME_WINDOWS
    }


def divided_once(
    inspection: Inspection, keys: Mapping[str, Key], edges: Sequence[tuple[str, str]]
) -> frozenset[str]:
    """Nodes whose rows can be divided once for all operators with a key that read them.

    A watermark hides from Spark how rows were divided before it, so the one shuffle comes after it:
    there has to be none, or the same one for all readers.
    """
    found = set()
    for node in {upstream for upstream, _ in edges if not keys.get(upstream)}:
        readers = [name for upstream, name in edges if upstream == node and keys[name]]
        timed = inspection.watermarked.intersection(readers)
        defined = {inspection.operators[name].watermarks.get(node) for name in readers}
        alike = len(defined) == 1 and None not in defined and node not in inspection.watermarked
        if not timed or alike:
            found.add(node)
    return frozenset(found)


@dataclass(frozen=True)
class Proposed:
    """What the newest run of a topology that measured anything proposed; None where nothing was."""

    groups: tuple[Group, ...] | None = None
    orders: tuple[tuple[str, ...], ...] = ()
    expected: Mapping[PlanChange, Mapping[str, float]] = field(default_factory=dict)


def proposed(store: HistoryStore, topology: str) -> Proposed:
    """The newest proposals that a history holds for a topology."""
    for number, record in sorted(store.runs().items(), reverse=True):
        if record.topology != topology:
            continue
        proposals = [d for d in store.read_room_decisions(number) if d.policy == POLICY]
        if not any(d.room == ROOM for d in proposals):
            continue
        plans = [d.plan for d in proposals if d.plan is not None]
        fusions = [plan for plan in plans if isinstance(plan, Fusion)]
        if not fusions:
            log.warning(
                "run %d in the history %s holds its proposal for %s as text, the form of an "
                "earlier Penstock; no plan is taken from it.", number, store.where, topology,
            )  # fmt: skip
            return Proposed()
        orders = {frozenset(p.operators): p for p in plans if isinstance(p, Order)}
        newest = (fusions[-1], *orders.values())
        return Proposed(
            fusions[-1].groups,
            tuple(order.operators for order in orders.values()),
            {d.plan: d.numbers for d in proposals if d.plan is not None and d.plan in newest},
        )
    return Proposed()


def carried_out(
    built: BuiltTopology, expected: Mapping[PlanChange, Mapping[str, float]]
) -> Iterator[RoomDecision]:
    """What a start took up of proposals, each with the gain and price that were expected of it."""
    groups = tuple(
        Group(component.operators, component.key)
        for query in built.queries
        for component in query.plan.components
        if any(part.name == component.name for part in query.fused)
    )
    changes: list[tuple[str, PlanChange]] = [(ROOM, Fusion(groups))] if groups else []
    changes += [(ORDER, Order(order)) for order in built.orders]
    for room, change in changes:
        numbers = _expected(expected, groups) if room == ROOM else expected.get(change, {})
        yield RoomDecision.of_plan(steady_s(), room, APPLIED, change, numbers, built.notes)


def _expected(
    expected: Mapping[PlanChange, Mapping[str, float]], groups: Sequence[Group]
) -> Mapping[str, float]:
    """What was expected of a proposal that these groups carry out.

    A proposal also names stateless operators, which run where their rows come from.
    """
    for change, numbers in expected.items():
        if isinstance(change, Fusion) and all(
            any(
                set(group.operators) <= set(one.operators) and group.key == one.key
                for one in change.groups
            )
            for group in groups
        ):
            return numbers
    return {}


def foretold_of(plan: Sequence[RoomDecision]) -> tuple[PlanChange, Mapping[str, float]] | None:
    """The fusion that a start took up, if its price was foretold."""
    for decision in plan:
        if decision.plan is not None and "foretold_rows" in decision.numbers:
            return decision.plan, decision.numbers
    return None
