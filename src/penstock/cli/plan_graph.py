"""`penstock plan-graph`: the graph of a topology with its components, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, print_json
from penstock.cli.plotting import require_plotting
from penstock.cli.settings import with_settings
from penstock.config import Settings
from penstock.errors import InvalidInput

FORMATS = (".svg", ".png", ".pdf")


def check_picture(option: str, file: Path) -> None:
    """Refuse a file that no picture can be written to, and any where nothing can draw one."""
    if file.suffix not in FORMATS:
        raise InvalidInput(f"{option} is {str(file)!r}; its ending must be {' or '.join(FORMATS)}.")
    if not file.absolute().parent.is_dir():
        raise InvalidInput(f"{option} is {str(file)!r}; there is no such directory.")
    require_plotting()


@with_settings(only=("key-groups", "history"))
def plan_graph(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:NAME]", help="A Python file with a topology, and its name there."
        ),
    ],
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="none|auto|FILE.json",
            help="Operators that share a shuffle: none, those the history proposes (auto), or "
            "those of a file.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help=f"The picture; its name ends in {' or '.join(FORMATS)}.")
    ] = Path("plan.svg"),
    as_json: Annotated[bool, JsonFlag] = False,
    *,
    settings: Settings,
) -> None:
    """Draw the graph of a topology: a colour for each component, and the shuffles between them."""
    import tempfile

    check_picture("--out", out)

    from penstock.cli.drawing import draw_components
    from penstock.spark.compile.topology_file import load_topology
    from penstock.spark.run.explain import explain

    topology = load_topology(spec)
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        log_file = Path(folder) / "spark.log"
        explained = explain(topology, settings.key_groups, log_file, False, plan, settings.history)
    components = {
        f"{component.name} by ({', '.join(component.key)})" if component.key else component.name: (
            *component.operators,
            *(() if component.name in component.operators else (component.name,)),
        )
        for query in explained.plan.queries
        for component in query.components
    }
    draw_components(topology.name, explained.edges, components, out)
    if as_json:
        print_json({"file": str(out), "components": components, "shuffles": explained.shuffles})
    else:
        print(f"{out}: {len(components)} components")
        print("\n".join(explained.lines()))
