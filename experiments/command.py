"""`penstock reproduce`: a paper's experiments here, and whether its claims hold."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import JsonFlag, one_line, print_json
from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from experiments.claim import Claim

PAPERS = {
    name: f"experiments.{name}"
    for name in ("admission", "routing", "fusion", "scaling", "drs", "allocation")
}
NAMES = tuple(name for name, module in PAPERS.items() if find_spec(module) is not None)
MOST_SEEDS = 1000
PLACES = ("sim", "spark")
PIPE_WIDTH = 200


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(NAMES)}.")],
    out: Annotated[Path, typer.Option("--out", help="Where the figures go.")] = Path("figures"),
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=MOST_SEEDS, help="Runs of each experiment.")
    ] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small experiments: seconds, and less to be said.")
    ] = False,
    where: Annotated[
        str,
        typer.Option("--where", help="sim: without Spark; spark: what runs on Spark, minutes."),
    ] = "sim",
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Run a paper's experiments and say which of its claims hold here, and why not the others.

    Figures are written as PNG and SVG. A claim that does not hold is a finding, not a failure: the
    exit code is 0.
    """
    if name not in NAMES:
        raise InvalidInput(f"NAME is {name!r}; allowed: {', '.join(NAMES)}.")
    if where not in PLACES:
        raise InvalidInput(f"--where is {where!r}; allowed: {', '.join(PLACES)}.")
    experiments = _experiments(name, where)
    _check_folder(out)
    size = "small experiments" if quick else "the experiments"
    print(f"{name}: running {size}, seeds 1 to {seeds} ...", file=sys.stderr)
    began_s = time.monotonic()
    claims = experiments(out, list(range(1, seeds + 1)), quick)
    took_s = time.monotonic() - began_s
    held = sum(claim.holds for claim in claims)
    print(
        f"{name}: {held} of {len(claims)} claims hold, {took_s:.0f} s, figures in {out}",
        file=sys.stderr,
    )
    if as_json:
        print_json([claim.as_json() for claim in claims])
    else:
        _print_table(claims)


def _experiments(name: str, where: str) -> Callable[[Path, Sequence[int], bool], list[Claim]]:
    """A paper's module has `run`, and `run_on_spark` if some of its experiments run there."""
    module = import_module(PAPERS[name])
    if where == "spark" and not hasattr(module, "run_on_spark"):
        raise InvalidInput(f"--where is 'spark'; {name} has no experiments there, only in 'sim'.")
    found: Callable[[Path, Sequence[int], bool], list[Claim]] = (
        module.run_on_spark if where == "spark" else module.run
    )
    return found


def _check_folder(out: Path) -> None:
    """Refuse before the experiments what would fail after them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--out is {str(out)!r}: {error.strerror}; give a folder.") from error


def _print_table(claims: Sequence[Claim]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True)
    for column in ("id", "holds", "paper", "ours", "reason", "where"):
        table.add_column(column)
    for claim in claims:
        cells = (
            claim.id, "yes" if claim.holds else "no", claim.paper, claim.ours, claim.reason,
            claim.where,
        )  # fmt: skip
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    # A pipe has no width to keep to; in a narrow terminal the rows only become longer.
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
