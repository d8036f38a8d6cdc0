"""The work of rows alone in a period: what was measured, less what its batches cost themselves."""

import math
from dataclasses import dataclass

from penstock.model.observation import Observation
from penstock.scaling.models.batch_work import LEAST_SHARE


@dataclass(frozen=True)
class RowWork:
    """Rows a second of the sources, and the processors that they alone kept busy."""

    rows_per_s: float
    load: float


def row_work(seen: Observation, own_s: float) -> RowWork | None:
    """Without `own_s` task seconds of each batch (`batch_work`); None where nothing shows it."""
    rate, load = seen.arrival_rate_per_s, seen.offered_load
    if not (rate > 0 and load > 0 and math.isfinite(load)):
        return None
    batches = seen.batches
    if batches is None or not batches.count or not batches.mean_rows > 0:
        return RowWork(rate, load)
    of_batches = own_s * rate / batches.mean_rows
    return RowWork(rate, max(LEAST_SHARE * load, load - of_batches))
