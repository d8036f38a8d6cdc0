"""From an inspected topology to the streaming frames behind some of its sinks.

A node that several consumers need is followed by an exchange they share, so that Spark reads its
source and runs its work once per batch. Two traps of Spark shape this:

- Spark shares equal exchanges only, and optimises each consumer down through them until they are
  no longer equal; a metric over all columns above the exchange prevents that.
- A stateful operator above a reused exchange does not see a watermark below it: it then never
  emits. So nothing watermarked is shared if state follows (what lies upstream of the watermark is
  shared instead; common_watermarks.py has the one exception), and each consumer's metric has its
  own name, so that no other exchange further up can ever be equal to one of a sibling.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import InvalidTopology
from penstock.model.topology import Operator, Topology
from penstock.spark.compile.cheaper_forms import forms_of_source, without_forms
from penstock.spark.compile.inspection import Inspection, Reading, apply_operator, read_source
from penstock.spark.compile.sharing import Sharing
from penstock.spark.handles.analysed_plan import Watermark, at_edge
from penstock.spark.handles.common_watermarks import (
    with_reminder,
    with_watermark,
    without_watermarks,
)
from penstock.spark.handles.exchange_insertion import divide_inputs
from penstock.spark.handles.plan_nodes import METRIC, PATH
from penstock.spark.routes.by_value import routed_by_value
from penstock.spark.routes.inside import dealt
from penstock.spark.sources.batch_choice import COLUMN


@dataclass(frozen=True)
class Division:
    """Where the rows of fused components are divided by their key, and by nothing else.

    `entering` are edges with an exchange of their own; `lifted` are shared nodes whose exchange
    divides by a component's key; `watermarks` are those that are defined below such an exchange,
    instead of by each consumer.
    """

    entering: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    lifted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    watermarks: dict[str, Watermark] = field(default_factory=dict)
    members: frozenset[str] = frozenset()  # operators whose rows are divided where they enter


@dataclass
class Assembler:
    """Builds frames on demand; a shared node is built once, any other once for each consumer."""

    topology: Topology
    session: SparkSession
    inspection: Inspection
    sharing: Sharing
    reading: Reading
    division: Division = field(default_factory=Division)
    # Of this query's sources, as far as they were read before: each time starts a Python process.
    sources: dict[str, DataFrame] = field(default_factory=dict)
    _shared: dict[str, DataFrame] = field(default_factory=dict)
    _below: dict[str, DataFrame] = field(default_factory=dict)  # exchanges, with a watermark
    _taken: set[str] = field(default_factory=set)

    def frame(self, node: str, consumer: str = "") -> DataFrame:
        """The rows of a node for one consumer."""
        path = f"{node}{PATH}{consumer}" if self._is_multiple(node) else node
        if node in self.sharing.shared:
            if node not in self._shared:
                self._shared[node] = self._exchanged(node)
            rows = self._shared[node]
            if node in self.division.watermarks:
                inside = consumer.partition(PATH)[0] in self.division.members
                alike = self._divide(node) if inside else None
                rows = with_reminder(rows, self._below[node], path, alike)
            return at_edge(without_forms(_observed(rows, path, barrier=True), node), node)
        frame = self._repeated(node) if node in self.sharing.unshared else self._made(node, path)
        # The rows of a lone source that is read once are counted by Spark itself.
        alone = len(self.topology.sources) == 1 and node == self.topology.sources[0].name
        lone = alone and not self._is_multiple(node)
        if self.reading.measured and not lone:
            frame = _observed(frame, path, barrier=False)
        return at_edge(frame, node)

    def _repeated(self, node: str) -> DataFrame:
        """One frame for all consumers, so that a union of theirs finds the same columns in each."""
        if node not in self._shared:
            self._shared[node] = self._made(node, node)
        return self._shared[node]

    def _is_multiple(self, node: str) -> bool:
        return node in self.sharing.shared or self.sharing.copies.get(node, 0) > 1

    def _made(self, node: str, path: str) -> DataFrame:
        source = self.topology.find_source(node)
        if source is not None:
            if node in self._taken:
                return read_source(source, self.topology, self.session, self.reading)
            self._taken.add(node)
            if node not in self.sources:
                self.sources[node] = read_source(source, self.topology, self.session, self.reading)
            return self.sources[node]
        operator = self.topology.find_operator(node)
        if operator.has_forms:
            return self._in_every_form(operator, path, {})
        inputs = [self.frame(upstream, path) for upstream in operator.upstreams]
        alone = node not in self.division.members
        if alone and operator.key is not None and not self.inspection.operators[node].shuffles:
            inputs = [_partitioned(frame, operator.key) for frame in inputs]
        if operator.route is not None:
            inputs = [dealt(inputs[0], node, operator.route)]
        made = apply_operator(operator, inputs, node in self.inspection.followed)
        for source in self.topology.sources:
            if source.route is not None and source.route.after == node:
                made = routed_by_value(made, source.name, source.route)
        done = frozenset(operator.upstreams) & self.division.watermarks.keys()
        return self._entering(operator, without_watermarks(made, done) if done else made)

    def _in_every_form(self, operator: Operator, path: str, forms: dict[str, bool]) -> DataFrame:
        """All forms of an operator, each with the rows of the batches that are to use it.

        `forms` says of forms of operators further down whether they are meant. The cheaper one
        comes first, and is used whatever else was chosen.
        """
        if operator.name in self.division.members:
            what = "a cheaper form" if operator.cheaper is not None else "other forms"
            raise InvalidTopology(
                f"plan: operator {operator.name!r} has {what}; take it out of its component."
            )
        upstream, others = operator.upstreams[0], operator.other_forms
        none = forms | dict.fromkeys(others, False)
        made = apply_operator(operator, [self._branch(upstream, f"{path}:full", none)])
        earlier: dict[str, bool] = {}
        for form, other in others.items():
            name = "cheaper" if form == operator.name else form.rpartition("~")[2]
            rows = self._branch(upstream, f"{path}:{name}", forms | earlier | {form: True})
            made = made.unionByName(apply_operator(other, [rows]))
            earlier[form] = False
        return made

    def _branch(self, node: str, path: str, forms: dict[str, bool]) -> DataFrame:
        """The rows of a node in batches that use these forms, and no others."""
        path = f"{node}{PATH}{path}"
        if self.topology.find_source(node) is not None:
            if node not in self.sharing.shared:
                raise InvalidTopology(
                    f"source {node!r}: operators with other forms cannot share it in this plan; "
                    "use another, or leave cheaper and forms out."
                )
            if node not in self._shared:
                self._shared[node] = self._exchanged(node)
            rows = _observed(self._shared[node], path, barrier=True)
            names = forms_of_source(self.topology, node)
            column = F.col(f"`{COLUMN}{node}`")
            for form, meant in forms.items():
                bit = 1 << names.index(form)
                rows = rows.where(column.bitwiseAND(bit) == (bit if meant else 0))
            return at_edge(without_forms(rows, node), node)
        operator_ = self.topology.find_operator(node)
        if operator_.has_forms:
            rows = self._in_every_form(operator_, path, forms)
        else:
            rows = apply_operator(operator_, [self._branch(operator_.upstreams[0], path, forms)])
        return at_edge(_observed(rows, path, False) if self.reading.measured else rows, node)

    def _entering(self, operator: Operator, frame: DataFrame) -> DataFrame:
        entered = frozenset(
            upstream
            for upstream in operator.upstreams
            if (upstream, operator.name) in self.division.entering
        )
        if not entered:
            return frame
        key = self.division.entering[next(iter(entered)), operator.name]
        divided = divide_inputs(frame, entered, key, self._key_groups())
        if divided is None:
            raise InvalidTopology(
                f"plan: operator {operator.name!r}: its component's key ({', '.join(key)}) is not "
                f"in the rows of its upstream {', '.join(sorted(entered))}; take it out of the "
                "component."
            )
        return divided

    def _key_groups(self) -> int:
        return int(str(self.session.conf.get("spark.sql.shuffle.partitions")))

    def _exchanged(self, node: str) -> DataFrame:
        frame = self._made(node, node)
        if self._is_routed(node):
            return frame  # its exchange is there already, and another would undo its routes
        # As many partitions as keyed work has; more tasks would only cost each batch time.
        partitions = self._key_groups()
        if node in self.division.watermarks:
            frame = self._below[node] = with_watermark(frame, self.division.watermarks[node])
        if node in self.division.lifted:
            return self._divide(node)(frame)
        return frame.repartitionById(partitions, F.spark_partition_id() % partitions)

    def _is_routed(self, node: str) -> bool:
        """Whether the rows of a node come from the exchange of a route."""
        return any(
            source.route is not None and (source.route.after or source.name) == node
            for source in self.topology.sources
        )

    def _divide(self, node: str) -> Callable[[DataFrame], DataFrame]:
        """The shuffle by which a shared node's rows enter a component."""
        key = [F.col(f"`{column}`") for column in self.division.lifted[node]]
        return lambda frame: frame.repartition(self._key_groups(), *key)


def _observed(frame: DataFrame, path: str, barrier: bool) -> DataFrame:
    metrics = [F.count(F.lit(1)).alias("rows")]
    if barrier:
        nulls = [F.col(f"`{column}`").isNull() for column in frame.columns]
        metrics.append(F.count_if(reduce(and_, nulls)).alias("empty"))
    return frame.observe(METRIC + path, *metrics)


def _partitioned(frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """A key declared for a step that Spark would not shuffle: equal keys meet in one task."""
    if not set(key) <= set(frame.columns):
        return frame
    return frame.repartition(*(F.col(f"`{column}`") for column in key))
