"""Equal work: signatures against a comparison step by step, code that is the same, merging."""

import types
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Files, Generator, Topology, constant
from penstock.errors import InvalidTopology
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.merging import merged, work_of
from penstock.model.same_code import same_code_digest
from penstock.sharing.batches import Promised
from penstock.sharing.equal_work import Graph, Step, equal_steps, saving


@st.composite
def graphs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> dict[str, Graph]:
    """Two or three small graphs over few codes, so that equal steps are frequent."""
    found: dict[str, Graph] = {}
    for topology in "abc"[: draw(st.integers(2, 3))]:
        graph: dict[str, Step] = {}
        for number in range(draw(st.integers(1, 5))):
            before = sorted(graph)
            upstreams = draw(st.lists(st.sampled_from(before), max_size=2)) if before else []
            code = draw(st.sampled_from(["x", "y", None]))
            graph[f"s{number}"] = Step(code, tuple(upstreams))
        found[topology] = graph
    return found


def equal(one: Graph, first: str, other: Graph, second: str) -> bool:
    """The same code, and pairwise the same upstreams."""
    a, b = one[first], other[second]
    if one is other and first == second:
        return True
    return (
        a.code is not None
        and a.code == b.code
        and len(a.upstreams) == len(b.upstreams)
        and all(equal(one, x, other, y) for x, y in zip(a.upstreams, b.upstreams, strict=True))
    )


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_equal_steps_are_those_of_a_comparison_of_all_pairs(found: dict[str, Graph]) -> None:
    places = [(topology, step) for topology, graph in found.items() for step in graph]
    wanted = {
        frozenset((p, q))
        for p, q in combinations(places, 2)
        if equal(found[p[0]], p[1], found[q[0]], q[1])
    }
    got = {frozenset(pair) for group in equal_steps(found) for pair in combinations(group, 2)}
    assert got == wanted


def made(text: str, name: str = "f", **values: Any) -> Any:
    """A function as a user's file would make it."""
    module = types.ModuleType("of_user")
    vars(module).update(values)
    exec(compile(text, "/home/user/flow.py", "exec"), vars(module))
    return vars(module)[name]


CALLS = "def g(x):\n    return x * FACTOR\ndef f(x):\n    return g(x)"


def test_the_same_code_wherever_it_stands() -> None:
    one = made("def f(x):\n    return x + 1")
    moved = made("\n\n\ndef other(x):\n    return x + 1", "other")
    assert same_code_digest(one) == same_code_digest(moved) is not None
    assert same_code_digest(made(CALLS, FACTOR=2)) == same_code_digest(made(CALLS, FACTOR=2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (made(CALLS, FACTOR=2), made(CALLS, FACTOR=3)),
        (made(CALLS, FACTOR=2), made(CALLS, FACTOR=2.0)),
        (made("def f(x):\n    return x + 1"), made("def f(x):\n    return x + 2")),
        (made("def f(x, y=1):\n    return x + y"), made("def f(x, y=2):\n    return x + y")),
        (made("def f(x):\n    return x.a"), made("def f(x):\n    return x.b")),
        (made("def h(n):\n    return lambda x: x + n\nf = h(1)"),
         made("def h(n):\n    return lambda x: x + n\nf = h(2)")),
        (partial(made(CALLS, FACTOR=2), 1), partial(made(CALLS, FACTOR=2), 2)),
        (Generator(constant(3.0), keys=1, seed=1), Generator(constant(3.0), keys=1, seed=2)),
        (Generator(constant(3.0), keys=1, seed=1), Generator(constant(4.0), keys=1, seed=1)),
    ],
)  # fmt: skip
def test_code_that_differs(one: Any, other: Any) -> None:
    digests = same_code_digest(one), same_code_digest(other)
    assert None not in digests
    assert digests[0] != digests[1]


@pytest.mark.parametrize("value", [object(), open, iter([1])])
def test_what_cannot_be_compared_is_equal_to_nothing(value: object) -> None:
    told = same_code_digest(made("def f(x):\n    return HELD", HELD=value))
    assert told is None or value is open  # what is built in has a name


def road(name: str, seed: int = 1, factor: int = 2, sql: bool = False) -> Topology:
    """A source and a step that all have, and one of its own."""
    topology = Topology(name, max_latency=f"{factor}s")
    topology.source("rows", Generator(constant(3.0), keys=1, seed=seed))
    topology.add("parsed", made("def f(rows):\n    return rows.where('row > 1')"), "rows")
    step = f"SELECT {factor} * row AS row FROM parsed"
    own = made("def f(rows):\n    return rows.limit(N)", N=factor)
    topology.add("own", step if sql else own, "parsed")
    topology.sink("out", "own", Files(f"/tmp/out-{name}"))
    return topology


def as_one(*topologies: Topology) -> tuple[Topology, dict[tuple[str, str], str]]:
    parts = {one.name: one for one in topologies}
    found = {
        name: {step: Step(*told) for step, told in work_of(one).items()}
        for name, one in parts.items()
    }
    same = {place: group[0] for group in equal_steps(found) for place in group[1:]}
    return merged("all", parts, same)


def test_what_is_common_is_there_once() -> None:
    one, places = as_one(road("a", factor=2), road("b", factor=3), road("c", seed=2, factor=2))
    one.check()
    assert [source.name for source in one.sources] == ["rows", "c_rows"]
    assert [operator.name for operator in one.operators] == [
        "parsed", "own", "b_own", "c_parsed", "c_own",
    ]  # fmt: skip
    assert places["b", "parsed"] == "parsed"
    assert one.find_operator("c_own").upstreams == ("c_parsed",)
    assert one.sink_bounds_s == {"out": 2.0, "b_out": 3.0, "c_out": 2.0}
    assert one.max_latency_s == 2.0


def test_two_that_are_equal_are_one_with_two_sinks() -> None:
    first, second = road("a"), road("b")
    one, _ = as_one(first, second)
    assert len(one.operators) == 2
    assert [sink.upstream for sink in one.sinks] == ["own", "own"]


def test_sql_whose_upstream_has_another_name_still_finds_it() -> None:
    one, _ = as_one(road("a"), road("b", seed=2, sql=True))
    assert one.find_operator("b_own").upstreams == ("b_parsed",)
    assert one.find_operator("b_own").sql is None
    asked = list[tuple[str, str]]()

    class Frame:
        sparkSession = property(lambda self: self)

        def createOrReplaceTempView(self, name: str) -> None:
            asked.append(("view", name))

        def sql(self, text: str) -> None:
            asked.append(("sql", text))

    function = one.find_operator("b_own").function
    assert function is not None
    function(Frame())
    assert asked == [("view", "parsed"), ("sql", "SELECT 2 * row AS row FROM parsed")]


def test_a_loop_runs_by_itself() -> None:
    loop = road("a")
    loop.feedback("back", "own", "row BIGINT")
    with pytest.raises(InvalidTopology, match="'a' has a loop; it can only run by itself"):
        as_one(loop, road("b"))


def test_one_query_is_taken_where_it_needs_fewer_processors() -> None:
    light = Promised("a", 2.0, 0.6, BatchOverhead(0.3))
    shares = saving([light, light, light], shared_load=1.0, most=16)
    assert (shares.apart, shares.together) == (3, 2)
    assert shares.cheaper
    hasty = Promised("b", 0.8, 0.1, BatchOverhead(0.3))
    heavy = Promised("c", 60.0, 6.0, BatchOverhead(0.3))
    alone = saving([hasty, heavy], shared_load=0.0, most=64)
    assert not alone.cheaper, "the strict bound would rule the large load too"
    assert saving([Promised("d", 0.1, 1.0, BatchOverhead(0.3))] * 2, 0.0, 8).apart is None
