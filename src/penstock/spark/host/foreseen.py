"""What one more topology does to the promises on a shared cluster, in a sentence."""

import math

from penstock.control.shared_cluster import SharedCluster
from penstock.model.number_text import seconds_text, share_text


def foreseen(
    shared: SharedCluster, name: str, bound_s: float, share: float, aim: float
) -> str | None:
    """A sentence where a promise cannot be kept since a topology has joined; None where all can.

    `aim` is the part of each bound that is planned for.
    """
    count = len(shared.names)
    if count > shared.processors:
        return (
            f"{count} topologies share {shared.processors} processors, less than one each; give "
            "the host a larger --executors-max."
        )
    said = []
    for missed, expected_s in shared.missed_since(name).items():
        promised_s = shared.member(missed).limits.max_latency_s / aim
        if missed == name:
            beside = f"beside the {count - 1} that run" if count > 1 else "on this cluster"
            said.append(
                f"{share_text(share)} within {seconds_text(bound_s)} cannot be kept {beside}: the "
                f"best that can be had is {latency_text(expected_s)}"
            )
        elif expected_s > promised_s:
            said.append(
                f"with it, {missed} would have {latency_text(expected_s)} instead of "
                f"{seconds_text(promised_s)}"
            )
    return "; ".join(said) + "." if said else None


def latency_text(seconds: float) -> str:
    """A latency as a person reads it."""
    return seconds_text(seconds) if math.isfinite(seconds) else "rows that pile up"
