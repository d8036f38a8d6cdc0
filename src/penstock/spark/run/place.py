"""Where a run takes place: its cluster, its session, its plan, and what it leaves there."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.config import Settings
from penstock.control.history.store import HistoryStore
from penstock.errors import InvalidInput, Unavailable
from penstock.model.plan import TopologyPlan
from penstock.model.plan_document import Group, read_plan
from penstock.spark.act.executors import executor_settings
from penstock.spark.channels.source import ChannelSource
from penstock.spark.cluster import session
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.cluster.generated_code import code_settings
from penstock.spark.cluster.installed import find_java
from penstock.spark.cluster.session import start_driver_ahead
from penstock.spark.cluster.standing import cluster_settings
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.handles.messages import SPARK_ERRORS, first_line
from penstock.spark.run.first_executor import await_executor, told_while_waiting
from penstock.spark.run.slow_loop import proposed
from penstock.spark.sources.generator_source import GeneratorSource
from penstock.spark.sources.reader import PenstockSource

PlanName = str | TopologyPlan | tuple[Group, ...] | None
EMBEDDED = "embedded"
STANDING = "cluster"  # the one of `penstock cluster up`

# A session as `cluster.session` builds it, which can read all of our sources.
SOURCES = (GeneratorSource, PenstockSource, ChannelSource)
build_session = partial(session.build_session, sources=SOURCES)


def choose_plan(
    wanted: PlanName, apply: bool, store: HistoryStore, topology: str, checkpoint: Path
) -> PlanChoice:
    """What `--plan` and `--apply` ask for.

    `auto` follows the newest proposals of the history. Where a checkpoint has begun, its plan is
    kept unless state may be carried over.
    """
    if wanted is None:
        return PlanChoice(None, apply)
    if not isinstance(wanted, str):
        return PlanChoice(wanted, apply)
    if wanted == "none":
        return PlanChoice((), apply, as_declared=True)
    if wanted == "auto":
        begun = (checkpoint / "queries").is_dir()
        found = proposed(store, topology)
        if found.groups is None or (begun and not apply):
            return PlanChoice(None, apply)
        return PlanChoice(
            found.groups, apply, if_possible=True, orders=found.orders,
            expected=found.expected,
        )  # fmt: skip
    return PlanChoice(read_plan_file(Path(wanted)), apply)


def check_apart(apply: bool) -> None:
    """Refuse what cannot be carried out where components run apart."""
    if apply:
        raise InvalidInput(
            "apply is set, but components are to run apart, where each is a query with a "
            "checkpoint of its own that no other plan goes on with; choose another checkpoint."
        )


def read_plan_file(file: Path) -> TopologyPlan | tuple[Group, ...]:
    """The plan of a JSON file."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"--plan is {str(file)!r}, which cannot be read ({error.strerror}); give none, auto or "
            "a JSON file."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--plan {file} is not JSON: {error}.") from error
    return read_plan(document, f"--plan {file}")


@dataclass(frozen=True)
class Place:
    """Where a run takes place and what it leaves there."""

    master: str = "local[2]"  # or "embedded", "cluster", or a Spark master's URL
    checkpoint: Path | None = None  # a temporary one when not given
    log_file: Path | None = None  # Spark's own messages; beside the checkpoint when not given
    once: bool = False  # work off what is there and end
    warm_up: bool = False  # run a few rows through the operators before the streams begin
    apart: bool = False  # one query for each component, joined by channels
    processors: Mapping[str, int] | None = None  # that components apart begin with
    plan: PlanName = None  # None: as the checkpoint; "none", "auto", or a plan
    apply: bool = False  # carry state over to another plan, if the plan asks for it
    strict: bool = False  # refuse sources that have nothing to read yet
    accept_changes: bool = False  # go on although operators make their state otherwise


def open_session(
    name: str,
    settings: Settings,
    place: Place,
    checkpoint: Path,
    resources: ExitStack,
    fair: bool = False,
    more: Mapping[str, str] | None = None,
    operators: int = 0,
) -> SparkSession:
    """The session of a run, on a cluster of its own if it is to have one; both end with it.

    `fair` is for several runs that share it; `more` are further settings of Spark. JVMs keep the
    generated code of so many `operators`.
    """
    master = place.master
    cluster: EmbeddedCluster | None = None
    log_file = place.log_file or checkpoint.parent / f"{checkpoint.name}.spark.log"
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{log_file.parent} cannot be made: {error.strerror}.") from error
    extra = dict(more or {})
    if master == EMBEDDED:
        cluster = _own_cluster(settings, log_file, resources)
        extra |= cluster.settings
        master = cluster.master_url
    elif master == STANDING:
        extra |= cluster_settings()
        master = extra["spark.master"]
    if not master.startswith("local"):
        extra |= executor_settings(settings.executors_min, settings.executors_max, settings.slots)
        extra["spark.executor.memory"] = f"{settings.executor_memory_mb}m"
    extra |= code_settings(operators)
    if place.apart or fair:
        extra["spark.scheduler.mode"] = "FAIR"  # none waits for another's tasks
    try:
        with told_while_waiting(master):
            session = build_session(
                name, master, key_groups=settings.key_groups, log_file=log_file,
                quick_start=cluster is not None, extra=extra,
            )  # fmt: skip
    except SPARK_ERRORS as error:
        raise Unavailable(
            f"Spark does not start on {master}: {first_line(error)}; `penstock doctor` says what "
            "is missing, --debug shows the whole trace."
        ) from error
    resources.callback(session.stop)
    if cluster is not None:
        cluster.await_worker()
    elif not master.startswith("local"):
        await_executor(session, master, settings)
    return session


def _own_cluster(settings: Settings, log_file: Path, resources: ExitStack) -> EmbeddedCluster:
    """A cluster for one run, beside the driver's JVM: most of a start is waiting."""
    find_java()
    slots = settings.slots * settings.executors_max
    memory_mb = settings.executor_memory_mb * settings.executors_max
    with ThreadPoolExecutor(2) as beside:
        # If that fails, building the session does too, and says why.
        beside.submit(start_driver_ahead, settings.key_groups, log_file, True)
        # What PySpark imports, pandas among it, as soon as a list or dict goes to the JVM.
        beside.submit(import_module, "pyspark.testing.utils")
        cluster = EmbeddedCluster(slots, memory_mb)
        resources.callback(cluster.stop)
        cluster.start_master()
    return cluster
