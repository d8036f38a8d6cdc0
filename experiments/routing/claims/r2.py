"""R2 (Fig. 15): the load ratio of keys by skew and number of split keys."""

from itertools import pairwise
from pathlib import Path

from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.routing.trials.balance import QUICK_ROWS, ROWS, skew_run
from experiments.statistics import Spread, spread

TOPS = (0, 5, 20, 100, 200, 1000)
NEAR = 0.05  # what "near" and "no gain" may be off: five points
EXPONENTS, QUICK_EXPONENTS = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0), (0.5, 1.5)


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Keys of several exponents, with none to a thousand of them split."""
    exponents = QUICK_EXPONENTS if quick else EXPONENTS
    rows = QUICK_ROWS if quick else ROWS
    runs = [skew_run(seed, e, TOPS, rows) for e in exponents for seed in seeds]

    def ratio(exponent: float, top: int, by_hash: bool = False) -> Spread:
        return spread(
            (run.paper if by_hash else run.bounded)[top] for run in runs if run.exponent == exponent
        )

    keys = spread(run.keys_per_node for run in runs)
    shown = "; ".join(
        f"Zipf {e:g}: " + ", ".join(f"K={k} {ratio(e, k):.1%}" for k in (0, 5, 100, 200))
        for e in exponents
    )
    hashed = ", ".join(f"{ratio(e, 5, True):.1%} at Zipf {e:g}" for e in exponents[-2:])
    figure = Figure(figsize=(9, 4))
    for axes, by_hash in zip(figure.subplots(1, 2, sharey=True), (False, True), strict=True):
        for e in exponents:
            means = [100 * ratio(e, k, by_hash).mean for k in TOPS]
            axes.plot(range(len(TOPS)), means, marker="o", label=f"Zipf {e:g}")
        axes.axhline(100 * keys.mean, linestyle=":", color="black", label="keys per node")
        axes.set_xticks(range(len(TOPS)), [str(k) for k in TOPS])
        axes.set_xlabel("K")
        axes.set_yscale("log")
        axes.set_title("parts by hash alone" if by_hash else "parts avoid full nodes (default)")
    figure.axes[0].set_ylabel("load ratio, %")
    figure.axes[0].legend()
    return judged(
        "R2",
        paper="16 K keys, Zipf of several exponents: without splitting the load ratio rises with "
        "skew; K=5 brings it below 50% in all; K=100 to 200 near the keys-per-node ratio; beyond "
        "that no gain.",
        ours=f"{shown}; keys per node {keys:.1%}. With parts placed by hash alone and one part as "
        f"frequent as key K, K=5 gives {hashed}. The Uber trace is not to be had, so Zipf only.",
        where="sim",
        parts={
            "K=0 rises with skew": all(
                ratio(a, 0).mean < ratio(b, 0).mean for a, b in pairwise(exponents)
            ),
            "K=5 below 50% in all": all(ratio(e, 5).mean < 0.5 for e in exponents),
            "K=100 to 200 near keys per node": all(
                ratio(e, k).mean <= keys.mean + NEAR for e in exponents for k in (100, 200)
            ),
            "no gain beyond K=200": all(
                ratio(e, 200).mean - ratio(e, 1000).mean <= NEAR for e in exponents
            ),
        },
        figures=save_figure(figure, folder, "routing-R2"),
        numbers={
            "keys_per_node": keys.pair,
            "default": {f"{e:g} K={k}": ratio(e, k).pair for e in exponents for k in TOPS},
            "by_hash": {f"{e:g} K={k}": ratio(e, k, True).pair for e in exponents for k in TOPS},
        },
    )
