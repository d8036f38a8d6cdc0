"""Which operator of a query Spark refuses, told in our words.

Spark refuses a plan as a whole. The operator is the first whose own rows it refuses likewise.
"""

from penstock.model.topology import Topology
from penstock.spark.compile.inspection import Inspection, apply_operator
from penstock.spark.compile.limits import in_our_words, limit_of
from penstock.spark.handles import streaming_refusal
from penstock.spark.handles.analysed_plan import at_edge


def told(
    topology: Topology, inspection: Inspection, nodes: set[str], mode: str, refusal: str
) -> str:
    """A refusal of the query of some operators."""
    name = refused_operator(topology, inspection, nodes, mode, refusal)
    if name is None:
        limit = limit_of(refusal)
        return refusal if limit is None else f"the query {in_our_words(refusal)}"
    own = limit_of(refusal) is not None
    return f"operator {name!r}{'' if own else ':'} {in_our_words(refusal)}"


def refused_operator(
    topology: Topology, inspection: Inspection, nodes: set[str], mode: str, refusal: str
) -> str | None:
    """The first operator of some whose rows Spark refuses likewise."""
    frames = {name: at_edge(rows, name) for name, rows in inspection.sources.items()}
    for operator in topology.ordered():
        if operator.name not in nodes:
            continue
        inputs = [frames[name] for name in operator.upstreams]
        made = apply_operator(operator, inputs, operator.name in inspection.followed)
        if _alike(streaming_refusal(made, mode), refusal):
            return operator.name
        frames[operator.name] = at_edge(made, operator.name)
    return None


def _alike(one: str | None, other: str) -> bool:
    if one is None:
        return False
    limit = limit_of(other)
    return one == other if limit is None else limit_of(one) == limit
