"""The quantile of latencies that a promise is about, and what people call it."""

import math
from collections.abc import Sequence

from penstock.model.observation import LatencyObservation


def quantile_text(share: float) -> str:
    """The share of a promise for a person.

    >>> quantile_text(0.99), quantile_text(0.9999)
    ('99%', '99.99%')
    """
    return f"{100 * share:g}%"


def promised_quantile(
    seen: Sequence[LatencyObservation | None], share: float | None
) -> tuple[str, list[float]]:
    """What to call it, and its value in each of some periods; NaN where there was no latency.

    It is that of the promised share; the 95th percentile where no period knows that, as in runs
    that were recorded before it was measured.

    >>> one = LatencyObservation(100, 1.0, 1.5, 2.0, 1.0, share_s=1.75)
    >>> promised_quantile([one, None], 0.99)
    ('99%', [1.75, nan])
    >>> promised_quantile([one], None)
    ('95%', [1.5])
    """
    kept = [math.nan if one is None else one.share_s for one in seen]
    if share is not None and any(map(math.isfinite, kept)):
        return quantile_text(share), kept
    return "95%", [math.nan if one is None else one.p95_s for one in seen]


def is_late(seen: LatencyObservation, share: float | None, max_latency_s: float) -> bool:
    """Whether fewer results were in time than are to be.

    By the share, as sinks may have bounds of their own; by the 95th percentile where no share is
    known.

    >>> one = LatencyObservation(100, 1.0, 5.5, 6.0, 0.94)
    >>> is_late(one, 0.9, 5.0), is_late(one, 0.99, 5.0), is_late(one, None, 5.0)
    (False, True, True)
    """
    return seen.p95_s > max_latency_s if share is None else seen.in_time_share < share
