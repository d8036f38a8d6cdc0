"""The latency of linear-road gadgets under each plan (Guo and Zhou 2017, s. 6.3, Table 1).

A fluid simulation, minute by minute: each component has instances in proportion to its work, which
share the processors of 30 nodes; its key groups are placed on them anew every 1/f minutes. A row is
served by the operators of its path and waits at each component as at a queue of that node's load. A
row that crosses to another node costs work to send and to receive, and time on the network. While a
key group's state moves, its rows wait. Where the paper is silent, the numbers below were chosen
once, before the first run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from examples.linear_road import KEYS, STREAMS
from experiments.fusion.trials.placement import place_instances
from experiments.fusion.trials.road_queues import STATE_ROWS, WORK_S, Instances, Nodes
from experiments.fusion.workloads.random_topologies import group_shares
from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.graph import (
    OperatorGraph,
    OperatorStatistics,
    StreamStatistics,
    operator_graph,
)
from penstock.fusion.planner import Algorithm, decide_fusion
from penstock.fusion.rebalancing import RebalancingRule
from penstock.model.observation import Floats

BASELINE = "baseline"  # every operator by itself, its instances placed by a sparse cut
FUSED: tuple[Algorithm, ...] = ("greedy", "mwsc")
PLANS = (*FUSED, BASELINE)
INTERVALS_MIN = (1, 2, 5, 10)
RATE_PER_S = 10_000.0  # of the reports on each expressway, as in s.6.2
SELECTIVITY = {
    "positions": 1.0, "speeds": 0.5, "segments": 0.1, "accidents": 0.02, "tolls": 1.0,
    "traffic": 0.2,
}  # fmt: skip
CROSSING_S = 40e-6  # to send and receive it
HOP_S = 0.002  # on the network
UTILISATION = 0.6  # of all processors if every operator were apart
NODES = 30  # the paper's virtual machines
SAMPLES = 40  # rows of each path and minute
LATE_S = 1.0  # only a queue that grows for minutes makes a row wait so long
PATHS = (("positions", "speeds", "segments", "tolls"), ("positions", "traffic"))


@dataclass(frozen=True)
class RoadSetting:
    """How large the network is; the paper's by default."""

    vertices: int = 10
    gadgets: int = 30
    minutes: int = 60
    groups: int = 1024  # many for each instance, so that no single one decides
    measured_groups: int = 64  # in the statistics that plans are made from


QUICK_ROADS = RoadSetting(5, 6, 20, 256, 16)


@dataclass(frozen=True)
class Latency:
    """Latency in milliseconds of one plan and adaptation interval."""

    plan: str
    interval_min: int
    mean: float
    median: float
    p95: float
    worst: float
    late_share: float  # of the rows, those that wait longer than LATE_S
    mean_of_others: float
    heaviest_group: float  # most processors that one key group needed in a minute
    crossing: float  # of all rows between operators, those that go to another node


def latencies(seed: int, setting: RoadSetting) -> list[Latency]:
    """All plans and intervals on one random network."""
    rng = np.random.default_rng([seed, 63])
    network = _Network(rng, setting)
    costs = network.costs()
    alone: list[tuple[int, ...]] = [(number,) for number in range(len(network.names))]
    plans: dict[str, list[tuple[int, ...]]] = {BASELINE: alone}
    plans |= {name: network.components(costs, name) for name in FUSED}
    return [
        network.latency(
            plan, parts, crossing_share(costs, parts), interval, np.random.default_rng([seed, 64])
        )
        for plan, parts in plans.items()
        for interval in INTERVALS_MIN
    ]


def crossing_share(costs: Costs, parts: Sequence[tuple[int, ...]]) -> float:
    """Rows that cross nodes, of those between components whose instances a sparse cut places."""
    graph = costs.graph
    home = np.empty(graph.size, dtype=np.int64)
    for number, part in enumerate(parts):
        home[list(part)] = number
    between = home[graph.upstream] != home[graph.downstream]
    merged = OperatorGraph(
        names=tuple(map(str, range(len(parts)))),
        keys=((),) * len(parts),
        upstream=home[graph.upstream[between]],
        downstream=home[graph.downstream[between]],
        stream_rows=graph.stream_rows[between],
        input_rows=np.stack([graph.input_rows[list(part)].sum(axis=0) for part in parts]),
        state_rows=np.stack([graph.state_rows[list(part)].sum(axis=0) for part in parts]),
    )
    if not merged.total_rows > 0:
        return 0.0
    per_minute = RebalancingRule(capacity_rows=UTILISATION / WORK_S * 60)
    placed = place_instances(Costs(merged, per_minute), NODES)
    return placed.communication_cost / merged.total_rows


class _Network:
    """Expressways between random vertices, each with the operators of a gadget."""

    def __init__(self, rng: np.random.Generator, setting: RoadSetting) -> None:
        self.setting = setting
        ends = np.array([rng.choice(setting.vertices, 2, False) for _ in range(setting.gadgets)])
        ends.sort(axis=1)  # from lower to higher: a network without loops
        self.order = np.argsort(ends[:, 0], kind="stable")
        self.names = [f"{o}{g}" for g in range(setting.gadgets) for o in KEYS]
        place = {name: n for n, name in enumerate(self.names)}
        streams = [(f"{u}{g}", f"{d}{g}") for g in range(setting.gadgets) for u, d in STREAMS]
        streams += [
            (f"traffic{a}", f"traffic{b}")
            for a in range(setting.gadgets)
            for b in range(setting.gadgets)
            if ends[a, 1] == ends[b, 0]
        ]
        self.streams = [(place[u], place[d]) for u, d in streams]
        self.rate_in, self.stream_rate = self._rates(place)
        self.shares = np.stack(
            [
                group_shares(rng, setting.minutes, setting.groups, True)
                for _ in range(setting.gadgets)
            ]
        )
        self.poisson = rng.poisson(RATE_PER_S * 60, (setting.gadgets, setting.minutes)) / (
            RATE_PER_S * 60
        )

    def _rates(self, place: dict[str, int]) -> tuple[Floats, Floats]:
        rate_in = np.zeros(len(self.names))
        for gadget in range(self.setting.gadgets):
            rate_in[place[f"positions{gadget}"]] = RATE_PER_S
        fan: dict[int, int] = {}
        for up, _ in self.streams:
            fan[up] = fan.get(up, 0) + 1
        made = np.zeros(len(self.streams))
        within = {o: n for n, o in enumerate(KEYS)}
        rank = {g: n for n, g in enumerate(self.order.tolist())}

        def turn(stream: int) -> tuple[int, int]:
            up = self.names[self.streams[stream][0]]
            name = next(o for o in KEYS if up.startswith(o))
            return (rank[int(up.removeprefix(name))], within[name])

        for number in sorted(range(len(self.streams)), key=turn):
            up, down = self.streams[number]
            name = next(o for o in KEYS if self.names[up].startswith(o))
            # A vehicle leaves by one of the roads; all else goes to every operator that asks.
            split = fan[up] if name == "traffic" else 1
            made[number] = rate_in[up] * SELECTIVITY[name] / split
            rate_in[down] += made[number]
        return rate_in, made

    def _gadget(self, operator: int) -> int:
        return operator // len(KEYS)

    def costs(self) -> Costs:
        """The statistics of all minutes."""
        operators = []
        shape = (len(self.shares), self.setting.minutes, -1, self.setting.measured_groups)
        measured = self.shares.reshape(shape).sum(axis=2)
        for number, name in enumerate(self.names):
            gadget = self._gadget(number)
            key = tuple(
                k if k == "vehicle" else f"{k}{gadget}" for k in KEYS[name.rstrip("0123456789")]
            )
            state = None if not key else STATE_ROWS * measured[gadget]
            operators.append(OperatorStatistics(name, key, state))
        streams = [
            StreamStatistics(self.names[u], self.names[d], rate * 60 * measured[self._gadget(u)])
            for (u, d), rate in zip(self.streams, self.stream_rate.tolist(), strict=True)
        ]
        return Costs(operator_graph(operators, streams))

    def components(self, costs: Costs, algorithm: Algorithm) -> list[tuple[int, ...]]:
        """Members of each component by an algorithm."""
        decision = decide_fusion(costs, algorithm, FusionLimits(max_pool=3_000))
        place = {name: n for n, name in enumerate(self.names)}
        return [tuple(place[o] for o in part.operators) for part in decision.plan.components]

    def latency(
        self, name: str, parts: Sequence[tuple[int, ...]], crossing: float, interval: int,
        rng: np.random.Generator,
    ) -> Latency:  # fmt: skip
        """Statistics over rows of all paths and minutes.

        `crossing` is the share of the rows between components that go to another node.
        """
        home = {member: number for number, part in enumerate(parts) for member in part}
        work = np.zeros(len(parts))
        for operator, rate in enumerate(self.rate_in.tolist()):
            work[home[operator]] += rate * WORK_S
        between = 0.0
        for (up, down), rate in zip(self.streams, self.stream_rate.tolist(), strict=True):
            if home[up] != home[down]:
                between += rate
                work[home[up]] += rate * crossing * CROSSING_S / 2
                work[home[down]] += rate * crossing * CROSSING_S / 2
        nodes = Nodes(NODES, self._processors() / NODES)
        queues = [
            Instances(work[n], nodes, UTILISATION, self._shares_of(part), len(part), interval)
            for n, part in enumerate(parts)
        ]
        found: list[Floats] = []
        for minute in range(self.setting.minutes):
            for number, queue in enumerate(queues):
                queue.pass_minute(minute, float(self._swing(parts[number], minute)))
            nodes.pass_minute()
            found += [
                self._sample(gadget, path, minute, home, queues, crossing, rng)
                for gadget in range(self.setting.gadgets)
                for path in PATHS
            ]
        all_ms = np.concatenate(found) * 1e3
        late = all_ms > LATE_S * 1e3
        return Latency(
            name, interval, float(all_ms.mean()), float(np.median(all_ms)),
            float(np.percentile(all_ms, 95)), float(all_ms.max()), float(late.mean()),
            float(all_ms[~late].mean()), max(queue.heaviest for queue in queues),
            crossing * between / float(self.stream_rate.sum()),
        )  # fmt: skip

    def _processors(self) -> float:
        """Processors of all plans alike: what every operator by itself needs if all rows cross."""
        work = self.rate_in.sum() * WORK_S + self.stream_rate.sum() * CROSSING_S
        return float(work) / UTILISATION

    def _shares_of(self, part: Sequence[int]) -> Floats:
        weights = np.array([self.rate_in[o] for o in part]) + 1e-9
        shares = np.stack([self.shares[self._gadget(o)] for o in part])
        return np.asarray(np.tensordot(weights / weights.sum(), shares, 1))

    def _swing(self, part: Sequence[int], minute: int) -> float:
        return float(np.mean([self.poisson[self._gadget(o), minute] for o in part]))

    def _sample(
        self, gadget: int, path: Sequence[str], minute: int, home: dict[int, int],
        queues: list[Instances], crossing: float, rng: np.random.Generator,
    ) -> Floats:  # fmt: skip
        first = gadget * len(KEYS)
        within = {o: n for n, o in enumerate(KEYS)}
        passed = [home[first + within[o]] for o in path]
        groups = rng.choice(self.setting.groups, SAMPLES, p=self.shares[gadget, minute])
        total = np.zeros(SAMPLES)
        for number in dict.fromkeys(passed):
            total += queues[number].delays(groups, passed.count(number), rng)
        hops = len(dict.fromkeys(passed)) - 1
        return total + HOP_S * rng.binomial(hops, min(crossing, 1.0), SAMPLES)
