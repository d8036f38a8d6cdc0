"""What a user touches from Python."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.config import Settings, read_settings
from penstock.control.summary import RunSummary
from penstock.errors import InvalidInput
from penstock.model import topology
from penstock.model.durations import parse_duration_s

if TYPE_CHECKING:
    from penstock.spark.run.attached import Attached
    from penstock.spark.run.elastic import ElasticRun


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
        **options: Any,
    ) -> RunSummary:
        """Run until bounded streams are worked off, the duration is over, or Ctrl-C.

        `master` is a Spark master, or "embedded" for a cluster on this machine that lives as long
        as the run. `apart` gives each component a query and processors of its own; `processors`
        says how many each begins with. Further options are those of docs/options.md, by their
        Python names, such as `policy="incremental"` or `executors_max=8`. `plan` is a TopologyPlan,
        a JSON file, "none" or "auto", and says which operators share a shuffle; without it, the
        checkpoint does. `apply` carries the checkpoint's state over to another plan.
        """
        from penstock.spark.run.elastic import ElasticRun  # Spark is only needed to run
        from penstock.spark.run.place import Place

        limit_s = None if duration is None else parse_duration_s(duration, "duration")
        kept = None if checkpoint is None else Path(checkpoint)
        place = Place(
            master, kept, once=once, apart=apart, processors=processors, plan=plan, apply=apply
        )
        with ElasticRun(self, _settings(options), place) as run:
            with suppress(KeyboardInterrupt):  # the user's way to end a run without end
                run.wait(limit_s)
            return run.finish()

    def start(
        self,
        *,
        master: str = "local[2]",
        checkpoint: str | Path | None = None,
        once: bool = False,
        **options: Any,
    ) -> "ElasticRun":
        """The same run as a context manager, for programs that act while it goes on.

        `run.streams` lets streams join and leave, `run.rows(sink)` shows what a Memory sink holds,
        `run.wait(seconds)` waits, and leaving the context ends it.
        """
        from penstock.spark.run.elastic import ElasticRun
        from penstock.spark.run.place import Place

        place = Place(master, None if checkpoint is None else Path(checkpoint), once=once)
        return ElasticRun(self, _settings(options), place)


def attach(
    target: Any,
    max_latency: str | float,
    executors: tuple[int, int] = (1, 4),
    **options: Any,
) -> "Attached":
    """Keep a latency bound for a streaming query that runs, unchanged, with few executors.

    `target` is a running query, or the session for all of its queries. Executors stay between the
    two numbers. Further options are those of docs/options.md, such as `dry_run=True` for advice
    only. State is balanced over the executors as it grows (`allocation="none"` leaves it where it
    is). What may not be done on a cluster is told as advice. Keep what is returned: `detach()`
    ends the controller and tells what it came to.
    """
    from penstock.spark.run.attached import Attached  # Spark is only needed to run

    if not (
        isinstance(executors, tuple)
        and len(executors) == 2
        and all(isinstance(number, int) and number >= 1 for number in executors)
    ):
        raise InvalidInput(
            f"attach(executors) is {executors!r}; give the least and the most, such as (1, 8)."
        )
    least, most = executors
    bound_s = parse_duration_s(max_latency, "attach(max_latency)")
    usual = {"policy": "drs", "allocation": "milp"}
    chosen = {**usual, **options, "executors_min": least, "executors_max": most}
    return Attached(target, bound_s, _settings(chosen, read_settings()))


def _settings(options: dict[str, Any], base: Settings | None = None) -> Settings:
    known = Settings.__dataclass_fields__
    for name in options:
        if name not in known:
            raise InvalidInput(f"option {name!r} is unknown; known: {', '.join(known)}.")
    return replace(base or Settings(), **options)
