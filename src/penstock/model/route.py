"""How the rows of a source are spread over the tasks of the work that follows it.

A route says where a row's stateless work is done, never which rows belong together: work with
state is grouped by Spark again, by its own key. So routes may change from batch to batch, and a hot
key may be cut into parts, without any result depending on it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import InvalidTopology
from penstock.model.durations import parse_duration_s

BY_KEY = ("hash", "consistent", "frequency-aware", "two-choices", "osg")
BY_TIME = ("panes", "rate-aware-panes")
AUTO = "auto"
METHODS = (*BY_KEY, *BY_TIME, "round-robin", AUTO)
MOST_PARTITIONS = 4096


@dataclass(frozen=True)
class Route:
    """A method, what it goes by, and the number of tasks.

    By key: `hash`, `consistent`, `frequency-aware` (the `top_k` most frequent keys in parts),
    `two-choices`, `osg` (by learnt cost). By time: `panes` and `rate-aware-panes`, of length
    gcd(window, slide). `round-robin` goes by nothing. `auto` follows from the query. Tables are
    made anew each `period`. With `follow`, as many of the tasks are in use as the run has
    processors.

    Keys are columns of the source, which its lanes read anyway, or SQL over them ("x DIV 100"), or,
    with `after`, columns of an operator's output: both are looked at where they are computed.

    >>> Route("frequency-aware", key="vehicle", partitions=4).key
    ('vehicle',)
    """

    method: str = "frequency-aware"
    key: Any = ()  # a column or an expression, or several
    partitions: int = 8
    top_k: int = 100
    period: str | float = "5s"
    time: str | None = None
    window: str | float | None = None
    slide: str | float | None = None
    follow: bool = False
    after: str | None = None  # the operator whose output it goes by; None: the source itself
    period_s: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _columns(self.key))
        object.__setattr__(self, "period_s", parse_duration_s(self.period, "Route(period)"))
        if self.method not in METHODS:
            raise InvalidTopology(
                f"Route(method) is {self.method!r}; allowed: {', '.join(METHODS)}."
            )
        for name, value, least, most in (
            ("partitions", self.partitions, 1, MOST_PARTITIONS),
            ("top_k", self.top_k, 0, 100_000),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidTopology(
                    f"Route({name}) is {value!r}; give a whole number from {least} to {most}."
                )
        if not isinstance(self.follow, bool):
            raise InvalidTopology(f"Route(follow) is {self.follow!r}; give True or False.")
        if self.method in BY_KEY and not self.key:
            raise InvalidTopology(f"Route(key) is missing; method {self.method!r} needs a key.")
        if self.method not in BY_KEY and self.key:
            raise InvalidTopology(
                f"Route(key) is {', '.join(self.key)}; method {self.method!r} uses no key."
            )
        if self.after is not None and not isinstance(self.after, str):
            raise InvalidTopology(f"Route(after) is {self.after!r}; name an operator.")
        self._check_time()

    def _check_time(self) -> None:
        for name in ("time", "window", "slide"):
            value = getattr(self, name)
            if self.method in BY_TIME and value is None:
                raise InvalidTopology(
                    f"Route({name}) is missing; method {self.method!r} needs time, window and "
                    "slide."
                )
            if self.method not in BY_TIME and value is not None:
                raise InvalidTopology(
                    f"Route({name}) is {value!r}; only {' and '.join(BY_TIME)} use time."
                )
        if self.time is not None and not isinstance(self.time, str):
            raise InvalidTopology(f"Route(time) is {self.time!r}; name a column.")
        for name, value in (("window", self.window), ("slide", self.slide)):
            if value is not None and parse_duration_s(value, f"Route({name})") < 1e-3:
                raise InvalidTopology(f"Route({name}) is {value!r}; give at least a millisecond.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns a row's route depends on."""
        return (*self.key, self.time) if self.time is not None else tuple(self.key)

    @property
    def in_lanes(self) -> bool:
        """Whether lanes can write it: it goes by columns of the source, and not by SQL."""
        plain = all(name.isidentifier() for name in self.columns)
        return self.after is None and plain and self.method != AUTO

    @property
    def splits(self) -> bool:
        """Whether rows of one key may be in several tasks."""
        return self.method not in ("hash", "consistent")

    def description(self) -> str:
        """For a person."""
        by = f" by {', '.join(self.columns)}" if self.columns else ""
        by += f" of {self.after}" if self.after is not None else ""
        text = f"{self.method}{by} over {self.partitions} tasks"
        if self.method == "frequency-aware":
            text += f", the {self.top_k} most frequent keys split"
        if self.method in ("frequency-aware", "osg"):
            text += f", a new table every {self.period_s:g} s"
        return text + (", in use as there are processors" if self.follow else "")

    def to_json(self) -> str:
        """JSON text that `from_json` reads back to an equal route."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__}
        del document["period_s"]
        return json.dumps(document, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Route":
        """The route of a text made by `to_json`."""
        return cls(**json.loads(text))


def _columns(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable):
        raise InvalidTopology(f"Route(key) is {value!r}; name a column, or several.")
    names = tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise InvalidTopology(f"Route(key) holds {name!r}; names of columns are text.")
    if len(set(names)) < len(names):
        raise InvalidTopology(f"Route(key) names {', '.join(names)}; name each only once.")
    return names
