"""The simulated cluster behind the ports of the loop: its clock, its measurer and its actuator."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from penstock.control.actions import (
    Action,
    MigrationCost,
    MoveKeyGroups,
    Outcome,
    SetExecutors,
    SetInterval,
    SetParallelism,
    SetRouteTasks,
    ShedLoad,
    UseForms,
    UseVariants,
)
from penstock.model.observation import ComponentObservation, Observation
from penstock.sim.cluster import Cluster, Node, divided
from penstock.sim.microbatch import TimeSharing
from penstock.sim.network import Network
from penstock.sim.observing import (
    BatchRate,
    components_apart,
    components_together,
    observed_batches,
    observed_flows,
    observed_nodes,
    observed_operators,
)
from penstock.sim.placing import STATE_BYTES, SimulatedPlacement
from penstock.sim.queueing import SpaceSharing
from penstock.sim.scenario import Scenario
from penstock.sim.tally import Results, Tally


class SimulatedWorld:
    """Time passes only in `wait_s`; the same scenario and the same acts give the same world.

    It is Clock, Measurer and Actuator at once. Time starts at 0.
    """

    def __init__(
        self, scenario: Scenario, keep_results: bool = True, share: float | None = None
    ) -> None:
        """`share` of the results must keep the bound: that of the scenario unless given."""
        self.scenario = scenario
        self._share = scenario.share if share is None else share
        self.network = Network(scenario)
        self.cluster = Cluster(scenario.cluster)
        self.arrived_rows = 0
        self.results: deque[Results] = deque(maxlen=None if keep_results else 0)
        self._placement: SimulatedPlacement | None = None
        rng = np.random.default_rng(scenario.seed)
        self._engine: SpaceSharing | TimeSharing
        if scenario.sharing == "space":
            self._engine = SpaceSharing(scenario, self.network, rng)
        else:
            self._placement = self._placed()
            self._engine = TimeSharing(
                scenario, self.network, rng, self.cluster.processors, self.cluster.slowed_s,
                self._stretch if self._placement is not None else None,
            )  # fmt: skip
        self._apart = scenario.sharing == "space"
        self._wanted = {operator.name: operator.processors for operator in scenario.operators}
        self._tally = Tally.of(self.network.operators)
        self._observed_at_s, self._batch_rate = 0.0, BatchRate()
        self._stopped = False
        self._fit()

    # Clock

    def now_s(self) -> float:
        """Simulated seconds since the start."""
        return self._engine.now_s

    def wait_s(self, seconds: float) -> bool:
        """Simulate so much; False when stopped, or when the scenario ends before."""
        if self._stopped:
            return False
        until_s = self.now_s() + max(0.0, seconds)
        end_s = self.scenario.duration_s
        over = until_s > end_s + 1e-9
        until_s = min(until_s, end_s)
        while self.now_s() < until_s:
            start_s = self.cluster.next_start_s(self.now_s())
            self._engine.advance(min(until_s, start_s), self._tally)
            if start_s <= until_s:
                self._fit()
        return not over

    def stop(self) -> None:
        """Let no more time pass."""
        self._stopped = True

    # Measurer

    def observe(self) -> Observation | None:
        """What was measured since the last call; None when no time has passed."""
        now_s, tally = self.now_s(), self._tally
        period_s = now_s - self._observed_at_s
        if period_s <= 0:
            return None
        results = Results.of(tally.results)
        self.results.append(results)
        self.arrived_rows += tally.arrived_rows
        backlog_rows = self._engine.held_rows
        # Without rows there is no batch to report, and nothing that it could.
        known = self._apart or bool(tally.batches) or tally.arrived_rows == backlog_rows == 0
        busy_s = sum(counts.busy_s for counts in tally.operators.values())
        observation = Observation(
            at_s=now_s,
            period_s=period_s,
            arrival_rate_per_s=tally.arrived_rows / period_s,
            backlog_rows=float(backlog_rows),
            operators=observed_operators(tally.operators, period_s, known),
            components=self._components(period_s, known),
            nodes=observed_nodes(self.cluster.present(now_s), busy_s),
            latency=results.observed(self.scenario.max_latency_s, self._share),
            batches=None if self._apart else observed_batches(tally.batches),
            missing=() if known else ("operators", "components"),
            flows=observed_flows(self.network, tally, period_s, together=not self._apart),
        )
        self._batch_rate.saw(tally.batches)
        self._tally, self._observed_at_s = Tally.of(self.network.operators), now_s
        by_batch = self.scenario.rates_by_batch and not self._apart
        return self._batch_rate.shown(observation) if by_batch else observation

    # Actuator

    def unavailable(self) -> Mapping[str, str]:
        """Key groups move only where the scenario has some; only batches take orders."""
        cannot = {}
        if self._placement is None:
            cannot[MoveKeyGroups.NAME] = "the scenario has no key groups (cluster.key_groups)"
        cannot[SetRouteTasks.NAME] = "simulated sources have no routes"
        if not self._apart:
            cannot[SetParallelism.NAME] = "processors are shared in time; only 'space' divides them"
        if self._apart:
            for kind in (UseVariants, UseForms, ShedLoad, SetInterval):
                cannot[kind.NAME] = "processors are shared in space; only 'time' has batches"
        return cannot

    def executors(self) -> int:
        """Executors asked for, without those being drained."""
        return self.cluster.executors

    def slots_per_executor(self) -> int:
        """Processors of one executor."""
        return self.scenario.cluster.slots

    def act(self, action: Action) -> Outcome:
        """Carry an action out: new executors come after the start-up delay, surplus ones drain.

        Processors shared in space stay as they were given, as far as there are slots for them.
        """
        if isinstance(action, MoveKeyGroups):
            return self._move(action)
        if isinstance(action, UseVariants | UseForms | ShedLoad | SetInterval):
            return self._order(action)
        if isinstance(action, SetParallelism):
            return self._assign(action)
        if not isinstance(action, SetExecutors) or action.total < 1:
            return Outcome(action, done=False, detail="only SetExecutors of at least 1 is possible")
        change = self.cluster.scale(action.total, self.now_s(), action.leaving)
        self.cluster.release(self._fit())
        delay_s = self.scenario.cluster.startup_s
        detail = f"{change} new, live in {delay_s:g} s" if change > 0 else f"{-change} drained"
        return Outcome(action, done=True, detail=detail)

    def _order(self, action: UseVariants | UseForms | ShedLoad | SetInterval) -> Outcome:
        """The orders that sources obey on Spark; they hold from the next batch on."""
        if not isinstance(self._engine, TimeSharing):
            return Outcome(action, False, self.unavailable()[action.NAME])
        if isinstance(action, ShedLoad):
            self._engine.shed = action.share
        elif isinstance(action, UseVariants):
            self._engine.cheaper = frozenset(action.operators)
        elif isinstance(action, UseForms):
            self._engine.forms = dict(action.forms)
        else:
            self._engine.interval_s = action.seconds
        return Outcome(action, True, "from the next batch on")

    @property
    def shed_rows(self) -> int:
        """Rows that were shed so far."""
        return self._engine.shed_rows if isinstance(self._engine, TimeSharing) else 0

    def _move(self, action: MoveKeyGroups) -> Outcome:
        if self._placement is None:
            return Outcome(action, False, self.unavailable()[MoveKeyGroups.NAME])
        takers = {node.name for node in self._takers(self.now_s())}
        for move in action.moves:
            refusal = self._placement.refusal(move, takers)
            if refusal is not None:
                return Outcome(action, False, refusal)
        moved = self._placement.move(action.moves)
        cost_s = moved * self.scenario.cluster.migration_s
        if isinstance(self._engine, TimeSharing):
            self._engine.owed_s += cost_s
        cost = MigrationCost(moved, moved * STATE_BYTES, cost_s, cost_s)
        return Outcome(action, True, f"{moved} key groups moved", migration=cost)

    def _placed(self) -> SimulatedPlacement | None:
        spec = self.scenario.cluster
        if not spec.key_groups:
            return None
        operators = self.network.operators.values()
        names = dict.fromkeys(self.network.component_of(operator) for operator in operators)
        return SimulatedPlacement(
            tuple(names), spec.key_groups, spec.key_skew, self._takers(0.0)
        )  # fmt: skip

    def _takers(self, now_s: float) -> list[Node]:
        return [node for node in self.cluster.present(now_s) if not node.draining]

    def _stretch(self, now_s: float, work_s: dict[str, float]) -> float:
        """What the placement of a batch costs it; key groups of nodes that left find a home."""
        assert self._placement is not None
        nodes = self._takers(now_s)
        self._placement.rehome(nodes)
        by_component: dict[str, float] = {}
        for operator in self.network.operators.values():
            name = self.network.component_of(operator)
            by_component[name] = by_component.get(name, 0.0) + work_s[operator.name]
        return self._placement.stretch(by_component, nodes)

    def parallelism(self) -> dict[str, int]:
        """Processors that components were given; those of a sum too large wait for slots."""
        return dict(self._wanted) if self._apart else {}

    def _assign(self, action: SetParallelism) -> Outcome:
        if not self._apart:
            return Outcome(action, False, self.unavailable()[action.NAME])
        known = {name: n for name, n in action.parallelism.items() if name in self._wanted}
        self._wanted |= {name: max(1, processors) for name, processors in known.items()}
        self.cluster.release(self._fit())
        return Outcome(action, True, "as far as there are slots")

    def _fit(self) -> float:
        """Hand out the slots there are; returns when slots that were taken away are idle."""
        if isinstance(self._engine, TimeSharing):
            return self._engine.busy_until_s
        slots = self.cluster.processors(self.now_s())
        fits = sum(self._wanted.values()) <= slots
        return self._engine.resize(self._wanted if fits else divided(slots, self._wanted))

    @property
    def busy_until_s(self) -> float:
        """When the batch under way ends, where processors are shared in time."""
        engine = self._engine
        return engine.busy_until_s if isinstance(engine, TimeSharing) else engine.now_s

    @property
    def held_rows(self) -> int:
        """Rows that arrived and are not results yet."""
        return self._engine.held_rows

    def _components(self, period_s: float, known: bool) -> tuple[ComponentObservation, ...]:
        if isinstance(self._engine, TimeSharing):
            processors = self.cluster.processors(self.now_s())
            seen = components_together(self.network, self._tally, period_s, processors, known)
            if self._placement is None:
                return seen
            placed = self._placement
            return tuple(replace(c, key_groups=placed.observed(c.name, c.busy_s)) for c in seen)
        stations = self._engine.stations
        return components_apart(
            self.network,
            self._tally,
            period_s,
            {name: station.servers for name, station in stations.items()},
            {name: station.queued_rows for name, station in stations.items()},
            self.scenario.cluster.cores,
            self._engine.stretch,
        )
