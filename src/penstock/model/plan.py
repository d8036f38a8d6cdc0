"""What should run: queries, each a list of components, each a list of operators."""

from dataclasses import dataclass

Orders = tuple[tuple[str, ...], ...]  # of stateless operators, each in the order it runs in


@dataclass(frozen=True)
class Component:
    """Operators fused because they share a partition key; `key` is empty when none needs one."""

    name: str
    operators: tuple[str, ...]
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryPlan:
    """Components that run together as one streaming query, and the sinks it feeds."""

    name: str
    components: tuple[Component, ...]
    sinks: tuple[str, ...]
    output_mode: str = "append"


@dataclass(frozen=True)
class TopologyPlan:
    """All queries of a topology, with why there is more than one."""

    queries: tuple[QueryPlan, ...]
    reasons: tuple[str, ...] = ()

    def component_of(self, operator: str) -> Component:
        """The component that holds an operator."""
        for query in self.queries:
            for component in query.components:
                if operator in component.operators:
                    return component
        raise KeyError(operator)
