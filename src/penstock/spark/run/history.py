"""The record of a run on Spark in its history, from its beginning to its end."""

import logging
from contextlib import ExitStack

from sqlalchemy.exc import SQLAlchemyError

from penstock.config import Settings
from penstock.control.clock import steady_s
from penstock.control.history.store import HistoryStore, RunHistory, retention
from penstock.control.records import RunRecord
from penstock.spark.handles.messages import first_line

log = logging.getLogger(__name__)


def begin_history(
    store: HistoryStore,
    settings: Settings,
    resources: ExitStack,
    *,
    name: str,
    max_latency_s: float,
    share: float,
    slots: int,
    edges: tuple[tuple[str, str], ...] = (),
) -> RunHistory:
    """Begin the record of a run; it is ended with the resources."""
    history = store.begin(
        RunRecord(
            name, settings.policy, steady_s(), settings.period_s, max_latency_s, slots,
            settings.dry_run, executors_min=settings.executors_min,
            executors_max=settings.executors_max, batch_interval_s=settings.batch_interval_s or 0.0,
            foresight_s=settings.foresight_s, edges=edges, share=share,
        ),
        retention(settings),
    )  # fmt: skip
    resources.callback(lambda: _end(history))
    return history


def _end(history: RunHistory) -> None:
    """A database that is away must not turn a complete run into a failed one."""
    try:
        history.end(steady_s())
    except SQLAlchemyError as error:
        log.warning(
            "the end of the run could not be recorded in the history: %s", first_line(error)
        )
