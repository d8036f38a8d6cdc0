"""What `penstock arena` prints: a table for each load, or an entry for each policy on it."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from penstock.cli.output import one_line
from penstock.model.number_text import seconds_text
from penstock.sim.arena import Contest, dominated_by

LEAST_WIDTH = 110  # a narrower table would hide numbers


def entries(contest: Contest, with_seed: bool) -> Iterator[dict[str, Any]]:
    """One for each policy, as `--json` prints them."""
    references = contest.references
    for score in contest.scores:
        yield {
            "scenario": score.scenario,
            "policy": score.policy,
            **({"seed": score.seed} if with_seed else {}),
            "in_time_share": score.in_time_share,
            "latency_p99_s": score.latency_p99_s,
            "executor_seconds": score.executor_seconds,
            "clairvoyant_executor_seconds": references.clairvoyant.executor_seconds,
            "reconfigurations": score.reconfigurations,
            "clairvoyant_in_time_share": references.clairvoyant.in_time_share,
            "clairvoyant_at_least": references.at_least,
            "static_min_executors": references.static_min_executors,
            "static_min_executor_seconds": references.static_min.executor_seconds,
            "static_min_in_time_share": references.static_min.in_time_share,
            "static_max_executor_seconds": references.static_max.executor_seconds,
            "static_max_in_time_share": references.static_max.in_time_share,
            "dominated_by": dominated_by(score, contest.scores),
            "foretold_periods": score.foretold.foretold,
            "foretold_kept_share": score.foretold.kept_share,
            "foretold_within_share": score.foretold.within_share,
        }


def print_tables(contests: Sequence[Contest]) -> None:
    """One for each load: the references, then policies with the most in time first."""
    console = Console(highlight=False, width=max(LEAST_WIDTH, Console().width))
    for contest in contests:
        console.print(_table(contest))
        console.print()


def _table(contest: Contest) -> Table:
    scenario, references = contest.scenario, contest.references
    table = Table(
        title=one_line(
            f"{scenario.name}: {scenario.share:.4g} of the results within "
            f"{scenario.max_latency_s:g} s; at least {references.at_least:.0f} executor-seconds"
        ),
        box=SIMPLE_HEAD,
        title_justify="left",
    )
    for name in ("policy", "in time", "p99", "executor-s", "/ clairvoyant", "changes"):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    table.add_column("dominated by")
    labels = ("clairvoyant", f"static {references.static_min_executors} (minimum)",
              f"static {scenario.cluster.max_executors} (maximum)")  # fmt: skip
    fixed = references.scores[1:]
    shown = [(label, score, ()) for label, score in zip(labels, references.scores, strict=True)]
    ranked = sorted(contest.scores, key=lambda score: -score.in_time_share)
    for label, score, beaten in [
        *shown,
        *((s.policy, s, dominated_by(s, (*contest.scores, *fixed))) for s in ranked),
    ]:
        kept = score.in_time_share >= scenario.share
        table.add_row(
            label,
            f"{'' if kept else '! '}{100 * score.in_time_share:.2f}%",
            seconds_text(score.latency_p99_s),
            f"{score.executor_seconds:.0f}",
            f"{contest.ratio(score):.2f}",
            str(score.reconfigurations),
            ", ".join(beaten),
        )
    return table
