"""What is refused before Spark is started, which takes seconds: a mistake is known at once."""

import difflib
import logging
import os
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from penstock.config import Settings
from penstock.errors import (
    Infeasible,
    InvalidInput,
    InvalidTopology,
    PenstockError,
    Unavailable,
    documented,
)
from penstock.model.sinks import Files, ToChannel
from penstock.model.topology import Topology
from penstock.scaling.policies.policy import ScalingPolicy, monitored_s
from penstock.spark import handles
from penstock.spark.checkpoint.layout import begun, refuse_if_in_use
from penstock.spark.cluster.master_page import workers_of
from penstock.spark.cluster.standing import cluster_status
from penstock.spark.compile.builder import BuiltTopology
from penstock.spark.run.first_executor import refuse_what_cannot_fit
from penstock.spark.run.place import EMBEDDED, STANDING, Place
from penstock.spark.sinks.ownership import refuse_other_runs
from penstock.spark.sinks.places import local_path
from penstock.spark.sources.running.kinds import running_sources

log = logging.getLogger(__name__)

NAMES = (EMBEDDED, STANDING, "local", "yarn")
ALLOWED = "local[N], embedded, cluster, spark://HOST:PORT, yarn, or k8s://URL"
CONNECT_LIMIT_S = 5.0
_LOCAL = re.compile(r"local|local\[(\*|[1-9]\d*)(, *[1-9]\d*)?\]|local-cluster\[.+\]")


@documented("last-resort")
def check_last_resort(topology: Topology, settings: Settings, apart: bool) -> None:
    """Refuse a last resort, or an interval of batches, that could never be carried out."""
    wanted = {
        f"shed-at-most is {settings.shed_at_most}": settings.shed_at_most is not None,
        "adapt-interval is true": settings.adapt_interval,
        f"operator {next(iter(topology.variants), '')!r} has a cheaper form": bool(
            topology.variants
        ),
        f"operator {next(iter(topology.forms), '')!r} has several forms": bool(topology.forms),
    }
    asked = next((words for words, wants in wanted.items() if wants), None)
    needed = {"shed", "interval_s"}
    foreign = [n for n, s in running_sources(topology).items() if not needed <= s.orders]
    if asked is not None and apart:
        raise InvalidInput(f"{asked}; that is possible only where components run together.")
    if foreign and (settings.shed_at_most is not None or settings.adapt_interval):
        raise InvalidInput(
            f"{asked}, but source {foreign[0]!r} cannot do that; only a Generator and Streams can."
        )


def check_attached(settings: Settings) -> None:
    """Refuse the same for queries whose sources are not Penstock's own."""
    for asked, wants in (
        (f"shed-at-most is {settings.shed_at_most}", settings.shed_at_most is not None),
        ("adapt-interval is true", settings.adapt_interval),
    ):
        if wants:
            raise InvalidInput(f"{asked}, but the sources of an attached query cannot do that.")


def windows_of(built: BuiltTopology) -> dict[str, float]:
    """The longest window that each operator computes over, in seconds; those that have any."""
    found = built.inspection.operators.items()
    return {name: one.window_s for name, one in found if one.window_s > 0}


def windows_of_queries(queries: Iterable[StreamingQuery]) -> dict[str, float]:
    """The same of queries that were started without Penstock, by the name of each."""
    found = {}
    for query in queries:
        try:
            window_s = handles.query_window_s(query)
        except Unavailable as reason:
            log.warning("windows of query %s are not known: %s", query.name or query.id, reason)
            continue
        if window_s > 0:
            found[str(query.name or query.id)] = window_s
    return found


def trigger_of_queries(queries: Iterable[StreamingQuery]) -> float:
    """The least time between two batches that holds for all of them; 0 for back to back."""
    found = []
    for query in queries:
        try:
            found.append(handles.trigger_interval_s(query))
        except Unavailable as reason:
            log.warning("the trigger of %s is not known: %s", query.name or query.id, reason)
            found.append(0.0)
    return min(found, default=0.0)


@documented("options")
def check_interval(interval_s: float, share: float, max_latency_s: float, field: str) -> None:
    """Refuse batches that start so rarely that rows wait longer than the bound allows.

    A row waits between 0 and the interval for its batch to begin, whatever is added.
    """
    if share * interval_s < max_latency_s:
        return
    raise InvalidInput(
        f"{field} is {interval_s:g} s; rows wait up to that for a batch, and {100 * share:g}% of "
        f"the results cannot be within the max_latency of {max_latency_s:g} s unless it is below "
        f"{max_latency_s / share:.3g} s."
    )


def check_monitoring_window(
    policy: ScalingPolicy, windows: Mapping[str, float], kind: str = "operator"
) -> None:
    """Refuse a policy that would measure parts of the windows that operators compute over.

    Kotto-Kombi 2018, ch. 5 s. 2.
    """
    name, longest_s = max(windows.items(), key=lambda pair: pair[1], default=("", 0.0))
    if monitored_s(policy) <= longest_s:
        raise InvalidInput(
            f"policy {policy.name}: window_s is {monitored_s(policy):g}, but {kind} {name!r} "
            f"computes over windows of {longest_s:g} s; give more than that, as in "
            f"--policy-option window_s={1.5 * longest_s:g} or "
            f'policy_options={{"window_s": {1.5 * longest_s:g}}}.'
        )


def check_before_start(
    topology: Topology, settings: Settings, place: Place, checkpoint: Path
) -> None:
    """Refuse what cannot go well, in the order in which a person would mend it."""
    if not place.once:
        share = topology.share if settings.share is None else settings.share
        interval_s = settings.batch_interval_s or 0.0
        check_interval(interval_s, share, topology.max_latency_s, "batch-interval")
    check_master(place.master)
    if place.master == STANDING:
        _check_room(settings)
    elif place.master.startswith("spark://"):
        refuse_what_cannot_fit(workers_of(place.master), place.master, settings)
    _check_sources(topology, place.strict)
    with documented("operations"):
        check_folder(checkpoint, "checkpoint")
    refuse_if_in_use(checkpoint)
    _check_sinks(topology, checkpoint)


@documented("clusters")
def check_master(master: str) -> None:
    """Refuse a master that is misspelt, or a standalone one where nothing answers."""
    if master.startswith("spark://"):
        _check_answers(master)
    elif not (master in NAMES or _LOCAL.fullmatch(master) or master.startswith("k8s://")):
        near = difflib.get_close_matches(master, NAMES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InvalidInput(f"master is {master!r}; {hint}allowed: {ALLOWED}.")


def _check_answers(master: str) -> None:
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise InvalidInput(f"master is {master!r}; write spark://HOST:PORT.")
        try:
            with closing(socket.create_connection((host, int(port)), CONNECT_LIMIT_S)):
                return
        except (OSError, OverflowError) as error:
            reasons.append(str(error.args[-1] if error.args else error))
    raise Unavailable(
        f"master {master} cannot be reached: {reasons[0]}; start it, or give another ({ALLOWED})."
    )


@documented("clusters")
def _check_room(settings: Settings) -> None:
    """Whether the first executors fit on the cluster of `penstock cluster up`, once it is free."""
    found = cluster_status()
    if not found.up:
        raise Unavailable(found.detail)
    fewest, slots, memory_mb = (
        settings.executors_min, settings.slots, settings.executor_memory_mb,
    )  # fmt: skip
    if fewest * slots > found.slots:
        raise Infeasible(
            f"{fewest} executors of {slots} slots cannot fit on the cluster, which has "
            f"{found.slots} slots in all; give fewer --slots or --executors-min, or start a larger "
            "one (penstock cluster up --slots N)."
        )
    if fewest * memory_mb > found.memory_mb:
        raise Infeasible(
            f"{fewest} executors of {memory_mb} MB cannot fit on the cluster, which has "
            f"{found.memory_mb} MB in all; give a smaller --executor-memory-mb, or start a larger "
            "one (penstock cluster up --memory-mb MB)."
        )


def check_folder(folder: Path, whose: str) -> None:
    """Refuse a folder that is a file, or that cannot be made or written."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise InvalidInput(f"{whose}: {folder} cannot be a folder, {there} is a file.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InvalidInput(f"{whose}: {folder} cannot be written, {there} is not writable.")


def _check_sources(topology: Topology, strict: bool) -> None:
    """Say what has nothing to read yet: streams may come later, or the place is misspelt."""
    for name, source in running_sources(topology).items():
        try:
            reason = source.nothing_there()
        except PenstockError as error:
            raise InvalidTopology(f"source {name!r}: {error}") from error
        if reason is not None and strict:
            raise InvalidInput(
                f"source {name!r}: {reason}; without --strict the run would wait for a stream."
            )
        if reason is not None:
            log.warning("source %r: %s; the run waits for the first stream", name, reason)


@documented("reliability")
def _check_sinks(topology: Topology, checkpoint: Path) -> None:
    goes_on, state = begun(checkpoint), checkpoint.absolute()
    for binding in topology.sinks:
        sink = binding.sink
        if not isinstance(sink, Files | ToChannel):
            continue
        try:
            folder = local_path(sink.path)
            if folder is not None:
                check_folder(folder, f"sink {binding.name!r}")
                _check_apart_from(state, folder.absolute(), binding.name)
            # A checkpoint that goes on knows which batches are its own.
            if isinstance(sink, Files) and not goes_on:
                refuse_other_runs(binding.name, sink)
        except ValueError as error:  # pyarrow's, of a URL that it cannot read or does not know
            raise InvalidInput(
                f"sink {binding.name!r}: {_said(error)}; give a path, or a URL of the form "
                "file:///PATH, s3://BUCKET/PATH, gs://BUCKET/PATH or hdfs://HOST/PATH."
            ) from error
        except OSError as error:
            raise Unavailable(
                f"sink {binding.name!r}: {sink.path} cannot be looked at: {_said(error)}."
            ) from error


def _said(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _check_apart_from(checkpoint: Path, folder: Path, sink: str) -> None:
    if checkpoint.is_relative_to(folder):
        raise InvalidInput(
            f"sink {sink!r}: the checkpoint {checkpoint} is in its folder {folder}; "
            "give them folders of their own."
        )
