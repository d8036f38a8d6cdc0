"""A window whose newest observation shows a rate that is only foreseen."""

from dataclasses import replace

from penstock.model.observation import Observation

AVERAGED = 3  # observations that a policy smooths over


def foreseen_window(
    window: tuple[Observation, ...], expected_per_s: float
) -> tuple[Observation, ...]:
    """The window with a higher rate at its end; as it is where that is no higher."""
    if not expected_per_s > window[-1].arrival_rate_per_s > 0:
        return window
    newest = window[-1]
    growth = expected_per_s / newest.arrival_rate_per_s
    components = tuple(
        replace(one, arrival_rate_per_s=one.arrival_rate_per_s * growth)
        for one in newest.components
    )
    ahead = replace(newest, arrival_rate_per_s=expected_per_s, components=components)
    # Beside one that is foreseen, the last ones measured would weigh most in a mean.
    others = replace(ahead, latency=None, batches=None)
    return (*window[:-1], *[others] * (AVERAGED - 1), ahead)
