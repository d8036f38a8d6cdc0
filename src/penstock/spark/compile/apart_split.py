"""One topology as several, a part for each component, joined by channels."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
from pyspark.sql.types import StructType

from penstock.errors import InvalidTopology
from penstock.model.channels import FromChannel
from penstock.model.plan import Component
from penstock.model.sinks import ToChannel
from penstock.model.topology import Topology
from penstock.spark.channels.publishing import schema_json
from penstock.spark.compile.inspection import Inspection
from penstock.spark.handles.analysed_plan import DELAY
from penstock.spark.sources.running.channel import WINDOW
from penstock.spark.sources.running.kinds import running_source


@dataclass(frozen=True)
class Part:
    """A component as a topology of its own; `inputs` maps its channel sources to operators."""

    component: Component
    topology: Topology
    inputs: dict[str, str]

    @property
    def foreign(self) -> tuple[str, ...]:
        """Sources that do not count what arrives."""
        return tuple(
            source.name
            for source in self.topology.sources
            if not running_source(source).counts_arrivals
        )

    @property
    def obeys_tasks(self) -> bool:
        """Whether all its sources are read by as many tasks as is ordered."""
        return all("tasks" in running_source(s).orders for s in self.topology.sources)

    @property
    def query(self) -> str:
        """The name of its query."""
        return self.topology.name


class Splitter:
    """Makes the parts of a topology."""

    def __init__(
        self,
        topology: Topology,
        inspection: Inspection,
        components: tuple[Component, ...],
        place: Callable[[str], Path],
        max_rows: int | None = None,
    ) -> None:
        self._topology, self._inspection, self._components = topology, inspection, components
        self._place, self._max_rows = place, max_rows
        self._home = {op: one.name for one in components for op in one.operators}

    def channels(self) -> dict[str, tuple[str, ...]]:
        """Operators whose rows go through a channel, each with the components that read it."""
        readers: dict[str, dict[str, None]] = {}
        for part in self.parts():
            for operator in part.inputs.values():
                readers.setdefault(operator, {})[part.component.name] = None
        return {operator: tuple(names) for operator, names in readers.items()}

    def edges(self) -> tuple[tuple[str, str], ...]:
        """Components that feed components, loops included."""
        return tuple(
            (self._home[operator], reader)
            for operator, readers in self.channels().items()
            for reader in readers
        )

    def parts(self) -> list[Part]:
        """One for each component, upstreams first."""
        return [self._part(component) for component in self._ordered()]

    def check_circles(self) -> None:
        """Rows that leave a component must not come back to it, but by a declared loop."""
        graph: nx.DiGraph[str] = nx.DiGraph(
            (self._home[upstream], self._home[operator.name])
            for operator in self._topology.operators
            for upstream in operator.upstreams
            if self._home.get(upstream, self._home[operator.name]) != self._home[operator.name]
        )
        if not nx.is_directed_acyclic_graph(graph):
            circle = [one for one, _ in nx.find_cycle(graph)]
            raise InvalidTopology(
                f"plan: run apart, component {circle[0]!r} would get back rows that it sent to "
                f"{', '.join(map(repr, circle[1:]))}; fuse these too, or less."
            )

    def check_feedback(self) -> None:
        """A loop's declared schema must be that of the operator it comes from."""
        for name, feedback in self._topology.feedbacks.items():
            declared = StructType.fromDDL(feedback.schema)
            emitted = self._inspection.types[feedback.operator]
            assert isinstance(declared, StructType)
            if schema_json(declared) != schema_json(emitted):
                raise InvalidTopology(
                    f"feedback {name!r}: schema is {declared.simpleString()}, but operator "
                    f"{feedback.operator!r} emits {emitted.simpleString()}; declare that."
                )

    def _ordered(self) -> list[Component]:
        rank = {operator.name: n for n, operator in enumerate(self._topology.ordered())}
        return sorted(self._components, key=lambda c: rank[c.operators[0]] if c.operators else -1)

    def _part(self, component: Component) -> Part:
        made = Topology(f"{self._topology.name}-{component.name}", self._topology.max_latency_s)
        inputs: dict[str, str] = {}
        members = [self._topology.find_operator(name) for name in component.operators]
        wanted = [up for one in members for up in one.upstreams] or [component.name]
        for upstream in dict.fromkeys(wanted):
            if upstream not in component.operators:
                self._read(made, component, upstream, inputs)
        for one in members:
            step = one.sql if one.sql is not None else one.function
            assert step is not None
            made.add(one.name, step, one.upstreams, key=one.key, route=one.route)
        for binding in self._topology.sinks:
            # A component that begins at a source has its name, and what that sends to sinks.
            if binding.upstream in (component.name, *component.operators):
                made.sink(binding.name, binding.upstream, binding.sink, mode=binding.output_mode)
        for name in component.operators:
            if name in self._sent():
                made.sink(f"channel_{name}", name, ToChannel(str(self._place(name))))
        return Part(component, made, inputs)

    def _read(
        self, made: Topology, component: Component, upstream: str, inputs: dict[str, str]
    ) -> None:
        source = self._topology.find_source(upstream)
        feedback = self._topology.feedbacks.get(upstream)
        if source is not None and feedback is None:
            made.source(upstream, source.reader, route=source.route)
            return
        operator = upstream if feedback is None else feedback.operator
        inputs[upstream] = operator
        # State that waits for a watermark must not see a part of what belongs together.
        late = any(
            self._inspection.operators[name].stateful or name in self._inspection.watermarked
            for name in component.operators
        )
        fields = self._inspection.types[operator].fields
        reader = FromChannel(
            str(self._place(operator)), component.name, self._max_rows,
            None if feedback is not None else self._watermark(operator), late,
            tuple(field.name for field in fields if field.metadata.get(WINDOW)),
        )  # fmt: skip
        made.source(upstream, reader)

    def _sent(self) -> set[str]:
        """Operators whose rows another component takes, or a loop."""
        crossing = {
            upstream
            for operator in self._topology.operators
            for upstream in operator.upstreams
            if upstream in self._home and self._home[upstream] != self._home[operator.name]
        }
        return crossing | {feedback.operator for feedback in self._topology.feedbacks.values()}

    def _watermark(self, operator: str) -> tuple[str, str] | None:
        """The watermark that an operator's rows carry, as its reader has to declare it again.

        Closed windows come out in the order of their ends, one published batch after the other, so
        they need no delay once more.
        """
        for field in self._inspection.types[operator].fields:
            delay_ms = field.metadata.get(DELAY)
            if delay_ms is None:
                continue
            ancestors = {operator, *nx.ancestors(self._topology.graph(), operator)}
            closed = any(
                self._inspection.operators[name].stateful
                for name in ancestors & self._inspection.operators.keys()
            )
            if closed and field.metadata.get(WINDOW):
                delay_ms = 0
            return field.name, f"{delay_ms} milliseconds"
        return None
