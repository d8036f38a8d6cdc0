"""The Observation of a period, filled from what was counted as it would be on Spark."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    Flows,
    NodeObservation,
    Observation,
    OperatorObservation,
    TaskCpu,
)
from penstock.sim.cluster import Node
from penstock.sim.network import Network
from penstock.sim.tally import Batch, OperatorTally, Tally


def observed_operators(
    tallies: Mapping[str, OperatorTally], period_s: float, known: bool
) -> tuple[OperatorObservation, ...]:
    """Rows over each operator's edges per second; NaN when nothing reported in the period."""
    if not known:
        return tuple(OperatorObservation(name, math.nan, math.nan) for name in tallies)
    return tuple(
        OperatorObservation(name, tally.served_rows / period_s, tally.emitted_rows / period_s)
        for name, tally in tallies.items()
    )


def observed_batches(batches: Sequence[Batch]) -> BatchObservation:
    """Means over the batches that ended in a period; NaN when none did."""
    if not batches:
        return BatchObservation(0, math.nan, math.nan, math.nan)
    return BatchObservation(
        len(batches),
        float(np.mean([batch.duration_s for batch in batches])),
        float(np.mean([batch.overhead_s for batch in batches])),
        float(np.mean([batch.rows for batch in batches])),
    )


@dataclass
class BatchRate:
    """The rate that batches show once they are over, and how old it is then, as on Spark."""

    formed_s: float = math.nan  # when the newest of them was, whose rows had come by then
    rate_per_s: float = math.nan

    def saw(self, batches: Sequence[Batch]) -> None:
        """Batches that ended in a period; the first of all shows no rate."""
        if not batches:
            return
        since_s, counted = self.formed_s, batches
        if math.isnan(since_s):
            since_s, counted = batches[0].start_s, batches[1:]
        self.formed_s = batches[-1].start_s
        if self.formed_s > since_s:
            self.rate_per_s = sum(batch.rows for batch in counted) / (self.formed_s - since_s)

    def shown(self, seen: Observation) -> Observation:
        """An observation with that rate in place of what really arrived."""
        if math.isnan(self.rate_per_s) or not seen.arrival_rate_per_s > 0:
            return seen
        part = self.rate_per_s / seen.arrival_rate_per_s
        components = (
            replace(one, arrival_rate_per_s=part * one.arrival_rate_per_s)
            for one in seen.components
        )
        return replace(
            seen, arrival_rate_per_s=self.rate_per_s, components=tuple(components),
            rate_age_s=seen.at_s - self.formed_s,
        )  # fmt: skip


def observed_nodes(nodes: Sequence[Node], busy_s: float) -> tuple[NodeObservation, ...]:
    """Nodes that are there, with the busy time divided evenly over their slots."""
    slots = sum(node.slots for node in nodes)
    return tuple(
        NodeObservation(node.name, node.slots, busy_s * node.slots / slots, node.draining)
        for node in nodes
    )


def components_together(
    network: Network, tally: Tally, period_s: float, processors: int, known: bool
) -> tuple[ComponentObservation, ...]:
    """Components that share all processors in time; rates are offered, as on Spark.

    A component's rows for each row that the finished batches took, times the rate of the sources.
    """
    taken = sum(batch.rows for batch in tally.batches)
    offered = tally.arrived_rows / taken if taken else 0.0
    groups = dict[str, list[str]]()
    for operator in network.operators.values():
        groups.setdefault(network.component_of(operator), []).append(operator.name)
    observed = []
    for name, members in groups.items():
        rows = sum(tally.operators[entry].served_rows for entry in _entries(network, members))
        work_s = sum(tally.operators[member].work_s for member in members)
        observed.append(
            ComponentObservation(
                name=name,
                operators=tuple(members),
                arrival_rate_per_s=offered * rows / period_s if known else math.nan,
                service_time_s=work_s / rows if rows else math.nan,
                parallelism=processors,
                busy_s=sum(tally.operators[member].busy_s for member in members),
                service_scv=_fused_scv(network, members, tally, work_s, rows),
                served_rate_per_s=offered * rows / period_s if known else math.nan,
            )
        )
    return tuple(observed)


def components_apart(
    network: Network,
    tally: Tally,
    period_s: float,
    servers: Mapping[str, int],
    queued_rows: Mapping[str, int],
    cores: int = 0,
    stretch: float = 1.0,
) -> tuple[ComponentObservation, ...]:
    """Operators that each have their own processors and queue, and may share cores."""
    used = {name: counts.busy_s / period_s / stretch for name, counts in tally.operators.items()}
    return tuple(
        ComponentObservation(
            name=name,
            operators=(name,),
            arrival_rate_per_s=counts.offered_rows / period_s,
            service_time_s=counts.work_s / counts.served_rows if counts.served_rows else math.nan,
            parallelism=servers[name],
            busy_s=counts.busy_s,
            backlog_rows=float(queued_rows[name]),
            service_scv=network.operators[name].service.variation,
            served_rate_per_s=counts.served_rows / period_s,
            cpu=_cpu(used, name, cores, stretch),
        )
        for name, counts in tally.operators.items()
    )


def _cpu(used: Mapping[str, float], name: str, cores: int, stretch: float) -> tuple[TaskCpu, ...]:
    """A task gets its share of a core; on average the other operators use the rest like this."""
    if not cores:
        return ()
    beside = min(1.0, (sum(used.values()) - used[name]) / cores)
    return (TaskCpu(1.0 / stretch, (beside,) if beside > 0 else ()),)


def observed_flows(network: Network, tally: Tally, period_s: float, together: bool) -> Flows:
    """Rows between components; run together, as many as are offered, like their arrivals."""
    factor = 1.0 / period_s
    if together:
        taken = sum(batch.rows for batch in tally.batches)
        factor *= tally.arrived_rows / taken if taken else math.nan
    sent = dict.fromkeys(network.component_edges(), 0)
    for name, counts in tally.operators.items():
        upstream = network.component_of(network.operators[name])
        for target, rows in counts.sent_rows.items():
            edge = (upstream, network.component_of(network.operators[target])) if target else None
            if edge in sent:
                sent[edge] += rows
    return Flows(tuple(sent), tuple(factor * rows for rows in sent.values()))


def _entries(network: Network, members: Sequence[str]) -> list[str]:
    """Operators of a component that take rows from outside it."""
    inside = set(members)
    return [
        member
        for member in members
        if any(upstream.name not in inside for upstream in network.operators[member].upstreams)
    ]


def _fused_scv(
    network: Network, members: Sequence[str], tally: Tally, work_s: float, rows: int
) -> float:
    """Squared coefficient of variation of a row's time over all operators of a component."""
    if not rows or not work_s:
        return 1.0
    variance = 0.0
    for member in members:
        service = network.operators[member].service
        variance += tally.operators[member].served_rows * service.variation * service.mean_s**2
    return (variance / rows) / (work_s / rows) ** 2
