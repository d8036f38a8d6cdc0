"""A1, A2 and A5 on Spark at a small scale, each strategy a source of the same query.

Time passes as it does: with three seeds about 50 minutes, with --quick and one about eight.
"""

from pathlib import Path

from experiments.admission.on_spark import a1, a2, a5
from experiments.claim import Claim

CLAIMS = (a1, a2, a5)


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """A1 and A2 over the six workloads, A5 by lanes alone and with executors behind them."""
    return [one.claim(folder, seeds, quick) for one in CLAIMS]
