"""A division in words: what is kept with how many processors, and why others are missed."""

import math

from penstock.sharing.claims import Claims, Division


def explained(
    claims: Claims, processors: int, division: Division
) -> tuple[tuple[str, ...], str | None]:
    """Reasons, one line each, and a sentence where promises cannot be kept."""
    given = sum(division.processors.values())
    least = int(claims.least.sum())
    if least > processors:
        sentence = (
            f"the minima of all topologies are {least} processors, {processors} are there: each "
            "gets its minimum"
        )
        return (sentence, *_missed_lines(claims, division)), sentence
    if not division.missed:
        count = len(claims.names)
        all_of_them = f"all {count} promises are" if count > 1 else "the promise is"
        return (f"{all_of_them} kept with {given} of {processors} processors",), None
    kept = len(division.kept)
    summary = f"{kept} of {len(claims.names)} promises are kept with {given} of {processors}"
    summary += f" processors, by weight {_weight(claims, division.kept):g} of "
    summary += f"{claims.weight.sum():g}{_would_take(claims)}"
    return (summary, *_missed_lines(claims, division)), summary


def _weight(claims: Claims, names: tuple[str, ...]) -> float:
    kept = set(names)
    return float(sum(claims.weight[place] for place, n in enumerate(claims.names) if n in kept))


def _would_take(claims: Claims) -> str:
    """What keeps all that can be kept."""
    if not claims.keepable.any():
        return "; none can be kept by any number"
    needed = int((claims.least + claims.need)[claims.keepable].sum())
    needed += int(claims.least[~claims.keepable].sum())
    which = "all" if claims.keepable.all() else "all that can be kept"
    return f"; {which} would take {needed}"


def _missed_lines(claims: Claims, division: Division) -> tuple[str, ...]:
    lines = list[str]()
    for place, name in enumerate(claims.names):
        if name not in division.missed:
            continue
        expected_s = division.missed[name]
        takes = f"{expected_s:.4g} s" if math.isfinite(expected_s) else "rows pile up"
        promise = f"{claims.share[place] * 100:g}% within {claims.bound_s[place]:g} s"
        lines.append(
            f"{name}: {takes} with {_counted(division.processors[name])} instead of {promise}; "
            + _why(claims, place)
        )
    return tuple(lines)


def _why(claims: Claims, place: int) -> str:
    need = int(claims.least[place] + claims.need[place])
    if claims.keepable[place]:
        return f"it needs {need}, and the promises that are kept weigh more for what they take"
    best_s = float(claims.lateness[place, -1] * claims.bound_s[place])
    if math.isinf(best_s):
        return "no number that it may have keeps up with its load"
    return f"no number that it may have keeps the promise: the best is {best_s:.4g} s"


def _counted(processors: int) -> str:
    return f"{processors} processor{'s' * (processors != 1)}"
