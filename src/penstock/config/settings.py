"""Every option of a run, with its default, range and description, and which values exclude others.

docs/options.md is made from them by `make docs`.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from penstock.config.option import OFF, ByPolicy, Kind, Option, split_names
from penstock.errors import InvalidInput
from penstock.model.schedule import read_schedule

ALLOCATIONS = ("milp", "albic", "flux", "cola", "potc", "resource-aware")
OBJECTIVES = ("equality", "traffic", "resource")
POLICY_OPTIONS = "policy_options"
DAY_S = 86_400.0
# Policies that stay in time more often with these two (penstock docs arena). The others keep by
# themselves what they may need again, or were not tried.
STEADIED = ("autoscale", "autoscale_plus", "drs", "ds2", "incremental")
USUAL_SCALE_DOWN_WINDOW_S = 60.0
USUAL_CATCH_UP_S = 30.0
_STEADIED = f" with {', '.join(STEADIED)}; else {OFF}"


def _option(default: Any, name: str, kind: Kind, description: str, **more: Any) -> Any:
    shown = more.pop("shown", str(default).lower())
    if kind == "duration" and isinstance(default, float):
        shown = f"{default:g}s" if default % DAY_S else f"{default / DAY_S:g}d"
    option = Option(name, kind, OFF if default is None else shown, description, **more)
    return field(default=default, metadata={"option": option})


@dataclass(frozen=True)
class Settings:
    """The options of a run, each in its own type; None where one is off.

    `OPTIONS` describes them. Whoever gives values that a user wrote does it through
    `control.resolved_settings`, which checks each of them.
    """

    period_s: float = _option(
        5.0, "period", "duration", "Time between two decisions.", least=0.1, greatest=3600
    )
    policy: str = _option(
        "promise", "policy", "choice", "The scaling policy (penstock docs scaling)."
    )
    share: float | None = field(
        default=None,
        metadata={
            "option": Option(
                "share", "number", "the topology's, which is 0.99 unless it says otherwise",
                "Share of the results that must keep the latency bound; the policy promise plans "
                "for it.",
                least=0.5, greatest=0.9999,
            )
        },
    )  # fmt: skip
    policy_options: Mapping[str, Any] = field(
        default_factory=dict,
        hash=False,
        metadata={
            "option": Option(
                "policy-options",
                "table",
                "",
                "Options of the policy itself, listed below; on the command line "
                "`--policy-option NAME=VALUE`, once for each.",
            )
        },
    )
    executors_min: int = _option(
        1, "executors-min", "integer", "Smallest number of executors.", least=1, greatest=10_000
    )
    executors_max: int = _option(
        4, "executors-max", "integer", "Largest number of executors.", least=1, greatest=10_000
    )
    schedule: str | None = _option(
        None, "schedule", "schedule",
        "Least and most executors by day of the week and time of day (UTC), so that a known rush "
        "is met before it comes.",
        can_be_off=True,
    )  # fmt: skip
    slots: int = _option(
        2, "slots", "integer", "Processors of one executor.", least=1, greatest=1024
    )
    executor_memory_mb: int = _option(
        1024, "executor-memory-mb", "integer", "Memory of one executor in MiB.",
        least=512, greatest=1_048_576,
    )  # fmt: skip
    key_groups: int = _option(
        8, "key-groups", "integer",
        "Partitions of each component's state; `penstock key-groups` changes a checkpoint's.",
        least=1, greatest=100_000,
    )  # fmt: skip
    batch_interval_s: float | None = _option(
        None, "batch-interval", "duration",
        "Time from the start of one batch to the start of the next, unless a batch takes longer; "
        "off runs batches back to back.",
        least=0.001, greatest=3600, can_be_off=True,
    )  # fmt: skip
    cooldown_out_s: float | None = _option(
        10.0, "cooldown-out", "duration", "How long after any change nothing is scaled out.",
        least=0.001, greatest=86_400, can_be_off=True,
    )  # fmt: skip
    cooldown_in_s: float | None = _option(
        30.0, "cooldown-in", "duration", "How long after any change nothing is scaled in.",
        least=0.001, greatest=86_400, can_be_off=True,
    )  # fmt: skip
    aim: float = _option(
        1.0, "aim", "number",
        "Share of the latency bound that drs plans for and guards go by: a mean is planned for, "
        "and some results take longer. Not for promise, which plans for the share.",
        least=0.05, greatest=1,
    )  # fmt: skip
    foresight_s: float = _option(
        10.0, "foresight", "duration",
        "How far ahead the load is forecast: about as long as a new executor takes to start.",
        least=0.001, greatest=3600,
    )  # fmt: skip
    step_out: int | None = _option(
        None, "step-out", "integer", "Most executors added at once.", least=1, greatest=10_000,
        can_be_off=True,
    )  # fmt: skip
    step_in: int | None = _option(
        None, "step-in", "integer", "Most executors removed at once.", least=1, greatest=10_000,
        can_be_off=True,
    )  # fmt: skip
    scale_down_window_s: float | ByPolicy | None = _option(  # noqa: RUF009 - a field
        ByPolicy.USUAL, "scale-down-window", "duration",
        "Scaling in goes no lower than the highest number suggested within this time.",
        least=0.001, greatest=86_400, can_be_off=True,
        shown=f"{USUAL_SCALE_DOWN_WINDOW_S:g}s{_STEADIED}",
    )  # fmt: skip
    catch_up_s: float | ByPolicy | None = _option(  # noqa: RUF009 - a field
        ByPolicy.USUAL, "catch-up", "duration",
        "Time within which a backlog that would be late is to be worked off, with more "
        "processors if need be.",
        least=0.1, greatest=86_400, can_be_off=True, shown=f"{USUAL_CATCH_UP_S:g}s{_STEADIED}",
    )  # fmt: skip
    utilisation_low: float | None = _option(
        None, "utilisation-low", "number",
        "Lower end of the band of utilisation within which nothing changes while results are in "
        "time.",
        least=0, greatest=1, can_be_off=True,
    )  # fmt: skip
    utilisation_high: float | None = _option(
        None, "utilisation-high", "number", "Upper end of that band.",
        least=0, greatest=1, can_be_off=True,
    )  # fmt: skip
    quota_executor_s: float | None = _option(
        None, "quota", "number",
        "Executor-seconds within quota-window after which nothing is scaled out.",
        least=1, greatest=1e12, can_be_off=True,
    )  # fmt: skip
    quota_window_s: float = _option(
        3600.0, "quota-window", "duration", "The time over which the quota is counted.",
        least=1, greatest=2_678_400,
    )  # fmt: skip
    excluded_times: str | None = _option(
        None, "excluded-times", "times", "Times of day (UTC) during which nothing changes.",
        can_be_off=True,
    )  # fmt: skip
    stale_after_periods: int = _option(
        3, "stale-after-periods", "integer",
        "Periods after which an observation is too old to scale in on.",
        least=1, greatest=1000,
    )  # fmt: skip
    window: int = _option(
        60, "window", "integer", "How many past observations a policy sees.",
        least=1, greatest=100_000,
    )  # fmt: skip
    shadow: str | None = _option(
        None, "shadow", "names",
        "Policies that decide alongside the acting one but never act; the history keeps what "
        "they would have done.",
        can_be_off=True,
    )  # fmt: skip
    fusion_beta: float | None = _option(
        None, "fusion-beta", "number",
        "Most rows of state (of 100 bytes) that a fused component may be expected to move in ten "
        "minutes; off sets no limit.",
        least=1, greatest=1e15, can_be_off=True,
    )  # fmt: skip
    fusion_capacity: float | None = _option(
        None, "fusion-capacity", "number",
        "Rows that one instance of a component takes in a minute, where proposals to fuse price "
        "the state it moves; off derives it from the rows seen.",
        least=1, greatest=1e15, can_be_off=True,
    )  # fmt: skip
    fusion_tolerance: float = _option(
        0.2, "fusion-tolerance", "number",
        "How far an instance may be from the mean load, as a share of it, before proposals to fuse "
        "count state as moved.",
        least=0, greatest=10,
    )  # fmt: skip
    allocation: str | None = _option(
        None, "allocation", "choice", "How key groups are placed on executors.",
        choices=ALLOCATIONS, can_be_off=True,
    )  # fmt: skip
    allocation_migrations: int = _option(
        10, "allocation-migrations", "integer", "Most key groups moved in one period.",
        least=1, greatest=100_000,
    )  # fmt: skip
    allocation_cost_s: float = _option(
        10.0, "allocation-cost", "duration",
        "Most time that tasks may spend in one period loading state that moved, summed over all "
        "of them.",
        least=0.001, greatest=86_400,
    )  # fmt: skip
    allocation_tolerance: float = _option(
        10.0, "allocation-tolerance", "number",
        "Load distance that is left as it is, in percent of a processor.",
        least=0, greatest=10_000,
    )  # fmt: skip
    allocation_objective: str = _option(
        "resource", "allocation-objective", "choice",
        "With allocation=resource-aware, which keeps to what operators reserve of processor and "
        "memory: even usage of processors (equality), least traffic between executors (traffic), "
        "or least traffic on few executors (resource).",
        choices=OBJECTIVES,
    )  # fmt: skip
    albic_pairs: int = _option(
        1, "albic-pairs", "integer",
        "With allocation=albic: most pairs of key groups that are put on one node in one period.",
        least=1, greatest=100_000,
    )  # fmt: skip
    albic_distance: float = _option(
        10.0, "albic-distance", "number",
        "With allocation=albic: load distance (maxLD) above which less is collocated, in percent "
        "of a processor.",
        least=0, greatest=10_000,
    )  # fmt: skip
    albic_partition_load: float = _option(
        25.0, "albic-partition-load", "number",
        "With allocation=albic: load (maxPL) of key groups that move as one, in percent of a node; "
        "one pair may always have more.",
        least=0, greatest=10_000,
    )  # fmt: skip
    albic_partition_step: float = _option(
        5.0, "albic-partition-step", "number",
        "With allocation=albic: by how much maxPL is lowered (stepPL) while the load distance is "
        "too great.",
        least=0.1, greatest=10_000,
    )  # fmt: skip
    allocation_time_s: float = _option(
        0.5, "allocation-time", "duration",
        "How long each period may be spent searching for a better placement.",
        least=0.001, greatest=3600,
    )  # fmt: skip
    shed_at_most: float | None = _option(
        None, "shed-at-most", "number",
        "Last resort: largest share of the rows that sources may drop while every processor is "
        "in use and the bound is missed; off never drops any.",
        least=0.01, greatest=0.95, can_be_off=True,
    )  # fmt: skip
    resort_after_s: float = _option(
        10.0, "resort-after", "duration",
        "How long the bound must be missed with every processor in use before the last resort "
        "goes a step further: first to a cheaper form of an operator, then to shedding.",
        least=0.1, greatest=86_400,
    )  # fmt: skip
    resort_undo_after_s: float = _option(
        30.0, "resort-undo-after", "duration",
        "How long results must be in time before the last resort goes a step back.",
        least=0.1, greatest=86_400,
    )  # fmt: skip
    adapt_interval: bool = _option(
        False, "adapt-interval", "switch",
        "Start batches as rarely as the latency bound allows, instead of back to back.",
    )  # fmt: skip
    dry_run: bool = _option(
        False, "dry-run", "switch", "Decide and record the decisions, but carry none out."
    )
    channel_rows: int = _option(
        1_000_000, "channel-rows", "integer",
        "Most rows that a component run apart takes from a channel in one batch.",
        least=1, greatest=2**53,
    )  # fmt: skip
    history: str = _option(
        "penstock.sqlite", "history", "text",
        "Where the history is kept: a file (SQLite) or an SQLAlchemy URL.",
    )  # fmt: skip
    history_age_s: float | None = _option(
        90 * DAY_S, "history-age", "duration",
        "How long the history keeps what was observed and decided; looked after every hour.",
        least=3600, greatest=3650 * DAY_S, can_be_off=True,
    )  # fmt: skip
    history_mb: int | None = _option(
        1024, "history-mb", "integer",
        "Most room that the history takes before its oldest periods go.",
        least=1, greatest=2**30, can_be_off=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_together(vars(self))

    def usual_or_given(self, given: float | ByPolicy | None, usual_s: float) -> float | None:
        """What holds for an option that only some policies have a use for."""
        if isinstance(given, ByPolicy):
            return usual_s if self.policy in STEADIED else None
        return given


def check_together(values: Mapping[str, Any], called: Callable[[str], str] | None = None) -> None:
    """Refuse values that are allowed one by one but not together.

    `called` gives the name that the user knows a field by; else it is the option's.
    """
    called = called or _name_of
    if values["executors_min"] > values["executors_max"]:
        raise InvalidInput(
            f"{called('executors_min')} is {values['executors_min']}; it must be at most "
            f"{called('executors_max')}, which is {values['executors_max']}."
        )
    if values["schedule"] is not None:
        check_schedule(values, called)
    low, high = values["utilisation_low"], values["utilisation_high"]
    ends = (called("utilisation_low"), called("utilisation_high"))
    if (low is None) != (high is None):
        off, on = ends if low is None else ends[::-1]
        raise InvalidInput(f"{off} is {OFF} but {on} is not; give both ends of the band or none.")
    if low is not None and not low < high:
        raise InvalidInput(f"{ends[0]} is {low:g}; it must be below {ends[1]}, which is {high:g}.")
    shadow, policy = values["shadow"], values["policy"]
    if shadow is not None and policy in split_names(shadow):
        raise InvalidInput(
            f"{called('shadow')} is {shadow!r}; {policy} is the policy that acts already."
        )


def check_schedule(values: Mapping[str, Any], called: Callable[[str], str]) -> None:
    """Refuse rules that ask for executors outside the bounds."""
    label = called("schedule")
    for rule in read_schedule(values["schedule"], label).rules:
        if rule.least is not None and rule.least > values["executors_max"]:
            raise InvalidInput(
                f"{label} asks for at least {rule.least} executors; {called('executors_max')} is "
                f"{values['executors_max']}."
            )
        if rule.most is not None and rule.most < values["executors_min"]:
            raise InvalidInput(
                f"{label} allows at most {rule.most} executors; {called('executors_min')} is "
                f"{values['executors_min']}."
            )


def _described(item: Field[Any]) -> Option:
    option = item.metadata["option"]
    assert isinstance(option, Option)
    return option


def _name_of(field: str) -> str:
    return _described(Settings.__dataclass_fields__[field]).name


OPTIONS: tuple[Option, ...] = tuple(_described(item) for item in fields(Settings))
FIELD_OF = {_described(item).name: item.name for item in fields(Settings)}  # option -> Python name
OPTION_OF = {item.name: _described(item) for item in fields(Settings)}
