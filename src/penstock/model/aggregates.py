"""Aggregates of the user's own: init, update, merge, result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidTopology

BATCHES = ("arrow", "pandas")


@dataclass(frozen=True)
class UserAggregate:
    """An aggregate made of four functions on the state of one key, a dict of plain values.

    `init()` is the state of no rows; `update(state, rows)` takes the rows of one key as an Arrow
    table or a pandas frame of `columns`; `merge(left, right)` joins two states; `result(state)` is
    the value. Rows and states may come in any order and any cut, so merge must not depend on it.
    `state` and `returns` are Spark types, such as "n BIGINT, low DOUBLE" and "BOOLEAN".
    """

    columns: Sequence[str]
    state: str
    returns: str
    init: Callable[[], dict[str, Any]]
    update: Callable[[dict[str, Any], Any], dict[str, Any]]
    merge: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
    result: Callable[[dict[str, Any]], Any]
    batches: str = "arrow"

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not self.columns:
            raise InvalidTopology(
                f"UserAggregate(columns) is {self.columns!r}; give a list of column names."
            )
        for field in ("state", "returns"):
            if not isinstance(getattr(self, field), str):
                raise InvalidTopology(
                    f"UserAggregate({field}) is {getattr(self, field)!r}; give a type as text."
                )
        if self.batches not in BATCHES:
            raise InvalidTopology(
                f"UserAggregate(batches) is {self.batches!r}; allowed: {', '.join(BATCHES)}."
            )
        for field in ("init", "update", "merge", "result"):
            if not callable(getattr(self, field)):
                raise InvalidTopology(
                    f"UserAggregate({field}) is {getattr(self, field)!r}; give a function."
                )
