"""Operators with other forms: which source switches them, and what cannot have one.

All forms are in the query, each behind a filter on what its source says of the batch, so going
over costs no restart. Only one of them gets rows in a batch.
"""

from pyspark.sql import DataFrame

from penstock.errors import InvalidTopology
from penstock.model.topology import Operator, Topology
from penstock.spark.handles.analysed_plan import OperatorAnalysis, analyse, has_watermark
from penstock.spark.sources.batch_choice import COLUMN
from penstock.spark.sources.running.kinds import running_source

MOST_FORMS = 31  # bits of an integer column


def path_to_source(topology: Topology, operator: str) -> tuple[str, ...]:
    """From an operator with other forms up to its source, both included."""
    path = [operator]
    while topology.find_source(path[-1]) is None:
        upstreams = topology.find_operator(path[-1]).upstreams
        if len(upstreams) > 1:
            raise InvalidTopology(
                f"operator {operator!r}: {_given(topology, operator)}, but operator {path[-1]!r} "
                f"has the upstreams {', '.join(upstreams)}; the form is chosen by one source, so "
                "only operators with one upstream may lie between."
            )
        path.append(upstreams[0])
    source = topology.find_source(path[-1])
    assert source is not None
    if "cheaper" not in running_source(source).orders:
        raise InvalidTopology(
            f"operator {operator!r}: {_given(topology, operator)}, but source {source.name!r} "
            "cannot switch between forms; only a Generator and Streams can."
        )
    return tuple(path)


def forms_of_source(topology: Topology, source: str) -> tuple[str, ...]:
    """The other forms of operators whose rows come from a source, in a fixed order."""
    found = tuple(
        form
        for operator in _with_forms(topology)
        if path_to_source(topology, operator.name)[-1] == source
        for form in operator.other_forms
    )
    if len(found) > MOST_FORMS:
        raise InvalidTopology(
            f"source {source!r}: {len(found)} other forms of operators depend on it; at most "
            f"{MOST_FORMS} may."
        )
    return found


def _with_forms(topology: Topology) -> list[Operator]:
    return [operator for operator in topology.operators if operator.has_forms]


def on_the_way(topology: Topology) -> frozenset[str]:
    """Operators between a source and one with other forms: they stand before each form."""
    return frozenset(
        n for o in _with_forms(topology) for n in path_to_source(topology, o.name)[1:-1]
    )


def without_forms(frame: DataFrame, source: str) -> DataFrame:
    """The rows of a source as its operators are to see them."""
    column = COLUMN + source
    return frame.drop(column) if column in frame.columns else frame


def _given(topology: Topology, operator: str) -> str:
    return "cheaper is given" if topology.find_operator(operator).cheaper else "forms are given"


def check_form(
    topology: Topology, name: str, form: str, found: dict[str, OperatorAnalysis],
    full: DataFrame, cheap: DataFrame,
) -> None:  # fmt: skip
    """Refuse another form that is no replacement, or an operator that cannot have one.

    `form` is its id, which is the operator's name for the cheaper one.
    """
    what = "cheaper" if form == name else f"the form {form.rpartition('~')[2]!r}"
    given = _given(topology, name)
    ours, theirs = _columns(full), _columns(cheap)
    if ours != theirs:
        raise InvalidTopology(
            f"operator {name!r}: {what} has the columns {_listed(theirs)}, the operator itself "
            f"{_listed(ours)}; they must be the same."
        )
    for node in path_to_source(topology, name)[:-1]:
        seen = found[node]
        if seen.stateful or seen.shuffles or topology.find_operator(node).key is not None:
            raise InvalidTopology(
                f"operator {name!r}: {given}, but operator {node!r} has state, a key or a "
                "shuffle; a form can change from batch to batch only before the first of them."
            )
    analysed = analyse(cheap)
    if analysed.stateful or analysed.shuffles:
        raise InvalidTopology(
            f"operator {name!r}: {what} has state or a shuffle; it must have neither."
        )
    if has_watermark(full) or has_watermark(cheap):
        # The form that gets no rows would hold back the watermark of all.
        raise InvalidTopology(
            f"operator {name!r}: {given}, and a watermark is defined in it or before it; "
            "define the watermark in an operator after it."
        )


def _columns(frame: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def _listed(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())
