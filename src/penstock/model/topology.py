"""A topology as its user declares it: sources, operators with keys, sinks, a latency bound.

Nothing here knows Spark: an operator is a function (or SQL text) that is only called when the
topology is built, so the same declaration can be checked, drawn and simulated without a session.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import networkx as nx

from penstock.errors import InvalidTopology, documented
from penstock.model.channels import Feedback
from penstock.model.decision import USUAL_SHARE
from penstock.model.directories import check_directories
from penstock.model.durations import parse_duration_s
from penstock.model.route import AUTO, Route
from penstock.model.sinks import OUTPUT_MODES, Sink

LEAST_LATENCY_S = 0.05  # a micro-batch that does nothing takes longer than this

Function = TypeVar("Function", bound=Callable[..., Any])
Names = str | Iterable[str]


@dataclass(frozen=True)
class Source:
    """An input: a description that spark/ knows how to read, or a function of the session."""

    name: str
    reader: Any
    route: Route | None = None  # how its rows are spread over tasks; None: as its lanes read them


@dataclass(frozen=True)
class Operator:
    """A named step from DataFrames to a DataFrame.

    `key` is None when it is to be inferred from Spark's analysed plan. `separate` makes it the
    first of a component where components run apart. `reads` and `writes` are the columns a Python
    function uses, and those it adds, changes or drops: only then may another order be proposed.
    `cheaper` is a form of the step that costs less and answers less well; it is a last resort.
    `forms` are further forms of the step by name, which answer alike and cost more or less.
    `route` says how the rows of a stateless step are spread over tasks behind a shuffle.
    `cpu` is the share of a CPU that each of its tasks has reserved and `memory` the bytes for the
    state of each, for policies that plan by them.
    """

    name: str
    upstreams: tuple[str, ...]
    function: Callable[..., Any] | None = None
    sql: str | None = None
    key: tuple[str, ...] | None = None
    separate: bool = False
    reads: frozenset[str] | None = None
    writes: frozenset[str] | None = None
    cheaper: Callable[..., Any] | str | None = None
    cpu: float | None = None
    memory: float | None = None
    forms: tuple[tuple[str, Callable[..., Any] | str], ...] = ()
    route: Route | None = None

    @property
    def has_forms(self) -> bool:
        """Whether it can run in another form than it was declared in."""
        return self.cheaper is not None or bool(self.forms)

    @property
    def other_forms(self) -> dict[str, "Operator"]:
        """The operator as it is in each of its other forms, by the form's id, the cheaper first."""
        found = {} if self.cheaper is None else {self.name: self.in_cheaper_form}
        return found | {form_id(self.name, name): self._made_by(step) for name, step in self.forms}

    @property
    def in_cheaper_form(self) -> "Operator":
        """The operator as it is while its cheaper form is in use."""
        assert self.cheaper is not None
        return self._made_by(self.cheaper)

    def _made_by(self, step: Callable[..., Any] | str) -> "Operator":
        if isinstance(step, str):
            return replace(self, function=None, sql=step)
        return replace(self, function=step, sql=None)


def form_id(operator: str, form: str) -> str:
    """One name for an operator in one of its equivalent forms.

    >>> form_id("look_up", "index")
    'look_up~index'
    """
    return f"{operator}~{form}"


@dataclass(frozen=True)
class SinkBinding:
    """A sink and the operator (or source) it takes its rows from."""

    name: str
    upstream: str
    sink: Sink
    output_mode: str = "append"
    max_latency_s: float | None = None  # None: that of the topology


class Topology:
    """The graph of operators, with sources, sinks, a latency bound and the share that keeps it.

    >>> road = Topology("road", max_latency="5s")
    >>> road.max_latency_s
    5.0
    """

    def __init__(
        self, name: str, max_latency: str | float, share: float = USUAL_SHARE
    ) -> None:  # fmt: skip
        if not isinstance(name, str) or not name or "/" in name or name.startswith("."):
            raise InvalidTopology(
                f"Topology(name) is {name!r}; give a text without '/' or leading dot."
            )
        self.name = name
        self._max_latency_s = _bound_s(max_latency, f"topology {name!r}")
        if isinstance(share, bool) or not (isinstance(share, float) and 0.5 <= share <= 0.9999):
            raise InvalidTopology(
                f"topology {name!r}: share is {share!r}; give a number from 0.5 to 0.9999, the "
                "share of results that must keep max_latency."
            )
        self.share = share
        self._sources: dict[str, Source] = {}
        self._operators: dict[str, Operator] = {}
        self._sinks: dict[str, SinkBinding] = {}

    @property
    def max_latency_s(self) -> float:
        """The bound that rules the plan: the strictest of those of its sinks."""
        return min(self.sink_bounds_s.values(), default=self._max_latency_s)

    @property
    def sink_bounds_s(self) -> dict[str, float]:
        """The bound of each sink: its own, or that of the topology."""
        usual_s = self._max_latency_s
        return {
            one.name: usual_s if one.max_latency_s is None else one.max_latency_s
            for one in self._sinks.values()
        }

    @property
    def sources(self) -> tuple[Source, ...]:
        """Sources in the order they were declared."""
        return tuple(self._sources.values())

    @property
    def operators(self) -> tuple[Operator, ...]:
        """Operators in the order they were declared; see `ordered` for upstreams first."""
        return tuple(self._operators.values())

    @property
    def sinks(self) -> tuple[SinkBinding, ...]:
        """Sinks in the order they were declared."""
        return tuple(self._sinks.values())

    @property
    def variants(self) -> tuple[str, ...]:
        """Operators that have a cheaper form."""
        return tuple(o.name for o in self.operators if o.cheaper is not None)

    @property
    def forms(self) -> dict[str, tuple[str, ...]]:
        """Operators that have equivalent forms, and how these are called."""
        return {o.name: tuple(name for name, _ in o.forms) for o in self.operators if o.forms}

    def reserved_cpu(self, operators: Iterable[str]) -> float:
        """What a task that runs these has reserved of a CPU; NaN where nothing was declared."""
        found = [o.cpu for o in self.operators if o.name in set(operators) and o.cpu is not None]
        return min(1.0, sum(found)) if found else float("nan")

    def reserved_memory_bytes(self, operators: Iterable[str]) -> float:
        """What a task of these has reserved for state; NaN where nothing was declared."""
        named = set(operators)
        found = [o.memory for o in self.operators if o.name in named and o.memory is not None]
        return sum(found) if found else float("nan")

    @property
    def sink_names(self) -> frozenset[str]:
        """Names of the sinks."""
        return frozenset(self._sinks)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Who feeds whom, upstream first: operators by their sources and operators, then sinks."""
        inner = [(upstream, o.name) for o in self.operators for upstream in o.upstreams]
        return tuple(inner + [(sink.upstream, sink.name) for sink in self.sinks])

    def find_source(self, name: str) -> Source | None:
        """The source of that name, if there is one."""
        return self._sources.get(name)

    def find_operator(self, name: str) -> Operator:
        """The operator of that name."""
        return self._operators[name]

    def source(self, name: str, reader: Any, *, route: Route | str | None = None) -> str:
        """Declare an input; returns its name, to be used as an upstream.

        `route` spreads its rows over the tasks of the stateless operators that follow; "auto" has
        it follow from what the query groups by.
        """
        self._claim(name, "source")
        route = Route(AUTO) if route == AUTO else route
        if route is not None and not isinstance(route, Route):
            raise InvalidTopology(
                f"source {name!r}: route is {route!r}; give a Route, as in "
                "Route('frequency-aware', key='vehicle'), or \"auto\"."
            )
        self._sources[name] = Source(name, reader, route)
        return name

    def feedback(self, name: str, operator: str, schema: str) -> str:
        """Declare what `operator` emits as an input of operators before it: a loop, only apart.

        `schema` is that of the operator's rows, as in "item BIGINT, sign BIGINT".
        """
        self._claim(name, "feedback")
        self._sources[name] = Source(name, Feedback(operator, schema))
        return name

    @property
    def feedbacks(self) -> dict[str, Feedback]:
        """The sources that close loops."""
        readers = {source.name: source.reader for source in self._sources.values()}
        return {name: reader for name, reader in readers.items() if isinstance(reader, Feedback)}

    def operator(
        self,
        upstream: Names,
        *,
        key: Names | None = None,
        name: str | None = None,
        separate: bool = False,
        reads: Iterable[str] | None = None,
        writes: Iterable[str] | None = None,
        cheaper: Callable[..., Any] | str | None = None,
        cpu: float | None = None,
        memory: float | None = None,
        forms: Mapping[str, Callable[..., Any] | str] | None = None,
        route: Route | None = None,
    ) -> Callable[[Function], Function]:
        """Declare a function of the upstreams' DataFrames as an operator (a decorator).

        `cheaper`, `cpu`, `memory`, `forms` and `route` are as in `add`. `reads` and `writes` name
        the columns of a Python step that Spark cannot look into.
        """

        def declare(function: Function) -> Function:
            called = self.add(
                name or function.__name__, function, upstream, key=key, separate=separate,
                cheaper=cheaper, cpu=cpu, memory=memory, forms=forms,
                route=route,
            )  # fmt: skip
            if reads is not None or writes is not None:
                self._operators[called] = replace(
                    self._operators[called],
                    reads=frozenset(reads or ()),
                    writes=frozenset(writes or ()),
                )
            return function

        return declare

    def add(
        self,
        name: str,
        step: Callable[..., Any] | str,
        upstream: Names,
        *,
        key: Names | None = None,
        separate: bool = False,
        cheaper: Callable[..., Any] | str | None = None,
        cpu: float | None = None,
        memory: float | None = None,
        forms: Mapping[str, Callable[..., Any] | str] | None = None,
        route: Route | None = None,
    ) -> str:
        """Declare an operator given as a function, or as SQL text that names its upstreams.

        `cheaper` is another form of it, with the same columns: it is used only while every
        processor that may be had is in use and the latency bound is missed. `cpu` is the share of a
        CPU reserved for each of its tasks, which `autoscale_plus` plans by, `memory` the bytes
        reserved for the state of each; `allocation=resource-aware` places key groups by both.
        `forms` are further forms by name that give the same rows, such as one with an index: the
        loop tries each and uses the one that costs least at the present rate. `route` spreads the
        rows of a stateless operator over tasks behind a shuffle, as that of a source does before.
        """
        self._claim(name, "operator")
        if not (cheaper is None or callable(cheaper) or isinstance(cheaper, str)):
            raise InvalidTopology(
                f"operator {name!r}: cheaper is {cheaper!r}; give a function DataFrame -> "
                "DataFrame or SQL text, as for the operator itself."
            )
        if route is not None and not isinstance(route, Route):
            raise InvalidTopology(
                f"operator {name!r}: route is {route!r}; give a Route, as in "
                "Route('osg', key='vehicle')."
            )
        further = _read_forms(name, forms or {})
        if cpu is not None and not (isinstance(cpu, int | float) and 0 < cpu <= 1):
            raise InvalidTopology(
                f"operator {name!r}: cpu is {cpu!r}; give the share of a CPU that a task reserves, "
                "above 0 and at most 1."
            )
        if memory is not None and not (isinstance(memory, int | float) and 0 < memory <= 1e15):
            raise InvalidTopology(
                f"operator {name!r}: memory is {memory!r}; give the bytes that a task reserves for "
                "its state, above 0 and at most 1e15."
            )
        upstreams = _names(upstream, f"operator {name!r}: upstream")
        keys = None if key is None else _names(key, f"operator {name!r}: key")
        declared = Operator(
            name, upstreams, key=keys, separate=separate, cheaper=cheaper, cpu=cpu, memory=memory,
            forms=further, route=route,
        )  # fmt: skip
        if isinstance(step, str):
            self._operators[name] = replace(declared, sql=step)
        elif callable(step):
            self._operators[name] = replace(declared, function=step)
        else:
            raise InvalidTopology(
                f"operator {name!r}: step is {step!r}; give a function DataFrame -> DataFrame or "
                "SQL text."
            )
        return name

    def sink(
        self, name: str, upstream: str, sink: Sink, *, mode: str = "append",
        max_latency: str | float | None = None,
    ) -> str:  # fmt: skip
        """Send an upstream's rows to a sink, which may have a latency bound of its own."""
        self._claim(name, "sink")
        if not isinstance(sink, Sink):
            raise InvalidTopology(
                f"sink {name!r}: sink is {sink!r}; give Files, ForeachBatch, Console, Memory or "
                "ToChannel."
            )
        if mode not in OUTPUT_MODES:
            raise InvalidTopology(
                f"sink {name!r}: mode is {mode!r}; allowed: {', '.join(OUTPUT_MODES)}."
            )
        bound_s = None if max_latency is None else _bound_s(max_latency, f"sink {name!r}")
        self._sinks[name] = SinkBinding(name, upstream, sink, mode, bound_s)
        return name

    def ordered(self) -> tuple[Operator, ...]:
        """Operators with every upstream before its downstreams; the declared order breaks ties."""
        rank = {name: position for position, name in enumerate(self._operators)}
        graph = self.graph()
        order = nx.lexicographical_topological_sort(graph, key=lambda node: rank.get(node, -1))
        return tuple(self._operators[node] for node in order if node in self._operators)

    def graph(self) -> "nx.DiGraph[str]":
        """Sources, operators and sinks as a directed graph."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from([*self._sources, *self._operators, *self._sinks])
        for operator in self._operators.values():
            graph.add_edges_from((upstream, operator.name) for upstream in operator.upstreams)
        graph.add_edges_from((binding.upstream, binding.name) for binding in self._sinks.values())
        return graph

    def rewired(self, operators: Iterable[Operator], sinks: Iterable[SinkBinding]) -> "Topology":
        """The same sources with other operators between them and the sinks."""
        made = Topology(self.name, self._max_latency_s, self.share)
        made._sources = dict(self._sources)
        made._operators = {operator.name: operator for operator in operators}
        made._sinks = {sink.name: sink for sink in sinks}
        return made

    def promising(
        self, name: str, max_latency_s: float | None = None, share: float | None = None
    ) -> "Topology":
        """The same under another name, and another bound or share where they are given."""
        bound_s = self._max_latency_s if max_latency_s is None else max_latency_s
        made = Topology(name, bound_s, self.share if share is None else share)
        made._sources, made._operators = dict(self._sources), dict(self._operators)
        made._sinks = dict(self._sinks)
        return made

    def rerouted(self, routes: Mapping[str, Route]) -> "Topology":
        """The same with other routes of these sources."""
        made = self.rewired(self._operators.values(), self._sinks.values())
        made._sources |= {
            name: replace(self._sources[name], route=route) for name, route in routes.items()
        }
        return made

    @documented("index")
    def check(self) -> None:
        """Refuse what can be refused without Spark, each with a sentence that names the field."""
        if not self._sources:
            raise InvalidTopology(f"topology {self.name!r} has no source; add one with source().")
        if not self._sinks:
            raise InvalidTopology(f"topology {self.name!r} has no sink; add one with sink().")
        known = [*self._sources, *self._operators]
        for name, feedback in self.feedbacks.items():
            if feedback.operator not in self._operators:
                raise InvalidTopology(
                    f"feedback {name!r}: operator {feedback.operator!r} is unknown; known: "
                    f"{', '.join(self._operators) or 'none'}."
                )
        for operator in self._operators.values():
            for upstream in operator.upstreams:
                if upstream not in known:
                    raise InvalidTopology(
                        f"operator {operator.name!r}: upstream {upstream!r} is unknown; known: "
                        f"{', '.join(known)}."
                    )
        for binding in self._sinks.values():
            if binding.upstream not in known:
                raise InvalidTopology(
                    f"sink {binding.name!r}: upstream {binding.upstream!r} is unknown; known: "
                    f"{', '.join(known)}."
                )
        self._check_paths()
        uses = [(f"source {name!r}", source.reader) for name, source in self._sources.items()]
        uses += [(f"sink {name!r}", binding.sink) for name, binding in self._sinks.items()]
        check_directories(uses)

    def _check_paths(self) -> None:
        graph = self.graph()
        if not nx.is_directed_acyclic_graph(graph):
            edges = nx.find_cycle(graph)
            path = " -> ".join([edges[0][0], *(edge[1] for edge in edges)])
            raise InvalidTopology(
                f"operator {edges[0][1]!r}: upstream {edges[0][0]!r} closes the cycle {path}; a "
                "loop must be declared with feedback(), and run apart."
            )
        ends = {*self._sinks, *(feedback.operator for feedback in self.feedbacks.values())}
        for operator in self._operators.values():
            if not ends & {operator.name, *nx.descendants(graph, operator.name)}:
                raise InvalidTopology(
                    f"operator {operator.name!r} feeds no sink; send it to one with sink(), or "
                    "remove it."
                )
        for source in self._sources:
            if not any(node in self._sinks for node in nx.descendants(graph, source)):
                raise InvalidTopology(f"source {source!r} feeds no sink; connect or remove it.")

    def _claim(self, name: str, what: str) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidTopology(
                f"{what} name {name!r} must be an identifier (letters, digits, underscores)."
            )
        for kind, taken in (
            ("source", self._sources), ("operator", self._operators), ("sink", self._sinks),
        ):  # fmt: skip
            if name in taken:
                raise InvalidTopology(
                    f"{what} {name!r}: the name is taken by a {kind}; names must be unique."
                )


def _read_forms(operator: str, given: Any) -> tuple[tuple[str, Callable[..., Any] | str], ...]:
    if not isinstance(given, Mapping):
        raise InvalidTopology(
            f"operator {operator!r}: forms is {given!r}; give steps by name, as in "
            "forms={'index': with_index}."
        )
    for name, step in given.items():
        if not (isinstance(name, str) and name.isidentifier()):
            raise InvalidTopology(
                f"operator {operator!r}: forms has the name {name!r}; write letters, digits and _."
            )
        if not (callable(step) or isinstance(step, str)):
            raise InvalidTopology(
                f"operator {operator!r}: forms[{name!r}] is {step!r}; give a function DataFrame -> "
                "DataFrame or SQL text, as for the operator itself."
            )
    return tuple(given.items())


def _names(value: Names, field: str) -> tuple[str, ...]:
    if not isinstance(value, str | Iterable):
        raise InvalidTopology(f"{field} is {value!r}; give a name or several.")
    names: Sequence[str] = [value] if isinstance(value, str) else list(value)
    if not names:
        raise InvalidTopology(f"{field} is empty; name at least one.")
    for name in names:
        if not isinstance(name, str):
            raise InvalidTopology(f"{field} holds {name!r}; names must be text.")
    if len(set(names)) < len(names):
        raise InvalidTopology(f"{field} names {', '.join(names)}; name each only once.")
    return tuple(names)


def _bound_s(max_latency: str | float, whose: str) -> float:
    bound_s = parse_duration_s(max_latency, f"{whose}: max_latency")
    if bound_s < LEAST_LATENCY_S:
        raise InvalidTopology(
            f"{whose}: max_latency is {max_latency!r}; no micro-batch is faster than "
            f"{LEAST_LATENCY_S:g} s, so give at least that."
        )
    return bound_s
