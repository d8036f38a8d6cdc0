"""Several scenarios on one simulated cluster, divided among them by the arbiter every period.

A scenario's [cluster] then says how many executors it may have at least and at most. Processors
move between scenarios at once; executors that are new to the cluster take their start-up time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from penstock.config import Settings
from penstock.control.actions import SetExecutors
from penstock.control.assembly import assemble_loop, planned_limits, rooms_for
from penstock.control.controlled import Controlled
from penstock.control.from_settings import policy_of
from penstock.control.loop import Loop
from penstock.control.shared_cluster import Portion, SharedCluster
from penstock.errors import InvalidInput
from penstock.model.decision import Decision
from penstock.scaling.policies.static import Static
from penstock.sharing.claims import Division
from penstock.sim.cluster import Cluster
from penstock.sim.run import Forgetful, settings_in, simulate
from penstock.sim.scenario import ClusterSpec, Scenario
from penstock.sim.tally import Results
from penstock.sim.world import SimulatedWorld


@dataclass(frozen=True)
class Portioned:
    """What became of one scenario."""

    scenario: Scenario
    results: Results
    processor_seconds: float
    arrived_rows: int
    held_rows: int

    @property
    def in_time_share(self) -> float:
        """Share of results within the bound; NaN without results."""
        return self.results.in_time_share(self.scenario.max_latency_s)


@dataclass(frozen=True)
class Change:
    """A division that differs from the one before."""

    at_s: float
    decision: Decision[Division]


@dataclass(frozen=True)
class TogetherResult:
    """What became of all of them."""

    executors: int
    parts: tuple[Portioned, ...]
    executor_seconds: float
    changes: tuple[Change, ...] = ()


def simulate_together(
    scenarios: Sequence[Scenario],
    executors: int | None = None,
    settings: Settings | None = None,
    on_period: Callable[[float], None] | None = None,
) -> TogetherResult:
    """Run them to the end of the longest, on so many executors: as many as all may have, else."""
    total = executors_of(scenarios, executors)
    return _Together(scenarios, total, settings or Settings()).run(on_period)


def simulate_apart(scenarios: Sequence[Scenario], executors: int | None = None) -> TogetherResult:
    """The same with a fixed and equal part of the executors for each; the first get what is odd."""
    total = executors_of(scenarios, executors)
    each, odd = divmod(total, len(scenarios))
    parts = []
    for place, scenario in enumerate(scenarios):
        size = each + (place < odd)
        spec = replace(scenario.cluster, executors=size, min_executors=size, max_executors=size)
        done = simulate(replace(scenario, cluster=spec), Static())
        used_s = done.executor_seconds * scenario.cluster.slots
        parts.append(Portioned(scenario, done.results, used_s, done.arrived_rows, done.held_rows))
    used = sum(part.processor_seconds for part in parts) / scenarios[0].cluster.slots
    return TogetherResult(total, tuple(parts), used)


def executors_of(scenarios: Sequence[Scenario], executors: int | None) -> int:
    """How many the cluster may have; refuses scenarios that cannot share one."""
    names = [scenario.name for scenario in scenarios]
    for scenario in scenarios:
        if names.count(scenario.name) > 1:
            raise InvalidInput(f"scenario {scenario.name!r} is given twice; names must differ.")
        _check_alike(scenario, scenarios[0])
    least = sum(scenario.cluster.min_executors for scenario in scenarios)
    most = sum(scenario.cluster.max_executors for scenario in scenarios)
    if executors is not None and executors < least:
        raise InvalidInput(
            f"--executors is {executors}; the scenarios have min_executors of {least} in all."
        )
    return most if executors is None else executors


def _check_alike(scenario: Scenario, first: Scenario) -> None:
    if scenario.sharing != "time" or scenario.cluster.key_groups:
        raise InvalidInput(
            f"scenario {scenario.name!r} has sharing = {scenario.sharing!r} and "
            f"{scenario.cluster.key_groups} key groups; on one cluster only 'time' without key "
            "groups is simulated."
        )
    alike = {
        "cluster.slots": (scenario.cluster.slots, first.cluster.slots),
        "cluster.startup": (scenario.cluster.startup_s, first.cluster.startup_s),
        "scenario.period": (scenario.period_s, first.period_s),
    }
    for field, (value, wanted) in alike.items():
        if value != wanted:
            raise InvalidInput(
                f"{field} is {value:g} in scenario {scenario.name!r} and {wanted:g} in "
                f"{first.name!r}; on one cluster it must be the same."
            )


class _Together:
    def __init__(self, scenarios: Sequence[Scenario], executors: int, settings: Settings) -> None:
        first = scenarios[0]
        self._scenarios, self._executors = scenarios, executors
        self._slots = first.cluster.slots
        self._settings = replace(settings, period_s=first.period_s)
        self._shared = SharedCluster(executors * self._slots, self._slots)
        begin = min(executors, sum(scenario.cluster.executors for scenario in scenarios))
        self._nodes = Cluster(
            ClusterSpec(begin, 1, executors, self._slots, first.cluster.startup_s)
        )
        self._worlds = {
            one.name: SimulatedWorld(_portion(one), share=settings.share) for one in scenarios
        }
        self._loops = {one.name: self._loop(one) for one in scenarios}
        self._used = dict.fromkeys(self._worlds, 0.0)

    def _loop(self, scenario: Scenario) -> Loop:
        """A loop over a portion of the cluster, in processors."""
        world, limits = self._worlds[scenario.name], scenario.limits
        settings = settings_in(scenario, self._settings)
        limits = planned_limits(
            settings, limits.min_processors, limits.max_processors, scenario.max_latency_s,
            limits.share,
        )  # fmt: skip
        begins = scenario.cluster.executors * self._slots
        self._shared.join(scenario.name, limits, scenario.weight, begins)
        subject = Controlled(
            measurer=world,
            actuator=Portion(scenario.name, self._shared, world),
            limits=limits,
            edges=world.network.component_edges(),
            parallelism=world.parallelism(),
        )
        rooms = rooms_for(settings, subject, policy=policy_of(settings, 1))
        return assemble_loop(
            settings, subject, rooms, clock=world, history=Forgetful(),
            on_step=partial(self._shared.asked, scenario.name),
        )  # fmt: skip

    def run(self, on_period: Callable[[float], None] | None) -> TogetherResult:
        end_s = max(scenario.duration_s for scenario in self._scenarios)
        period_s, now_s, changes = self._settings.period_s, 0.0, list[Change]()
        before: dict[str, int] = {}
        while now_s < end_s - 1e-9:
            self._advance(now_s, until_s := min(end_s, now_s + period_s))
            now_s = until_s
            self._end_those_over(now_s)
            if not self._open():
                break
            for name, loop in self._loops.items():
                if name in self._open():
                    loop.step()
            decision = self._shared.settle()
            if dict(decision.plan.processors) != before:
                before = dict(decision.plan.processors)
                changes.append(Change(now_s, decision))
            self._nodes.scale(max(1, decision.plan.executors), now_s)
            busy_s = [self._worlds[name].busy_until_s for name in self._open()]
            self._nodes.release(max(busy_s, default=now_s))
            self._hand_out(now_s)
            if on_period is not None:
                on_period(now_s)
        parts = tuple(self._part(scenario) for scenario in self._scenarios)
        return TogetherResult(
            self._executors, parts, self._nodes.node_seconds(end_s), tuple(changes)
        )

    def _open(self) -> list[str]:
        now = {name: world.now_s() for name, world in self._worlds.items()}
        return [s.name for s in self._scenarios if now[s.name] < s.duration_s - 1e-9]

    def _end_those_over(self, now_s: float) -> None:
        """What a scenario had is free once it is over."""
        for scenario in self._scenarios:
            if scenario.duration_s <= now_s + 1e-9:
                self._shared.leave(scenario.name)

    def _advance(self, now_s: float, until_s: float) -> None:
        """Let time pass in all worlds, stopping where executors become live."""
        while now_s < until_s - 1e-9:
            stop_s = min(until_s, self._nodes.next_start_s(now_s))
            for name in self._open():
                world = self._worlds[name]
                self._used[name] += world.cluster.executors * (stop_s - now_s)
                world.wait_s(stop_s - world.now_s())
            now_s = stop_s
            self._hand_out(now_s)

    def _hand_out(self, now_s: float) -> None:
        """Processors that are live, as far as they were granted: nobody waits for its least."""
        live = self._nodes.processors(now_s)
        granted = {name: self._shared.member(name).granted for name in self._open()}
        has = {name: self._worlds[name].cluster.executors for name in granted}
        given = {name: min(has[name], granted[name]) for name in granted}
        for name in sorted(granted, key=lambda name: granted[name] - has[name]):
            more = min(granted[name] - given[name], max(0, live - sum(given.values())))
            given[name] += more
        for name, processors in given.items():
            if processors != has[name]:
                self._worlds[name].act(SetExecutors(max(1, processors)))

    def _part(self, scenario: Scenario) -> Portioned:
        world = self._worlds[scenario.name]
        world.observe()
        return Portioned(
            scenario, Results.joined(world.results), self._used[scenario.name],
            world.arrived_rows, world.held_rows,
        )  # fmt: skip


def _portion(scenario: Scenario) -> Scenario:
    """The scenario on processors that come and go at once."""
    spec, slots = scenario.cluster, scenario.cluster.slots
    return replace(
        scenario,
        cluster=replace(
            spec, executors=spec.executors * slots, min_executors=spec.min_executors * slots,
            max_executors=spec.max_executors * slots, slots=1, startup_s=0.0,
        ),
    )  # fmt: skip
