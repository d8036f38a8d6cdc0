"""What a user touches from Python."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from penstock.config import Settings
from penstock.config.attached import READ, refuse_already_set
from penstock.config.sources import from_keywords
from penstock.control.resolved_settings import resolved_settings
from penstock.control.summary import RunSummary
from penstock.errors import InvalidInput, documented
from penstock.model import topology
from penstock.model.durations import parse_duration_s

if TYPE_CHECKING:
    from penstock.spark.run.attached import Attached, AttachedSeveral
    from penstock.spark.run.elastic import ElasticRun

# What `attach` does unless the file, the environment or a keyword says otherwise.
ATTACH_DEFAULTS = {"allocation": "milp"}


class Topology(topology.Topology):
    """A graph of operators with sources, sinks and a latency bound, that can be run."""

    def run(
        self,
        *,
        master: str = "local[2]",
        checkpoint: str | Path | None = None,
        duration: str | float | None = None,
        once: bool = False,
        apart: bool = False,
        processors: Mapping[str, int] | None = None,
        plan: Any = None,
        apply: bool = False,
        accept_changes: bool = False,
        strict: bool = False,
        config: str | Path | None = None,
        **options: Any,
    ) -> RunSummary:
        """Run until bounded streams are worked off, the duration is over, or Ctrl-C.

        `master` is a Spark master, or "embedded" for a cluster on this machine that lives as long
        as the run. `apart` gives each component a query and processors of its own; `processors`
        says how many each starts with. `plan` is a TopologyPlan, a JSON file, "none" or "auto",
        and says which operators share a shuffle; without it, the checkpoint does. `apply` carries
        the checkpoint's state over to another plan. `accept_changes` goes on with a checkpoint
        although operators make their state otherwise than it was begun with. `strict` refuses
        a source whose folder is not there or holds no file that fits, instead of waiting for one.

        Further options are those of `penstock docs options` by their Python names, such as
        `executors_max=8`, `period_s="2s"` or `policy_options={"window_s": 30}`; None or "off"
        turns one off. They win over PENSTOCK_* variables, which win over the file `config`
        (`penstock.toml` in the working directory unless another is named).
        """
        limit_s = None if duration is None else parse_duration_s(duration, "duration")
        running = self.start(
            master=master, checkpoint=checkpoint, once=once, apart=apart, processors=processors,
            plan=plan, apply=apply, accept_changes=accept_changes, strict=strict, config=config,
            **options,
        )  # fmt: skip
        with running as run:
            with suppress(KeyboardInterrupt):  # the user's way to end a run without end
                run.wait(limit_s)
            return run.finish()

    def start(
        self,
        *,
        master: str = "local[2]",
        checkpoint: str | Path | None = None,
        once: bool = False,
        apart: bool = False,
        processors: Mapping[str, int] | None = None,
        plan: Any = None,
        apply: bool = False,
        accept_changes: bool = False,
        strict: bool = False,
        config: str | Path | None = None,
        **options: Any,
    ) -> "ElasticRun":
        """The same run as a context manager, for programs that act while it goes on.

        It takes what `run` takes, but for the duration. `run.streams` lets streams join and leave,
        `run.rows(sink)` shows what a Memory sink holds, `run.wait(seconds)` waits, and leaving the
        context ends it.
        """
        if "channel_rows" in options and not apart:
            raise InvalidInput("channel_rows says nothing without apart=True; give that too.")
        settings = _settings(options, config)
        from penstock.spark.run.elastic import ElasticRun  # Spark is only needed to run
        from penstock.spark.run.place import Place

        place = Place(
            master, None if checkpoint is None else Path(checkpoint), once=once, apart=apart,
            processors=processors, plan=plan, apply=apply, accept_changes=accept_changes,
            strict=strict,
        )  # fmt: skip
        return ElasticRun(self, settings, place)


@overload
def attach(
    target: Any,
    max_latency: str | float,
    executors: tuple[int, int] | None = None,
    *,
    config: str | Path | None = None,
    **options: Any,
) -> "Attached": ...
@overload
def attach(
    target: Any,
    max_latency: Mapping[str, str | float],
    executors: tuple[int, int] | None = None,
    *,
    config: str | Path | None = None,
    **options: Any,
) -> "AttachedSeveral": ...
def attach(
    target: Any,
    max_latency: str | float | Mapping[str, str | float],
    executors: tuple[int, int] | None = None,
    *,
    config: str | Path | None = None,
    **options: Any,
) -> "Attached | AttachedSeveral":
    """Keep a latency bound for a streaming query that runs, unchanged, with few executors.

    `target` is a running query, or the session for all of its queries. Executors stay between the
    two numbers of `executors`. Further options are those of `penstock docs options`, as for
    `Topology.run`, such as `dry_run=True` for advice only, but for those that the query and its
    session have answered, such as `slots`: they are refused here and not read elsewhere. State is
    balanced over the executors as it grows (`allocation="off"` leaves it where it is). What cannot
    be done on a cluster is given as advice. Keep what is returned: `detach()` ends the controller
    and returns a summary.

    For a session, `max_latency` may be a bound for each query by its name, such as
    `{"orders": "2s", "audit": "1m"}`: each then has a controller, and the session as many
    executors as the query that needs most. What is returned holds the controllers by name.
    """
    bounds = max_latency if isinstance(max_latency, Mapping) else {"": max_latency}
    if not bounds:
        raise InvalidInput("attach(max_latency) is empty; give a bound, or one for each query.")
    bounds_s = {
        name: parse_duration_s(
            bound, f"attach(max_latency[{name!r}])" if name else "attach(max_latency)"
        )
        for name, bound in bounds.items()
    }
    with documented("attach"):
        refuse_already_set(options)
    settings = _settings({**options, **_bounds(executors)}, config, ATTACH_DEFAULTS, READ)
    from penstock.spark.run.attached import Attached, AttachedSeveral  # Spark, only where needed

    if isinstance(max_latency, Mapping) and not hasattr(target, "streams"):
        raise InvalidInput(
            f"attach(max_latency) is a bound for each query, but attach(target) is "
            f"{type(target).__name__}; give the session."
        )
    with documented("attach"):
        if isinstance(max_latency, Mapping):
            return AttachedSeveral(target, bounds_s, settings)
        return Attached(target, bounds_s[""], settings)


def _bounds(executors: object) -> dict[str, int]:
    if executors is None:
        return {}
    if not (
        isinstance(executors, tuple)
        and len(executors) == 2
        and all(isinstance(number, int) and number >= 1 for number in executors)
    ):
        raise InvalidInput(
            f"attach(executors) is {executors!r}; give the least and the most, such as (1, 8)."
        )
    return {"executors_min": executors[0], "executors_max": executors[1]}


def _settings(
    options: Mapping[str, Any],
    config: str | Path | None,
    defaults: Mapping[str, Any] | None = None,
    only: Collection[str] | None = None,
) -> Settings:
    file = None if config is None else Path(config)
    return resolved_settings(from_keywords(options), defaults=defaults, file=file, only=only)
