"""A policy that learns, and what earlier runs in the history teach it."""

from dataclasses import replace
from pathlib import Path

from contract.fakes import observation
from penstock.config import Settings
from penstock.control.experience import with_experience
from penstock.control.from_settings import policy_of
from penstock.control.history.store import HistoryStore
from penstock.control.records import RunRecord
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import NodeObservation, Observation
from penstock.scaling.policies.knowledge import Knowledge
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.rlearn import Rlearn

BOUND_S = 5.0


def period(at: int, processors: int, backlog_rows: float) -> Observation:
    """A hundred rows a second on so many processors."""
    return replace(
        observation(5.0 * at, arrival_rate_per_s=100.0, backlog_rows=backlog_rows),
        components=(), nodes=(NodeObservation("a", processors, 1.0),), latency=None,
    )  # fmt: skip


def record(store: HistoryStore, name: str, processors: int, backlog_rows: float) -> None:
    """A run with fixed processors."""
    history = store.begin(RunRecord(name, "static", 0.0, 5.0, BOUND_S))
    for at in range(20):
        history.observed(period(at, processors, backlog_rows))
    history.flush()


def decided(settings: Settings) -> int:
    seen = period(1, 1, 0.0)
    context = ScalingContext((seen,), ScalingPlan({}, 1), Limits(1, 8, BOUND_S))
    return policy_of(settings).decide(context).plan.processors


def test_runs_with_fixed_processors_train_the_next(tmp_path: Path) -> None:
    """One processor falls behind, two and four keep up: two are worth most."""
    with HistoryStore(str(tmp_path / "history.db")) as store:
        for processors, backlog_rows in ((1, 5_000.0), (2, 100.0), (4, 10.0)):
            record(store, "road", processors, backlog_rows)
        record(store, "other", 7, 0.0)
        settings = Settings(policy="rlearn", policy_options={"refine": False})
        assert decided(settings) == 1, "nothing learnt, nothing changed"
        assert decided(with_experience(settings, store, "road", BOUND_S)) == 2
        assert decided(with_experience(settings, store, "new", BOUND_S)) == 1


def test_what_is_given_goes_before_what_is_remembered(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "history.db")) as store:
        record(store, "road", 4, 0.0)
        own = Knowledge()
        given = Settings(policy="rlearn", policy_options={"knowledge": own})
        assert with_experience(given, store, "road", BOUND_S) is given
        others = Settings(policy="drs")
        assert with_experience(others, store, "road", BOUND_S) is others
        beside = with_experience(replace(others, shadow="rlearn"), store, "road", BOUND_S)
        assert beside.policy_options["knowledge"].values
        assert Rlearn(knowledge=beside.policy_options["knowledge"]).name == "rlearn"
