"""`python -m experiments NAME`: a paper's experiments, and whether its claims hold here."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import JsonFlag, one_line, print_json
from penstock.cli.plotting import require_plotting
from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from experiments.claim import Claim

    Experiments = Callable[[Path, Sequence[int], bool], list[Claim]]

PAPERS = ("admission", "routing", "fusion", "scaling", "drs", "allocation")
MOST_SEEDS = 1000
PLACES = ("sim", "spark")
PIPE_WIDTH = 200


def reproduce(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help=f"Whose experiments to run: {', '.join(PAPERS)}."),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where to write the figures.")
    ] = Path("figures"),
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", min=1, max=MOST_SEEDS, help="How many times to run each experiment."
        ),
    ] = 3,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Run small versions: seconds instead of minutes, less proof."),
    ] = False,
    where: Annotated[
        str,
        typer.Option(
            "--where",
            metavar="|".join(PLACES),
            help="sim: the experiments that need no Spark. spark: those that run on Spark.",
        ),
    ] = "sim",
    claim: Annotated[
        list[str] | None,
        typer.Option(
            "--claim", metavar="ID", help="Only this claim, such as L2; may be given again."
        ),
    ] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Run the experiments of a paper and report which of its claims hold here.

    Each claim comes with what was measured and, if it does not hold, the
    reason. Figures are written as PNG and SVG. A claim that does not hold is a
    finding, not a failure: the exit code is 0.
    """
    if name not in PAPERS:
        raise InvalidInput(f"NAME is {name!r}; allowed: {', '.join(PAPERS)}.")
    if where not in PLACES:
        raise InvalidInput(f"--where is {where!r}; allowed: {', '.join(PLACES)}.")
    require_plotting()
    experiments = _experiments(name, where, claim or [])
    _check_folder(out)
    size = "small versions of the experiments" if quick else "the experiments"
    print(f"{name}: running {size} with seeds 1 to {seeds} ...", file=sys.stderr)
    began_s = time.monotonic()
    claims = experiments(out, list(range(1, seeds + 1)), quick)
    took_s = time.monotonic() - began_s
    held = sum(claim.holds for claim in claims)
    print(
        f"{name}: {held} of {len(claims)} claims hold; took {took_s:.0f} s; figures in {out}",
        file=sys.stderr,
    )
    if as_json:
        print_json([claim.as_json() for claim in claims])
    else:
        _print_table(claims)


def _experiments(name: str, where: str, wanted: Sequence[str]) -> Experiments:
    """A paper's package has `run`, and `run_on_spark` if some of its experiments run there."""
    package = import_module(f"experiments.{name}")
    if wanted and (where == "sim" or hasattr(package, "run_on_spark")):
        return _chosen(name, where, wanted)
    if where == "spark" and not hasattr(package, "run_on_spark"):
        raise InvalidInput(f"--where is 'spark'; {name} has no experiments there, only in 'sim'.")
    run: Experiments = package.run_on_spark if where == "spark" else package.run
    return run


def _chosen(name: str, where: str, wanted: Sequence[str]) -> Experiments:
    package = import_module(f"experiments.{name}" + (".on_spark" if where == "spark" else ""))
    known = {one.__name__.rpartition(".")[2].upper(): one for one in getattr(package, "CLAIMS", ())}
    for claim in wanted:
        if claim.upper() not in known:
            allowed = ", ".join(known) or f"none, as those of {name} run together there"
            raise InvalidInput(f"--claim is {claim!r}; allowed: {allowed}.")

    def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
        return [known[one.upper()].claim(folder, tuple(seeds), quick) for one in wanted]

    return run


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
