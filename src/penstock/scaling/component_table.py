"""The components of several periods as one table."""

from collections.abc import Sequence

import numpy as np

from penstock.model.component_columns import FIELDS
from penstock.model.observation import Floats, Observation


def stacked(periods: Sequence[Observation], names: tuple[str, ...]) -> Floats:
    """Periods x fields x components, NaN where a component was not measured."""
    whole = np.full((len(periods), len(FIELDS), len(names)), np.nan)
    place = {name: i for i, name in enumerate(names)}
    alike: dict[tuple[str, ...], list[int]] = {}
    for row, observation in enumerate(periods):
        alike.setdefault(observation.columns.names, []).append(row)
    for measured, rows in alike.items():
        tables = np.array([periods[row].columns.table for row in rows])
        if measured == names and len(rows) == len(periods):
            return tables
        to = [place[name] for name in measured if name in place]
        taken = [i for i, name in enumerate(measured) if name in place]
        whole[np.ix_(rows, range(len(FIELDS)), to)] = tables[:, :, taken]
    return whole
