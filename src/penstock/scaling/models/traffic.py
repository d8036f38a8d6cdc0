"""Traffic equations: arrival rates of every component of any topology, loops included.

With gamma_j the rows that come to j from outside and r_ij the rows i sends to j for each row it
serves (below one for a filter, above one for a splitter),

    lambda_j = gamma_j + sum_i lambda_i r_ij            (Fu et al. 2017, s. III-A)

The solution exists and is finite when what goes round in loops dies out.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.errors import InvalidInput


def arrival_rates(
    names: Sequence[str],
    external_rate_per_s: Mapping[str, float],
    ratios: Mapping[tuple[str, str], float],
) -> dict[str, float]:
    """Arrival rate of each component from the external rates and the ratios along the edges.

    >>> arrival_rates(["a", "b"], {"a": 10.0}, {("a", "b"): 2.0, ("b", "b"): 0.5})
    {'a': 10.0, 'b': 40.0}
    """
    place = {name: i for i, name in enumerate(names)}
    for name in [*external_rate_per_s, *(end for edge in ratios for end in edge)]:
        if name not in place:
            raise InvalidInput(f"routes name {name!r}; known: {', '.join(names)}.")
    balance = np.eye(len(names))
    for (upstream, downstream), ratio in ratios.items():
        balance[place[downstream], place[upstream]] -= ratio
    outside = np.zeros(len(names))
    for name, rate in external_rate_per_s.items():
        outside[place[name]] += rate
    try:
        rates = np.linalg.solve(balance, outside)
    except np.linalg.LinAlgError:
        rates = np.full(len(names), np.nan)
    # A loop that multiplies rows has only a solution with negative rates, or none.
    if not np.all(np.isfinite(rates)) or np.any(rates < -1e-9 * max(1.0, float(outside.max()))):
        raise InvalidInput("routes hold a loop that sends back at least as many rows as it gets.")
    return {name: max(0.0, float(rates[i])) for name, i in place.items()}
