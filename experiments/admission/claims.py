"""Claims A1 to A6 of seed 000: streams to lanes, on the six workloads and on a rising one."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.admission.outcomes import (
    MEASURES,
    ORDER,
    RULES,
    STREAMS,
    UNDRAINED,
    Outcomes,
    outcomes_of,
)
from experiments.admission.rising import claim_a5, claim_a6
from experiments.claim import Claim, save_figure
from penstock.workloads.admission_streams import WORKLOADS

ABOUT = 0.05  # what "about" and "near" may be off, as a share of the fewest lanes
UNSEEN = ("psfcw", "sfvar", "bursty")  # where forecasts cannot see it coming
TRENDS = ("ptfcw", "tfvar")


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is short and takes seconds."""
    outcomes = outcomes_of(seeds, quick)
    return [
        claim_a1(outcomes, folder),
        claim_a2(outcomes, folder),
        claim_a3(outcomes),
        claim_a4(outcomes, folder),
        claim_a5(folder, seeds, quick),
        claim_a6(folder, seeds, quick),
    ]


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """A1, A2 and A5 on the real source, at small scale; eight minutes."""
    # Imported here: whoever only simulates needs no Spark.
    from experiments.admission.on_spark import run_on_spark as on_spark

    return on_spark(folder, seeds, quick)


def claim_a1(outcomes: Outcomes, folder: Path) -> Claim:
    """Figure 10a: redirections in a period."""
    parts = _order_parts(outcomes, "redirected")
    for workload in WORKLOADS:
        moved = outcomes.mean("redirected", workload, "par")
        parts[f"{workload}: par moves most of {STREAMS}"] = moved > STREAMS / 2
    return Claim(
        id="A1",
        paper="mean redirections in a period: DRF-M <= DRF <= ARD <= ARI < PAR on every workload, "
        "and PAR moves most of the 80 streams",
        ours=_shown(outcomes, "redirected", "{:.2f}"),
        holds=all(parts.values()),
        where="sim",
        reason=_reason(
            parts,
            "Streams leave by their rise, not by their rate, so the slower ones leave and more "
            f"must ({_rates_moved(outcomes)}). Draining lanes is most of it where the total "
            f"varies: {_without_draining(outcomes)}. In return lanes are late less often "
            f"({_late(outcomes)}).",
        ),
        figures=_bars(outcomes, folder, "admission-A1", {"redirected": "redirections per period"}),
        numbers={"parts": parts, **_tables(outcomes, "redirected")},
    )


def claim_a2(outcomes: Outcomes, folder: Path) -> Claim:
    """Figures 10b and 10c: rows buffered at clients, and delay of the streams redirected."""
    parts = {
        f"{measure}: {name}": holds
        for measure in ("buffered_rows", "delay_s")
        for name, holds in _order_parts(outcomes, measure).items()
    }
    panels = {"buffered_rows": "rows buffered per period", "delay_s": "delay added per period, s"}
    return Claim(
        id="A2",
        paper="rows buffered at clients and delay added by redirections: the order of A1",
        ours="rows " + _shown(outcomes, "buffered_rows", "{:.0f}")
        + "; seconds " + _shown(outcomes, "delay_s", "{:.2f}"),
        holds=all(parts.values()),
        where="sim",
        reason=_reason(
            parts,
            "Both weigh each redirection of A1 with the queue of the lane it leaves, and the rows "
            "also with the stream's rate.",
        ),
        figures=_bars(outcomes, folder, "admission-A2", panels),
        numbers={
            "parts": parts,
            "late_share": outcomes.table("late_share"),
            **_tables(outcomes, "buffered_rows"),
            **_tables(outcomes, "delay_s"),
        },
    )  # fmt: skip


def claim_a3(outcomes: Outcomes) -> Claim:
    """Meta-data pays where forecasts do not."""
    parts = {
        workload: outcomes.mean("redirected", workload, "drf-m")
        < outcomes.mean("redirected", workload, "drf")
        for workload in UNSEEN
    }
    shown = "; ".join(
        f"{workload}: drf-m {_spread(outcomes, 'redirected', workload, 'drf-m', '{:.2f}')}, drf "
        f"{_spread(outcomes, 'redirected', workload, 'drf', '{:.2f}')}, with lanes above the "
        f"fewest {outcomes.mean('above_fewest', workload, 'drf-m'):.0%} and "
        f"{outcomes.mean('above_fewest', workload, 'drf'):.0%}"
        for workload in UNSEEN
    )
    return Claim(
        id="A3",
        paper="DRF-M redirects strictly fewer than DRF on psfcw, sfvar and bursty",
        ours=shown,
        holds=all(parts.values()),
        where="sim",
        reason=_reason(
            parts,
            "DRF-M keeps fewer lanes than DRF, and the streams that are to rise most are those "
            f"that are slow now, so that more must leave ({_rates_moved(outcomes)}).",
        ),
        numbers={"parts": parts},
    )


def claim_a4(outcomes: Outcomes, folder: Path) -> Claim:
    """Figure 11: lanes above the fewest there could be."""
    above = {
        workload: {name: outcomes.mean("above_fewest", workload, name) for name in ORDER}
        for workload in WORKLOADS
    }
    parts = {f"{w}: par near 0": above[w]["par"] <= ABOUT for w in WORKLOADS}
    parts |= {f"{w}: drf about 15%": abs(above[w]["drf"] - 0.15) <= ABOUT for w in TRENDS}
    parts |= {f"{w}: drf-m at most about 15%": above[w]["drf-m"] <= 0.15 + ABOUT for w in WORKLOADS}
    parts |= {
        f"{w}: drf-m at most 10 points above {name}": above[w]["drf-m"] <= above[w][name] + 0.10
        for w in WORKLOADS
        for name in ORDER[1:-1]
    }
    return Claim(
        id="A4",
        paper="lanes above the optimum: PAR near 0, DRF about 15% on trend workloads, DRF-M about "
        "15% at most and 5 to 10 points above the others at most",
        ours=_shown(outcomes, "above_fewest", "{:.1%}") + " above a proven lower bound",
        holds=all(parts.values()),
        where="sim",
        reason=_reason(
            parts,
            "Room is kept for the most each stream is expected to need within the horizon. For "
            f"DRF-M that is more than what came, by {_room_kept(outcomes)}.",
        ),
        figures=_bars(outcomes, folder, "admission-A4", {"above_fewest": "lanes above the fewest"}),
        numbers={
            "parts": parts,
            "room_kept": outcomes.table("room_kept"),
            **_tables(outcomes, "above_fewest"),
        },
    )


def _order_parts(outcomes: Outcomes, measure: str) -> dict[str, bool]:
    parts = {}
    for workload in WORKLOADS:
        for better, worse in pairwise(ORDER):
            low, high = (outcomes.mean(measure, workload, name) for name in (better, worse))
            strict = worse == "par"
            sign = "<" if strict else "<="
            parts[f"{workload}: {better} {sign} {worse}"] = low < high if strict else low <= high
    return parts


def _reason(parts: dict[str, bool], cause: str) -> str:
    failed = [name for name, holds in parts.items() if not holds]
    if not failed:
        return ""
    hold = f"{len(parts) - len(failed)} of {len(parts)} parts hold"
    return f"{hold}; not so: {'; '.join(failed)}. {cause}"


def _rates_moved(outcomes: Outcomes) -> str:
    rates = "; ".join(
        f"{w} " + ", ".join(f"{n} {outcomes.moved_rate_per_s(w, n):.0f}" for n in ORDER[:3])
        for w in WORKLOADS
        if w != "constw"  # hardly any moves there
    )
    return f"mean rate of those redirected, rows per s: {rates}"


def _without_draining(outcomes: Outcomes) -> str:
    return "; ".join(
        f"{w} without it "
        + ", ".join(f"{n} {outcomes.mean('redirected', w, n, UNDRAINED):.2f}" for n in ORDER[:3])
        for w in ("sfvar", "tfvar")
    )


def _room_kept(outcomes: Outcomes) -> str:
    # Adding zero takes the sign off a share that rounds to none.
    kept = {w: round(outcomes.mean("room_kept", w, "drf-m"), 2) + 0.0 for w in WORKLOADS}
    return ", ".join(f"{share:.0%} on {workload}" for workload, share in kept.items())


def _late(outcomes: Outcomes) -> str:
    shares = {
        name: float(np.mean([outcomes.mean("late_share", w, name) for w in WORKLOADS]))
        for name in ORDER
    }
    return "time beyond the bound: " + ", ".join(f"{n} {share:.0%}" for n, share in shares.items())


def _spread(outcomes: Outcomes, measure: str, workload: str, name: str, form: str) -> str:
    values = outcomes.of(measure, workload, name)
    return f"{form.format(values.mean())} +- {form.format(values.std())}"


def _shown(outcomes: Outcomes, measure: str, form: str) -> str:
    return "; ".join(
        f"{workload}: "
        + ", ".join(f"{name} {_spread(outcomes, measure, workload, name, form)}" for name in ORDER)
        for workload in WORKLOADS
    )


def _tables(outcomes: Outcomes, measure: str) -> dict[str, object]:
    assert measure in MEASURES
    return {f"{measure} ({rules})": outcomes.table(measure, rules) for rules in RULES}


def _bars(outcomes: Outcomes, folder: Path, name: str, panels: dict[str, str]) -> tuple[str, ...]:
    figure = Figure(figsize=(6.5 * len(panels), 3.4))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    place = np.arange(len(WORKLOADS))
    for panel, (measure, label) in zip(axes, panels.items(), strict=True):
        for number, strategy in enumerate(reversed(ORDER)):
            runs = np.array([outcomes.of(measure, w, strategy) for w in WORKLOADS])
            panel.bar(
                place + 0.16 * (number - 2), runs.mean(axis=1), 0.16, yerr=runs.std(axis=1),
                label=strategy, capsize=2,
            )  # fmt: skip
        panel.set_xticks(place, list(WORKLOADS))
        panel.set_ylabel(label)
        if measure != "above_fewest":
            panel.set_yscale("symlog", linthresh=1.0)  # PAR is far above the rest
    axes[0].legend(fontsize=8)
    return save_figure(figure, folder, name)
