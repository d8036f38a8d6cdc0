"""Which processors of unequal speed keep up with which load: a program of counts.

With n_sc processors of speed s for component c, of which there are N_s, and load_c to be covered,

    maximise t   such that   sum_s s n_sc >= load_c + t,   sum_c n_sc <= N_s

All components keep up where t is above 0. Speeds that are equal are alike, so there is one number
for each distinct speed and component.
"""

import math
from collections import defaultdict
from collections.abc import Sequence

import highspy

_MOST_NODES = 5_000  # a count, not a time, so that the answer repeats


def covering(loads: Sequence[float], speeds: Sequence[float]) -> list[list[int]] | None:
    """For each load the places of processors whose speeds exceed it; None if there are none."""
    places = defaultdict[float, list[int]](list)
    for place, speed in enumerate(speeds):
        places[speed].append(place)
    program = highspy.Highs()  # type: ignore[no-untyped-call]
    program.silent()
    program.setOptionValue("mip_max_nodes", _MOST_NODES)
    program.setOptionValue("threads", 1)
    least = program.addVariable(lb=-math.inf, ub=math.inf)
    counts = {
        speed: [program.addIntegral(lb=0, ub=len(held)) for _ in loads]
        for speed, held in places.items()
    }
    for speed, held in places.items():
        program.addConstr(program.qsum(counts[speed]) <= len(held))
    for i, load in enumerate(loads):
        program.addConstr(
            program.qsum(speed * row[i] for speed, row in counts.items()) - least >= load
        )
    program.maximize(least)
    found = _taken(program, counts, places, len(loads))
    kept_up = all(
        sum(speeds[place] for place in held) > load for held, load in zip(found, loads, strict=True)
    )
    return found if kept_up else None


def _taken(
    program: highspy.Highs,
    counts: dict[float, list[highspy.highs.highs_var]],
    places: dict[float, list[int]],
    components: int,
) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(components)]
    if not program.getInfo().primal_solution_status:
        return found
    for speed, row in counts.items():
        free = iter(places[speed])
        for i, variable in enumerate(row):
            number = round(program.variableValue(variable))
            found[i] += [next(free) for _ in range(number)]
    return found
