"""The newest period of each run that is going on, for Prometheus; asked for, never pushed.

A scrape reads the history, so it costs a run nothing and works from another process.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from penstock.control.history.store import HistoryStore, Within
from penstock.control.history.tail import Counts, counts, position
from penstock.control.records import RunRecord
from penstock.dashboard.series import load
from penstock.model.observation import Observation

CONTENT_TYPE = CONTENT_TYPE_LATEST
RUN = ("run", "topology")
SILENT_PERIODS = 60  # a run that is this far behind the newest one was ended without a word
LAST = 64  # decisions read back: enough to hold one of the acting policy among its shadows


@dataclass(frozen=True)
class Family:
    """A metric: its name with its unit, what it says, and what it is divided by beside the run."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    counter: bool = False

    def empty(self) -> GaugeMetricFamily | CounterMetricFamily:
        """The metric without samples."""
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        return kind(self.name, self.help, labels=[*RUN, *self.labels])


FAMILIES: tuple[Family, ...] = (
    Family("penstock_arrival_rate_rows_per_second", "Rows a second that the sources offer."),
    Family("penstock_forecast_rate_rows_per_second", "Rows a second the loop foresees."),
    Family("penstock_backlog_rows", "Rows that arrived and are in no committed batch yet."),
    Family("penstock_latency_mean_seconds", "Mean latency of the results of the period."),
    Family("penstock_latency_p95_seconds", "95th percentile of the period's latencies."),
    Family("penstock_latency_share_seconds", "Latency that the promised share of results kept."),
    Family("penstock_latency_max_seconds", "Greatest latency of the period."),
    Family("penstock_latency_bound_seconds", "The latency that was promised."),
    Family("penstock_promised_share_ratio", "Share of the results that must keep the bound."),
    Family("penstock_results_in_time_ratio", "Share of the period's results within the bound."),
    Family("penstock_executors", "Executors that are there, drained ones included."),
    Family("penstock_executors_limit", "Fewest and most executors allowed.", ("limit",)),
    Family("penstock_processors", "Slots of the executors that take new work."),
    Family("penstock_load_ratio", "Share of all processor-seconds that was used."),
    Family("penstock_executor_busy_ratio", "Share of an executor's time in use.", ("executor",)),
    Family("penstock_batch_duration_seconds", "Mean length of the batches of the period."),
    Family("penstock_batch_overhead_seconds", "Mean fixed cost of the batches of the period."),
    Family(
        "penstock_component_arrival_rate_rows_per_second",
        "Rows a second that come to a component.", ("component",),
    ),
    Family(
        "penstock_component_service_time_seconds",
        "Processor-seconds a component needs for a row.", ("component",),
    ),
    Family("penstock_component_parallelism", "Processors of a component.", ("component",)),
    Family("penstock_component_backlog_rows", "Rows waiting at a component.", ("component",)),
    Family(
        "penstock_key_group_load_imbalance_ratio",
        "Greatest load of a key group over the mean of its component.", ("component",),
    ),
    Family("penstock_lanes", "Lanes in use of a source of many streams.", ("source",)),
    Family("penstock_streams", "Streams of a source by what they do.", ("source", "state")),
    Family("penstock_source_backlog_rows", "Rows waiting in a source's streams.", ("source",)),
    Family("penstock_observed_timestamp_seconds", "When the period ended, as Unix time."),
    Family("penstock_run_active", "1 while the run goes on, 0 after its end."),
    Family("penstock_decisions", "Decisions by policy; shadows only watch.",
           ("policy", "shadow"), counter=True),
    Family("penstock_actions", "What was done to the cluster.", ("action", "done"), counter=True),
    Family("penstock_loop_failures", "Stages of the loop that failed.", ("stage",), counter=True),
)  # fmt: skip

Sample = tuple[str, tuple[str, ...], float]


class HistoryCollector(Collector):
    """All runs that go on; the newest run where none does."""

    def __init__(self, store: HistoryStore) -> None:
        self._store = store

    def collect(self) -> Iterable[Metric]:
        """The metrics at this moment; what was not measured is left out."""
        families = {family.name: family.empty() for family in FAMILIES}
        for number, record in self._runs().items():
            for name, labels, value in self._samples(number, record):
                if not math.isnan(value):
                    families[name].add_metric([str(number), record.topology, *labels], value)
        return families.values()

    def _runs(self) -> dict[int, RunRecord]:
        runs = self._store.runs()
        last_s = {number: self._last_seen_s(number, runs[number]) for number in runs}
        now_s = max(last_s.values(), default=0.0)
        active = {
            number: record
            for number, record in runs.items()
            if record.ended_at_s is None
            and now_s - last_s[number] <= SILENT_PERIODS * record.period_s
        }
        newest = max(runs, default=None)
        return active if active or newest is None else {newest: runs[newest]}

    def _last_seen_s(self, run: int, record: RunRecord) -> float:
        """When anything was last heard of a run; one that was killed does not tell its end."""
        if record.ended_at_s is not None:
            return record.ended_at_s
        end = position(self._store, run)
        seen = self._store.read_observations(
            run, Within(span=(end.observations - 1, end.observations))
        )
        return max([record.started_at_s, *(one.at_s for one in seen)])

    def _samples(self, run: int, record: RunRecord) -> Iterable[Sample]:
        end = position(self._store, run)
        seen = self._store.read_observations(
            run, Within(span=(end.observations - 1, end.observations))
        )
        decided = self._store.read_decisions(
            run, Within(span=(end.decisions - LAST, end.decisions))
        )
        yield "penstock_latency_bound_seconds", (), record.max_latency_s
        if record.share is not None:
            yield "penstock_promised_share_ratio", (), record.share
        yield "penstock_executors_limit", ("min",), record.executors_min
        yield "penstock_executors_limit", ("max",), record.executors_max
        yield "penstock_run_active", (), float(record.ended_at_s is None)
        yield from _counted(counts(self._store, run))
        if decided and decided[-1].foreseen_rate_per_s is not None:
            foreseen = decided[-1].foreseen_rate_per_s
            yield "penstock_forecast_rate_rows_per_second", (), foreseen
        if seen:
            yield from _observed(seen[-1])


def _observed(o: Observation) -> Iterable[Sample]:
    yield "penstock_arrival_rate_rows_per_second", (), o.arrival_rate_per_s
    yield "penstock_backlog_rows", (), o.backlog_rows
    yield "penstock_executors", (), len(o.nodes)
    yield "penstock_processors", (), o.processors
    yield "penstock_load_ratio", (), load(o)
    yield "penstock_observed_timestamp_seconds", (), o.at_s
    if o.latency is not None:
        yield "penstock_latency_mean_seconds", (), o.latency.mean_s
        yield "penstock_latency_p95_seconds", (), o.latency.p95_s
        yield "penstock_latency_share_seconds", (), o.latency.share_s
        yield "penstock_latency_max_seconds", (), o.latency.max_s
        yield "penstock_results_in_time_ratio", (), o.latency.in_time_share
    if o.batches is not None:
        yield "penstock_batch_duration_seconds", (), o.batches.mean_duration_s
        yield "penstock_batch_overhead_seconds", (), o.batches.mean_overhead_s
    for node in o.nodes:
        share = node.busy_s / (node.slots * o.period_s) if node.slots else math.nan
        yield "penstock_executor_busy_ratio", (node.name,), share
    for source in o.sources:
        yield "penstock_lanes", (source.source,), len(source.lanes)
        yield "penstock_source_backlog_rows", (source.source,), source.waiting_rows
        for state in ("live", "leaving", "suspended"):
            yield "penstock_streams", (source.source, state), getattr(source, state)
    for c in o.components:
        rate = c.arrival_rate_per_s
        yield "penstock_component_arrival_rate_rows_per_second", (c.name,), rate
        yield "penstock_component_service_time_seconds", (c.name,), c.service_time_s
        yield "penstock_component_parallelism", (c.name,), c.parallelism
        yield "penstock_component_backlog_rows", (c.name,), c.backlog_rows
    for name, held in o.key_groups.items():
        if held.load_s.sum() > 0:
            peak = float(held.load_s.max() / held.load_s.mean())
            yield "penstock_key_group_load_imbalance_ratio", (name,), peak


def _counted(found: Counts) -> Iterable[Sample]:
    for (policy, shadow), number in found.decisions.items():
        yield "penstock_decisions", (policy, str(shadow).lower()), number
    for (action, done), number in found.actions.items():
        yield "penstock_actions", (action, str(done).lower()), number
    for stage, number in found.failures.items():
        yield "penstock_loop_failures", (stage,), number


def exposition(store: HistoryStore) -> bytes:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HistoryCollector(store))
    return generate_latest(registry)
