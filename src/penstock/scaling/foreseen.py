"""A window whose newest observation shows a rate that is only foreseen."""

from dataclasses import replace

from penstock.model.observation import Observation


def foreseen_window(
    window: tuple[Observation, ...], expected_per_s: float
) -> tuple[Observation, ...]:
    """The window with a higher rate at its end; as it is where that is no higher."""
    if not expected_per_s > window[-1].arrival_rate_per_s > 0:
        return window
    newest = window[-1]
    growth = expected_per_s / newest.arrival_rate_per_s
    # All that goes with the rate grows alike, so that what is sent for each row served stays.
    components = tuple(
        replace(
            one,
            arrival_rate_per_s=one.arrival_rate_per_s * growth,
            served_rate_per_s=one.served_rate_per_s * growth,
            busy_s=one.busy_s * growth,
        )
        for one in newest.components
    )
    flows = replace(
        newest.flows, rates_per_s=tuple(rate * growth for rate in newest.flows.rates_per_s)
    )
    ahead = replace(
        newest, arrival_rate_per_s=expected_per_s, components=components, flows=flows,
        foreseen=True,
    )  # fmt: skip
    return (*window[:-1], ahead)
