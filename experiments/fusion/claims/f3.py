"""F3 (s. 6.3, Table 1): latency of linear-road gadgets under each plan."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.fusion.trials.roads import (
    BASELINE,
    FUSED,
    INTERVALS_MIN,
    LATE_S,
    PLANS,
    QUICK_ROADS,
    Latency,
    RoadSetting,
    latencies,
)

STATISTICS = ("mean", "median", "p95", "worst")
CAUSES = ("late_share", "mean_of_others", "heaviest_group", "crossing")
NEAR = 0.10  # what the band of 10 to 25% may be off


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """All seeds, with the figure in the folder."""
    setting = QUICK_ROADS if quick else RoadSetting()
    found = [one for seed in seeds for one in latencies(seed, setting)]
    table = _table(found)
    parts = _parts(table)
    ours = "; ".join(
        f"{plan} " + ", ".join(f"{table[plan, i, 'mean']:.2f} ms" for i in INTERVALS_MIN)
        for plan in PLANS
    )
    tails = ", ".join(f"{plan} {table[plan, 1, 'p95']:.2f} ms" for plan in PLANS)
    return judged(
        "F3",
        paper="30 linear-road gadgets, 180 operators: fused plans have a mean latency 10 to 25% "
        "below the baseline's and a lower median, a higher 95th percentile when adapting every "
        "minute, and every statistic falls and then rises with 1/f.",
        ours=f"{setting.gadgets} gadgets, mean at 1/f = 1, 2, 5, 10 min: {ours}. 95th percentile "
        f"at 1 min: {tails}.",
        where="sim",
        parts=parts,
        why=f"{_cause(table)} The simulation has the costs named in "
        "docs/fusion.md, chosen once before its first run; the paper gives neither its costs of "
        "sending and of moving state nor its skew and how fast its keys drift, which decide where "
        "the minimum over 1/f lies.",
        figures=save_figure(_figure(table), folder, "fusion-F3"),
        numbers={
            "latency_ms": {
                f"{p} {i} min {s}": v for (p, i, s), v in table.items() if s in STATISTICS
            },
            "causes": {f"{p} {i} min {s}": v for (p, i, s), v in table.items() if s in CAUSES},
        },
    )


def _table(found: Sequence[Latency]) -> dict[tuple[str, int, str], float]:
    return {
        (plan, interval, statistic): float(
            (np.max if statistic == "heaviest_group" else np.mean)(
                [
                    getattr(one, statistic)
                    for one in found
                    if one.plan == plan and one.interval_min == interval
                ]
            )
        )
        for plan in PLANS
        for interval in INTERVALS_MIN
        for statistic in (*STATISTICS, *CAUSES)
    }


def _cause(table: dict[tuple[str, int, str], float]) -> str:
    """What the means are made of, in numbers."""
    causes = [
        f"under {plan} {table[plan, 1, 'crossing']:.1%} of the rows cross nodes, "
        f"{table[plan, 1, 'late_share']:.3%} wait over {LATE_S:g} s, and the mean of the others is "
        f"{table[plan, 1, 'mean_of_others']:.2f} ms"
        for plan in PLANS
    ]
    return (
        f"At 1 min: {'; '.join(causes)}. The sparse cut of the baseline puts whole gadgets on one "
        "node, whose operators need few instances each, so hardly a row leaves it; what fused "
        "components send each other is divided by keys and crosses."
    )


def _parts(table: dict[tuple[str, int, str], float]) -> dict[str, bool]:
    def below(plan: str, interval: int, statistic: str) -> float:
        return 1 - table[plan, interval, statistic] / table[BASELINE, interval, statistic]

    def dips(statistic: str) -> bool:
        curves = [[table[plan, i, statistic] for i in INTERVALS_MIN] for plan in PLANS]
        return all(min(curve[1:3]) < min(curve[0], curve[3]) for curve in curves)

    shares = [below(plan, i, "mean") for plan in FUSED for i in INTERVALS_MIN]
    return {
        "mean lower": all(share > 0 for share in shares),
        "mean 10 to 25% lower": all(0.10 - NEAR <= share <= 0.25 + NEAR for share in shares),
        "median lower": all(below(plan, i, "median") > 0 for plan in FUSED for i in INTERVALS_MIN),
        "95th percentile higher at 1 min": all(below(plan, 1, "p95") < 0 for plan in FUSED),
        **{f"{statistic} falls then rises": dips(statistic) for statistic in STATISTICS},
    }


def _figure(table: dict[tuple[str, int, str], float]) -> Figure:
    figure = Figure(figsize=(14, 3.4), layout="constrained")
    for number, statistic in enumerate(STATISTICS):
        axes = figure.add_subplot(1, 4, number + 1)
        for plan in PLANS:
            values = [table[plan, i, statistic] for i in INTERVALS_MIN]
            axes.plot(INTERVALS_MIN, values, marker="o", label=plan)
        axes.set_xlabel("1/f (min)")
        axes.set_ylabel(f"{statistic} latency (ms)")
        axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    return figure
