"""The components of an observation as columns, for decisions over many of them."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

FIELDS = (
    "arrival_rate_per_s", "service_time_s", "busy_s", "parallelism", "backlog_rows", "arrival_scv",
    "service_scv", "served_rate_per_s",
)  # fmt: skip
ARRIVALS, SERVICE, BUSY, PARALLELISM, BACKLOG, ARRIVAL_SCV, SERVICE_SCV, SERVED = range(len(FIELDS))
_VALUES = attrgetter(*FIELDS)


class ComponentColumns:
    """One column for each component, one row for each of `FIELDS`."""

    def __init__(self, components: Sequence[object]) -> None:
        self.names: tuple[str, ...] = tuple(component.name for component in components)  # type: ignore[attr-defined]
        self.table: NDArray[np.float64] = (
            np.array([_VALUES(component) for component in components], dtype=np.float64)
            .reshape(len(self.names), len(FIELDS))
            .T
        )
