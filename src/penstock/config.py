"""The options of a run as data, read from a file, the environment and the command line.

Each option carries its name, kind, default, range and description; docs/options.md is made from
them by `python -m penstock.config > docs/options.md`. A later source wins over an earlier one:
TOML file, then environment, then command line.
"""

import math
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from penstock.errors import InvalidInput
from penstock.model.day_spans import read_spans
from penstock.model.durations import parse_duration_s

Kind = Literal["integer", "number", "duration", "switch", "text"]

DEFAULT_FILE = Path("penstock.toml")
ALLOCATIONS = ("none", "milp", "albic", "flux", "cola", "potc")
TABLE = "penstock"  # of the TOML file, so that it can be a part of a larger one


@dataclass(frozen=True)
class Option:
    """What a person needs to know of an option."""

    name: str  # as on the command line and in the file: words joined by "-"
    kind: Kind
    default: str  # as a person would write it
    description: str
    least: float = -math.inf
    greatest: float = math.inf

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return "PENSTOCK_" + self.name.upper().replace("-", "_")

    @property
    def allowed(self) -> str:
        """Its range in words."""
        if self.kind == "switch":
            return "true or false"
        if self.kind == "text":
            return "any text"
        unit = " s" if self.kind == "duration" else ""
        return f"{self.least:g}{unit} to {self.greatest:g}{unit}"

    def read(self, raw: object, where: str) -> int | float | bool | str:
        """The value in its own type, or a sentence that says what is allowed."""
        label = f"{self.name} ({where})"
        if self.kind == "text":
            return self._text(raw, label)
        if self.kind == "switch":
            return self._switch(raw, label)
        read = parse_duration_s if self.kind == "duration" else self._number
        value = read(raw, label)  # type: ignore[arg-type]  # both refuse what they cannot read
        if not self.least <= value <= self.greatest:
            raise InvalidInput(f"{label} is {raw!r}; allowed: {self.allowed}.")
        return int(value) if self.kind == "integer" else value

    def _text(self, raw: object, label: str) -> str:
        if not isinstance(raw, str) or not raw.strip():
            raise InvalidInput(f"{label} is {raw!r}; give a text that is not empty.")
        return raw

    def _switch(self, raw: object, label: str) -> bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, str) and raw.lower() in words:
            return words[raw.lower()]
        raise InvalidInput(f"{label} is {raw!r}; allowed: true or false.")

    def _number(self, raw: object, label: str) -> float:
        try:
            value = math.nan if isinstance(raw, bool) else float(raw)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        whole = self.kind == "integer"
        if math.isnan(value) or (whole and not value.is_integer()):
            wanted = "a whole number" if whole else "a number"
            raise InvalidInput(f"{label} is {raw!r}; give {wanted}, {self.allowed}.")
        return value


def _option(default: Any, name: str, kind: Kind, description: str, **more: Any) -> Any:
    shown = f"{default:g}s" if kind == "duration" else str(default).lower()
    told = Option(name, kind, more.pop("shown", shown), description, **more)
    return field(default=default, metadata={"option": told})


@dataclass(frozen=True)
class Settings:
    """The options of a run, each in its own type; `OPTIONS` describes them."""

    period_s: float = _option(
        5.0, "period", "duration", "Time between two decisions.", least=0.1, greatest=3600
    )
    policy: str = _option("incremental", "policy", "text", "The scaling policy, by its name.")
    executors_min: int = _option(
        1, "executors-min", "integer", "Fewest executors.", least=1, greatest=10_000
    )
    executors_max: int = _option(
        4, "executors-max", "integer", "Most executors.", least=1, greatest=10_000
    )
    slots: int = _option(
        2, "slots", "integer", "Processors of one executor.", least=1, greatest=1024
    )
    executor_memory_mb: int = _option(
        1024, "executor-memory-mb", "integer", "Memory of one executor in MiB.",
        least=512, greatest=1_048_576,
    )  # fmt: skip
    key_groups: int = _option(
        8, "key-groups", "integer",
        "Partitions of each component's state; fixed for the life of a checkpoint.",
        least=1, greatest=100_000,
    )  # fmt: skip
    batch_interval_s: float = _option(
        0.001, "batch-interval", "duration",
        "Least time from the start of a batch to the next; a batch that takes longer delays it.",
        least=0.001, greatest=3600,
    )  # fmt: skip
    threshold_min: float = _option(
        0.5,
        "threshold-min",
        "number",
        "Input over capacity below which the incremental policy takes an executor away.",
        least=0,
        greatest=10,
    )
    threshold_max: float = _option(
        0.8,
        "threshold-max",
        "number",
        "Input over capacity above which the incremental policy adds an executor.",
        least=0,
        greatest=10,
    )
    cooldown_out_s: float = _option(
        10.0,
        "cooldown-out",
        "duration",
        "Least time from any act to scaling out.",
        least=0.001,
        greatest=86_400,
    )
    cooldown_in_s: float = _option(
        30.0,
        "cooldown-in",
        "duration",
        "Least time from any act to scaling in.",
        least=0.001,
        greatest=86_400,
    )
    aim: float = _option(
        1.0, "aim", "number",
        "Share of the latency bound that is planned for: policies plan for a mean latency, and "
        "part of the results take longer than that.",
        least=0.05, greatest=1,
    )  # fmt: skip
    foresight_s: float = _option(
        10.0,
        "foresight",
        "duration",
        "How far ahead the load is forecast: about the time until a new executor serves.",
        least=0.001,
        greatest=3600,
    )
    trend_window_s: float = _option(
        60.0, "trend-window", "duration",
        "Time over which autoscale, autoscale_plus and rlearn look back, and for which they plan.",
        least=0.1, greatest=86_400,
    )  # fmt: skip
    step_out: int = _option(
        2, "step-out", "integer", "Most executors added at once.", least=1, greatest=10_000
    )
    step_in: int = _option(
        1, "step-in", "integer", "Most executors removed at once.", least=1, greatest=10_000
    )
    scale_down_window_s: float = _option(
        0.001, "scale-down-window", "duration",
        "Scaling in goes no lower than the highest suggestion within this time.",
        least=0.001, greatest=86_400,
    )  # fmt: skip
    catch_up_s: float = _option(
        86_400.0, "catch-up", "duration",
        "Time within which a backlog that would be late is to be worked off; a day turns it off.",
        least=0.1, greatest=86_400,
    )  # fmt: skip
    utilisation_low: float = _option(
        0.0, "utilisation-low", "number",
        "Lower end of the band of utilisation in which nothing changes while results are in time.",
        least=0, greatest=1,
    )  # fmt: skip
    utilisation_high: float = _option(
        0.0, "utilisation-high", "number",
        "Upper end of that band; equal ends turn it off.", least=0, greatest=1,
    )  # fmt: skip
    quota_executor_s: float = _option(
        0.0, "quota", "number",
        "Executor-seconds within quota-window after which nothing scales out; 0 for no quota.",
        least=0, greatest=1e12,
    )  # fmt: skip
    quota_window_s: float = _option(
        3600.0, "quota-window", "duration", "The time over which a quota counts.",
        least=1, greatest=2_678_400,
    )  # fmt: skip
    excluded_times: str = _option(
        "none", "excluded-times", "text",
        "Times of the day (UTC) at which nothing changes, as '22:00-06:00,12:00-12:30', or none.",
    )  # fmt: skip
    stale_after_periods: int = _option(
        3,
        "stale-after-periods",
        "integer",
        "Periods after which an observation is too old to scale in on.",
        least=1,
        greatest=1000,
    )
    window: int = _option(
        60,
        "window",
        "integer",
        "Observations a policy may look back on.",
        least=1,
        greatest=100_000,
    )
    shadow: str = _option(
        "none", "shadow", "text",
        "Policies that decide beside the chosen one without acting, as 'drs,ds2' or 'all'; the "
        "history keeps what they would have done.",
    )  # fmt: skip
    allocation: str = _option(
        "none", "allocation", "text",
        "What places key groups on executors: none, milp, albic, flux, cola or potc.",
    )  # fmt: skip
    allocation_migrations: int = _option(
        10, "allocation-migrations", "integer", "Most key groups moved in one period.",
        least=1, greatest=100_000,
    )  # fmt: skip
    allocation_cost_s: float = _option(
        10.0, "allocation-cost", "duration",
        "Most time that tasks may spend on loading moved state in one period, added over them.",
        least=0.001, greatest=86_400,
    )  # fmt: skip
    allocation_tolerance: float = _option(
        10.0, "allocation-tolerance", "number",
        "Load distance that is left alone, in percent of a processor.", least=0, greatest=10_000,
    )  # fmt: skip
    allocation_time_s: float = _option(
        0.5, "allocation-time", "duration", "Time for looking for a placement, in one period.",
        least=0.001, greatest=3600,
    )  # fmt: skip
    shed_at_most: float = _option(
        0.0, "shed-at-most", "number",
        "Last resort: share of the rows that sources may drop while every processor is in use and "
        "the bound is missed; 0 never drops any.", least=0, greatest=0.95,
    )  # fmt: skip
    resort_after_s: float = _option(
        10.0, "resort-after", "duration",
        "How long the bound is missed with every processor in use before the last resort goes a "
        "step further: a cheaper form of an operator first, then shedding.",
        least=0.1, greatest=86_400,
    )  # fmt: skip
    resort_calm_s: float = _option(
        30.0, "resort-calm", "duration",
        "How long results are in time before the last resort goes a step back.",
        least=0.1, greatest=86_400,
    )  # fmt: skip
    adapt_interval: bool = _option(
        False,
        "adapt-interval",
        "switch",
        "Let batches begin as seldom as the latency bound allows, instead of back to back.",
    )
    dry_run: bool = _option(False, "dry-run", "switch", "Decide and remember, but never act.")
    channel_rows: int = _option(
        1_000_000,
        "channel-rows",
        "integer",
        "Most rows a component run apart takes from a channel in one batch.",
        least=1,
        greatest=2**53,
    )
    history: str = _option(
        "penstock.sqlite", "history", "text",
        "Where the history is kept: a file (SQLite) or an SQLAlchemy URL.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.allocation not in ALLOCATIONS:
            raise InvalidInput(
                f"allocation is {self.allocation!r}; allowed: {', '.join(ALLOCATIONS)}."
            )
        if self.executors_min > self.executors_max:
            raise InvalidInput(
                f"executors-min is {self.executors_min}; it must be at most executors-max, "
                f"which is {self.executors_max}."
            )
        read_spans(self.excluded_times, "excluded-times")
        if self.utilisation_low > self.utilisation_high:
            raise InvalidInput(
                f"utilisation-low is {self.utilisation_low:g}; it must be at most "
                f"utilisation-high, which is {self.utilisation_high:g}."
            )
        if self.threshold_min >= self.threshold_max:
            raise InvalidInput(
                f"threshold-min is {self.threshold_min:g}; it must be below threshold-max, "
                f"which is {self.threshold_max:g}."
            )


def _told(item: Field[Any]) -> Option:
    option = item.metadata["option"]
    assert isinstance(option, Option)
    return option


_FIELD_OF = {_told(item).name: item.name for item in fields(Settings)}
OPTIONS: tuple[Option, ...] = tuple(_told(item) for item in fields(Settings))


def read_settings(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    command_line: Mapping[str, object] | None = None,
) -> Settings:
    """Settings from all sources, the later over the earlier.

    Without a file given, `penstock.toml` in the working directory is read if there is one. A value
    of None on the command line means the option was not given.
    """
    environment = os.environ if environment is None else environment
    values = _from_file(file)
    for option in OPTIONS:
        if option.variable in environment:
            raw = environment[option.variable]
            values[_FIELD_OF[option.name]] = option.read(raw, option.variable)
        given = (command_line or {}).get(option.name)
        if given is not None:
            values[_FIELD_OF[option.name]] = option.read(given, f"--{option.name}")
    return Settings(**values)


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None and not DEFAULT_FILE.is_file():
        return {}
    path = file or DEFAULT_FILE
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}.") from error
    table = document.get(TABLE, {})
    if not isinstance(table, dict):
        raise InvalidInput(f"{path}: {TABLE} must be a table of options, not {table!r}.")
    known = {option.name: option for option in OPTIONS}
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise InvalidInput(f"{path}: unknown option {unknown[0]!r}; known: {', '.join(known)}.")
    return {_FIELD_OF[name]: known[name].read(raw, str(path)) for name, raw in table.items()}


def options_page() -> str:
    """docs/options.md."""
    lines = [
        "# Options",
        "",
        "Made from `src/penstock/config.py` by `python -m penstock.config > docs/options.md`.",
        "",
        "An option can be set in a TOML file (table `[penstock]` of `penstock.toml` in the",
        "working directory, or of the file given with `--config`), in the environment, and on the",
        "command line; the later wins over the earlier. Durations are written as `5s`, `250ms`,",
        "`2 minutes` or plain seconds.",
        "",
        "| option | environment | type | default | allowed | what it does |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{o.name}` | `{o.variable}` | {o.kind} | `{o.default}` | {o.allowed} "
        f"| {o.description} |"
        for o in OPTIONS
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(options_page())
