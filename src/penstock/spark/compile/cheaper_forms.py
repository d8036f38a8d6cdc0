"""Operators with a cheaper form: which source switches them, and what cannot have one.

Both forms are in the query, each behind a filter on what its source says of the batch, so going
over costs no restart. Only one of them gets rows in a batch.
"""

from pyspark.sql import DataFrame

from penstock.errors import InvalidTopology
from penstock.model.topology import Topology
from penstock.spark.handles.analysed_plan import OperatorAnalysis, analyse, has_watermark
from penstock.spark.sources.batch_choice import COLUMN
from penstock.spark.sources.running.kinds import running_source


def path_to_source(topology: Topology, operator: str) -> tuple[str, ...]:
    """From an operator with a cheaper form up to its source, both included."""
    path = [operator]
    while topology.find_source(path[-1]) is None:
        upstreams = topology.find_operator(path[-1]).upstreams
        if len(upstreams) > 1:
            raise InvalidTopology(
                f"operator {operator!r}: cheaper is given, but operator {path[-1]!r} has the "
                f"upstreams {', '.join(upstreams)}; the form is chosen by one source, so only "
                "operators with one upstream may lie between."
            )
        path.append(upstreams[0])
    source = topology.find_source(path[-1])
    assert source is not None
    if "cheaper" not in running_source(source).orders:
        raise InvalidTopology(
            f"operator {operator!r}: cheaper is given, but source {source.name!r} cannot switch "
            "between forms; only a Generator and Streams can."
        )
    return tuple(path)


def operators_of_source(topology: Topology, source: str) -> tuple[str, ...]:
    """Operators with a cheaper form whose rows come from a source, in a fixed order."""
    return tuple(n for n in topology.variants if path_to_source(topology, n)[-1] == source)


def on_the_way(topology: Topology) -> frozenset[str]:
    """Operators between a source and one with a cheaper form: they stand before each form."""
    return frozenset(n for name in topology.variants for n in path_to_source(topology, name)[1:-1])


def without_forms(frame: DataFrame, source: str) -> DataFrame:
    """The rows of a source as its operators are to see them."""
    column = COLUMN + source
    return frame.drop(column) if column in frame.columns else frame


def check_variant(
    topology: Topology, name: str, found: dict[str, OperatorAnalysis],
    full: DataFrame, cheap: DataFrame,
) -> None:  # fmt: skip
    """Refuse a cheaper form that is no replacement, or an operator that cannot have one."""
    ours, theirs = _columns(full), _columns(cheap)
    if ours != theirs:
        raise InvalidTopology(
            f"operator {name!r}: cheaper has the columns {_listed(theirs)}, the operator itself "
            f"{_listed(ours)}; they must be the same."
        )
    for node in path_to_source(topology, name)[:-1]:
        seen = found[node]
        if seen.stateful or seen.shuffles or topology.find_operator(node).key is not None:
            raise InvalidTopology(
                f"operator {name!r}: cheaper is given, but operator {node!r} has state, a key or a "
                "shuffle; a form can change from batch to batch only before the first of them."
            )
    form = analyse(cheap)
    if form.stateful or form.shuffles:
        raise InvalidTopology(
            f"operator {name!r}: cheaper has state or a shuffle; it must have neither."
        )
    if has_watermark(full) or has_watermark(cheap):
        # The form that gets no rows would hold back the watermark of all.
        raise InvalidTopology(
            f"operator {name!r}: cheaper is given, and a watermark is defined in it or before it; "
            "define the watermark in an operator after it."
        )


def _columns(frame: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def _listed(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())
