"""Figures of runs: rate, processors and latency over time."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from experiments.scaling.trials.run import TIMEOUT_S, Outcome


def curves(rows: Mapping[str, Mapping[str, Outcome]]) -> Figure:
    """One row of plots for each setting, one curve for each policy."""
    figure = Figure(figsize=(11, 2.6 * len(rows)))
    for number, (setting, outcomes) in enumerate(rows.items()):
        axes = [figure.add_subplot(len(rows), 3, 3 * number + place + 1) for place in range(3)]
        first = next(iter(outcomes.values()))
        axes[0].plot(first.at_s / 60, first.rate_per_s, color="grey")
        axes[0].set_ylabel(f"{setting}\nrows/s", fontsize=8)
        for name, outcome in outcomes.items():
            minutes = outcome.at_s / 60
            axes[1].step(minutes, outcome.total_units, where="post", label=name)
            axes[2].plot(minutes, outcome.latency_by_period_s, label=name)
        axes[1].set_ylabel("processors", fontsize=8)
        axes[2].set_ylabel("latency (s)", fontsize=8)
        axes[2].set_yscale("log")
        axes[2].minorticks_off()
        axes[2].axhline(TIMEOUT_S, color="red", linewidth=0.7)
        axes[1].legend(fontsize=6)
        for one in axes:
            one.tick_params(labelsize=7)
    for one in figure.axes[-3:]:
        one.set_xlabel("minute", fontsize=8)
    # Fixed room: a layout that fits itself takes longer than most of the experiments.
    figure.subplots_adjust(wspace=0.3, hspace=0.35)
    return figure
