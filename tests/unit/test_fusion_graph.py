"""What may be fused, and how many components there are."""

import itertools

import numpy as np
import pytest

from penstock.errors import InvalidInput
from penstock.fusion.components import enumerate_components
from penstock.fusion.graph import (
    OperatorGraph,
    OperatorStatistics,
    StreamStatistics,
    operator_graph,
)
from penstock.fusion.growth import grown_components
from penstock.fusion.members import members_of


def graph_of(keys: dict[str, str], streams: dict[str, float]) -> OperatorGraph:
    """Operators by one-letter attributes, streams as 'ab' from a to b."""
    return operator_graph(
        [OperatorStatistics(name, tuple(key)) for name, key in keys.items()],
        [StreamStatistics(pair[0], pair[1], rows) for pair, rows in streams.items()],
    )


def test_compatibility_is_not_transitive() -> None:
    graph = graph_of({"o": "xy", "p": "yz", "q": "xz"}, {"op": 1.0, "pq": 1.0, "oq": 1.0})
    assert graph.is_component(members_of([0, 1]))
    assert graph.is_component(members_of([1, 2]))
    assert graph.is_component(members_of([0, 2]))
    assert not graph.is_component(members_of([0, 1, 2]))


def test_operators_without_a_stream_between_them_are_no_component() -> None:
    graph = graph_of({"o": "x", "p": "y", "q": "x"}, {"op": 1.0, "pq": 1.0})
    assert not graph.is_component(members_of([0, 2]))


def test_operator_without_key_joins_any_and_leaves_the_key_to_the_others() -> None:
    graph = graph_of({"o": "xy", "p": "", "q": "yz"}, {"op": 1.0, "pq": 1.0})
    assert graph.is_component(members_of([0, 1, 2]))
    assert graph.component_key(members_of([0, 1, 2])) == ("y",)
    assert graph.component_key(members_of([1])) == ()


def test_two_streams_between_the_same_operators_count_together() -> None:
    graph = operator_graph(
        [OperatorStatistics("o", ("x",)), OperatorStatistics("p", ("x",))],
        [StreamStatistics("o", "p", 2.0), StreamStatistics("o", "p", 3.0)],
    )
    assert graph.internal_rows(members_of([0, 1])) == 5.0
    assert graph.total_rows == 5.0


def random_graph(seed: int, size: int, share: float = 0.4) -> OperatorGraph:
    rng = np.random.default_rng(seed)
    keys = {chr(97 + n): "".join(rng.choice(list("wxyz"), 2, replace=False)) for n in range(size)}
    streams = {
        one + other: float(rng.integers(1, 100))
        for one, other in itertools.combinations(keys, 2)
        if rng.random() < share
    }
    return graph_of(keys, streams)


@pytest.mark.parametrize("seed", range(8))
def test_enumeration_finds_exactly_the_components(seed: int) -> None:
    graph = random_graph(seed, 8)
    expected = {members for members in range(1, 1 << 8) if graph.is_component(members)}
    found = enumerate_components(graph)
    assert found.complete
    assert set(found.components) == expected
    assert len(found.components) == len(expected)


@pytest.mark.parametrize("seed", range(4))
def test_enumeration_stops_at_a_whole_size(seed: int) -> None:
    graph = random_graph(seed, 12, share=0.8)
    found = enumerate_components(graph, max_count=60)
    assert not found.complete
    expected = {
        members
        for members in range(1, 1 << 12)
        if members.bit_count() <= found.size and graph.is_component(members)
    }
    assert set(found.components) == expected
    assert len(expected) - graph.size <= 60


def test_grown_components_are_components() -> None:
    graph = random_graph(3, 20, share=0.3)
    grown = grown_components(graph)
    assert max(members.bit_count() for members in grown) > 4
    assert all(graph.is_component(members) for members in grown)


def test_a_cycle_is_refused_by_its_path() -> None:
    with pytest.raises(InvalidInput, match="cycle o -> p -> o"):
        graph_of({"o": "x", "p": "x"}, {"op": 1.0, "po": 1.0})


def test_a_stream_to_itself_is_a_cycle() -> None:
    with pytest.raises(InvalidInput, match="cycle o -> o"):
        graph_of({"o": "x"}, {"oo": 1.0})


def test_histograms_of_different_shapes_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"streams\[0\].load is 2 x 3 but operators\[0\].state"):
        operator_graph(
            [OperatorStatistics("o", ("x",), np.ones((2, 4))), OperatorStatistics("p", ("x",))],
            [StreamStatistics("o", "p", np.ones((2, 3)))],
        )
