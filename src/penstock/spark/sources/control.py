"""The one channel from the driver to the runner of a source: a small JSON file beside its logs.

A source's runner is a process of its own, fixed when its query starts, and looks at this file at
each batch; so a change holds from the next batch on. The file says what is wanted, not what to do:
reading it twice changes nothing, and a driver that dies leaves the source as it is. What a batch
made of it is in that batch's end offset, so a batch that is repeated does not look here again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.forecast.named import forecaster_named
from penstock.model.sources import OVERLOAD_BY, STRATEGIES
from penstock.spark.checkpoint.durable_files import exclusive, make_directory, write_atomically
from penstock.spark.checkpoint.sealed import unsealed
from penstock.spark.sources.settings import Limits

FILE = "control.json"
OPTION, COMPONENT_OPTION = "control", "component"  # of a reader: the file, and whom it reads for
WHOLE = ("lane_rows", "max_rows", "lanes_max", "horizon")


@dataclass(frozen=True)
class Control:
    """What the driver wants of one source; the defaults hold where nothing was ever ordered."""

    # By component that reads it, "" where all run together: tasks that are to read a batch.
    tasks: dict[str, int] = field(default_factory=dict)
    route_tasks: int | None = None  # tasks that its rows are routed to
    interval_s: float = 0.0  # least time between two batches
    shed: float = 0.0  # share of the rows to drop
    cheaper: tuple[str, ...] = ()  # operators that run in their cheaper form
    forms: tuple[str, ...] = ()  # ids of the equivalent forms that are in use
    added: dict[str, dict[str, Any]] = field(default_factory=dict)  # streams and their meta-data
    removed: tuple[str, ...] = ()
    # By name, the position at which a stream was suspended: the order holds for that one only.
    resumed: dict[str, tuple[int, int]] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    lane_capacity_per_s: float | None = None  # as measured; no limit that was asked for

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Control":
        """As read from JSON; raises ValueError, TypeError or AttributeError for anything else."""
        route_tasks = document.get("route_tasks")
        resumed = document.get("resumed", {})
        return cls(
            {str(name): max(1, int(n)) for name, n in document.get("tasks", {}).items()},
            None if route_tasks is None else max(1, int(route_tasks)),
            max(0.0, float(document.get("interval_s", 0.0))),
            min(1.0, max(0.0, float(document.get("shed", 0.0)))),
            tuple(map(str, document.get("cheaper", ()))),
            tuple(map(str, document.get("forms", ()))),
            dict(document.get("added", {})),
            tuple(document.get("removed", ())),
            {name: (int(place[0]), int(place[1])) for name, place in resumed.items()},
            dict(document.get("limits", {})),
            _positive(document.get("lane_capacity_per_s")),
        )

    def applied(self, limits: Limits, learns_capacity: bool = False) -> Limits:
        """The limits as the running program wants them, and as they were measured."""
        if learns_capacity and self.lane_capacity_per_s is not None:
            limits = replace(limits, lane_capacity_per_s=self.lane_capacity_per_s)
        return replace(limits, **self.limits)


# What one run ordered under its load does not hold for the next.
AT_FULL_SERVICE: dict[str, Any] = {"interval_s": 0.0, "shed": 0.0, "cheaper": (), "forms": ()}


class ControlFile:
    """Both ends of the channel of one source; without a path nothing is ever ordered."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._text = b""
        self._newest = Control()
        self.fault = ""  # why the newest orders cannot be read; those before them hold

    def read(self) -> Control:
        """The newest orders that can be read."""
        if self._path is None:
            return self._newest
        try:
            text = self._path.read_bytes()
            if text != self._text:  # parsed once; with many streams that takes a while
                self._newest, self._text = Control.from_dict(unsealed(text)), text
        except FileNotFoundError:
            self._newest, self._text = Control(), b""
        except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
            self.fault = f"cannot be read: {error}"
            return self._newest
        self.fault = ""
        return self._newest

    def update(self, change: Callable[[Control], Control]) -> None:
        """Order something else than before; threads and processes take turns."""
        assert self._path is not None, "nothing reads this source"
        make_directory(self._path.parent)
        with exclusive(self._path.with_suffix(".lock")):
            before = self.read()
            if self.fault:
                raise InvalidInput(f"{self._path} {self.fault}; remove it, then try again.")
            write_atomically(self._path, asdict(change(before)))

    def order(self, **orders: Any) -> None:
        """Order some fields of Control; the others stay."""
        self.update(lambda control: replace(control, **orders))


@dataclass(frozen=True)
class Controls:
    """The channels of a run's sources, whose folder has one folder for each source.

    Where components run apart, `component` says for which of them sources are read.
    """

    folder: Path
    component: str = ""

    def of(self, source: str) -> ControlFile:
        """The channel of one source."""
        return ControlFile(self.folder / source / FILE)

    def options(self, source: str) -> dict[str, str]:
        """Options of the source's reader, by which it finds its channel."""
        found = {OPTION: str(self.folder / source / FILE)}
        return found | ({COMPONENT_OPTION: self.component} if self.component else {})

    def order(self, sources: Iterable[str], **orders: Any) -> None:
        """Order the same of several sources."""
        for source in sources:
            self.of(source).order(**orders)

    def order_tasks(self, sources: Iterable[str], tasks: int) -> None:
        """So many tasks are to read a batch of each of these sources for this component."""
        for source in sources:
            self.of(source).update(
                lambda control: replace(control, tasks={**control.tasks, self.component: tasks})
            )


class TaskOrders:
    """How many tasks are to read a batch, as the reader of a source asks at each one."""

    def __init__(self, file: str | None, component: str = "") -> None:
        self._file, self._component = ControlFile(None if file is None else Path(file)), component

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "TaskOrders":
        """From the options of a reader."""
        return cls(options.get(OPTION), options.get(COMPONENT_OPTION, ""))

    def tasks(self, default: int) -> int:
        """What was ordered last; the default where nothing was."""
        return self._file.read().tasks.get(self._component, default)


def _positive(value: Any) -> float | None:
    return float(value) if value is not None and float(value) > 0 else None


def check_limits(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Limits a program may set, or a sentence with what is wrong."""
    known = {f.name for f in fields(Limits)}
    for key, value in limits.items():
        if key not in known:
            raise InvalidInput(f"limit {key!r} is unknown; allowed: {', '.join(sorted(known))}.")
        optional = key in ("max_rows", "drain_below", "forecaster")
        number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        if key in WHOLE and isinstance(value, float) and not value.is_integer():
            raise InvalidInput(f"limit {key} is {value!r}; give a whole number.")
        if key == "forecaster" and isinstance(value, str):
            forecaster_named(value)
            continue
        words = {"strategy": STRATEGIES, "overload_by": OVERLOAD_BY}.get(key)
        if words is not None and value not in words:
            raise InvalidInput(f"limit {key} is {value!r}; allowed: {', '.join(words)}.")
        if words is None and not number and not (optional and value is None):
            raise InvalidInput(f"limit {key} is {value!r}; give a number above 0.")
    return dict(limits)
