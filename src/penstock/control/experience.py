"""What earlier runs of a topology taught: to a policy that learns, and when which load comes.

Every run of the same name in the history counts, whatever policy it had: so a policy is trained by
runs with fixed processors, such as those of `penstock train`, and goes on learning with every run.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from penstock.config import Settings
from penstock.control.history.store import HistoryStore
from penstock.control.records import TRAINING
from penstock.control.resolved_settings import shadow_names
from penstock.forecast.calendar import RateCalendar
from penstock.scaling.policies.knowledge import Knowledge, Sample, samples_of
from penstock.scaling.policies.registry import has_option

MOST_RUNS = 20  # the newest ones, and as many that were training


def with_experience(
    settings: Settings,
    store: HistoryStore,
    name: str,
    max_latency_s: float,
    sharing: Literal["time", "space"] = "time",
) -> Settings:
    """The settings with what the history knows, where a policy learns and was given nothing."""
    policies = (settings.policy, *shadow_names(settings.shadow, settings.policy))
    teachers: dict[str, Callable[[], object]] = {
        "knowledge": lambda: experience(store, name, max_latency_s, sharing),
        "calendar": lambda: RateCalendar.of(store.read_rates(name)),
    }
    learnt = {
        option: teach()
        for option, teach in teachers.items()
        if option not in settings.policy_options
        and any(has_option(policy, option) for policy in policies)
    }
    if not learnt:
        return settings
    return replace(settings, policy_options={**settings.policy_options, **learnt})


def experience(
    store: HistoryStore, name: str, max_latency_s: float, sharing: Literal["time", "space"]
) -> Knowledge:
    """What the newest runs of that name came to: training first, then real ones, oldest first."""
    runs = {number: run for number, run in store.runs().items() if run.topology == name}
    trained = [number for number, run in runs.items() if run.policy == TRAINING]
    lived = [number for number in runs if number not in trained]
    samples: list[Sample] = []
    for number in trained[-MOST_RUNS:] + lived[-MOST_RUNS:]:
        seen = store.read_observations(number)
        samples += samples_of(seen, max_latency_s, shared=sharing == "time")
    return Knowledge().learnt(samples)
