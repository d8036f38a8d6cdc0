"""Runs of stateless operators carried out in another order than they were declared in.

An order is a proposal of the slow loop that a start takes up. It changes no result and no state:
the rows that leave the run are the same, in the same columns, and sinks and consumers see nothing.
So whatever does not fit a topology (any more) is left out with a reason, and never ends a start.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.fusion.order import StatelessOperator, linear_runs, swapped_unduly
from penstock.model.plan import Orders
from penstock.model.topology import Operator, SinkBinding, Topology
from penstock.spark.compile.cheaper_forms import on_the_way
from penstock.spark.compile.inspection import Inspection, run_sql
from penstock.spark.handles.analysed_plan import Columns


def movable(topology: Topology, inspection: Inspection) -> dict[str, Columns]:
    """Stateless operators whose columns are known, declared ones before those inferred.

    What has other forms stays, and so does what comes before it: it is there for each form.
    """
    formed = {operator.name for operator in topology.operators if operator.has_forms}
    fixed = {*formed, *on_the_way(topology)}
    columns = {}
    for name, analysis in inspection.operators.items():
        operator = topology.find_operator(name)
        known = analysis.columns
        if operator.reads is not None and operator.writes is not None:
            known = Columns(operator.reads, operator.writes)
        stays = operator.key is not None or analysis.shuffles or len(operator.upstreams) > 1
        if known is not None and not stays and name not in fixed:
            columns[name] = known
    return columns


def runs_of(topology: Topology, inspection: Inspection) -> Orders:
    """Runs of operators that might be put into another order, upstream first."""
    return linear_runs(topology.edges, movable(topology, inspection))


def fitting_orders(
    topology: Topology, inspection: Inspection, wanted: Orders
) -> tuple[Orders, tuple[str, ...]]:
    """The orders among those wanted that may be carried out, and why not the others."""
    columns = movable(topology, inspection)
    runs = {frozenset(run): run for run in runs_of(topology, inspection)}
    fitting, reasons = [], []
    for order in wanted:
        run = runs.get(frozenset(order))
        if run is None or len(set(order)) < len(order):
            reasons.append(f"order {' > '.join(order)} is not of a run of stateless operators")
            continue
        steps = [StatelessOperator(n, columns[n].reads, columns[n].writes, 1, 1) for n in run]
        pair = swapped_unduly(steps, order)
        if pair is not None:
            reasons.append(
                f"order {' > '.join(order)} is not taken up: {pair[0].name} and {pair[1].name} "
                "use each other's columns"
            )
        elif order != run:
            fitting.append(order)
    return tuple(fitting), tuple(reasons)


def reordered(topology: Topology, inspection: Inspection, orders: Orders) -> Topology:
    """The topology with its runs in these orders; operators, consumers and sinks keep names."""
    runs = {frozenset(run): run for run in runs_of(topology, inspection)}
    ends = {runs[frozenset(order)][-1]: order[-1] for order in orders}
    fed: dict[str, str] = {}  # operators inside these runs, each with what feeds it now
    for order in orders:
        (before,) = topology.find_operator(runs[frozenset(order)][0]).upstreams
        fed |= dict(zip(order, (ends.get(before, before), *order), strict=False))
    columns = {new: inspection.types[declared] for declared, new in ends.items()}
    made = []
    for operator in topology.operators:
        name = operator.name
        upstreams = tuple(ends.get(one, one) for one in operator.upstreams)
        upstreams = (fed[name],) if name in fed else upstreams
        made.append(_rewired(operator, upstreams, columns.get(name)))
    sinks = [_fed(sink, ends) for sink in topology.sinks]
    return topology.rewired(made, sinks)


def same_rows(declared: StructType, found: StructType) -> bool:
    """Whether two schemas have the same columns of the same types."""
    return [(f.name, f.dataType) for f in declared] == [(f.name, f.dataType) for f in found]


def _fed(sink: SinkBinding, ends: dict[str, str]) -> SinkBinding:
    return replace(sink, upstream=ends.get(sink.upstream, sink.upstream))


def _rewired(operator: Operator, upstreams: tuple[str, ...], last: StructType | None) -> Operator:
    """The operator on other upstreams; at the end of a run its columns come as declared."""
    if upstreams == operator.upstreams and last is None:
        return operator
    step = _step(operator)

    def carried_out(*frames: DataFrame) -> Any:
        rows = step(*frames)
        if last is None or not isinstance(rows, DataFrame):
            return rows
        return rows.select(*(f"`{name}`" for name in last.names))

    return replace(operator, upstreams=upstreams, function=carried_out, sql=None)


def _step(operator: Operator) -> Callable[..., Any]:
    """The operator as a function; SQL goes on naming the upstreams that it was declared with."""
    if operator.sql is None:
        assert operator.function is not None
        return operator.function
    text, names = operator.sql, operator.upstreams
    return lambda *frames: run_sql(text, dict(zip(names, frames, strict=True)))
