"""The components of several periods as one table."""

from collections.abc import Sequence

import numpy as np

from penstock.model.component_columns import FIELDS
from penstock.model.observation import Floats, Observation


def stacked(periods: Sequence[Observation], names: tuple[str, ...]) -> Floats:
    """Periods x fields x components, NaN where a component was not measured."""
    places: dict[tuple[str, ...], list[int]] = {}
    whole = np.full((len(periods), len(FIELDS), len(names)), np.nan)
    for row, observation in enumerate(periods):
        columns = observation.columns
        if columns.names == names:
            whole[row] = columns.table
            continue
        if columns.names not in places:
            place = {name: i for i, name in enumerate(names)}
            places[columns.names] = [place.get(name, -1) for name in columns.names]
        there = np.array(places[columns.names], dtype=np.int64)
        whole[row][:, there[there >= 0]] = columns.table[:, there >= 0]
    return whole
