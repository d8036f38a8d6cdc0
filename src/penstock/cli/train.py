"""`penstock train`: simulated scenarios teach the policy `rlearn`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.output import JsonFlag, print_json
from penstock.cli.settings import HISTORY_HELP, history_place
from penstock.model.number_text import share_text


def train(
    scenarios: Annotated[
        list[Path],
        typer.Argument(metavar="SCENARIO.toml", help="Scenarios (penstock docs simulator)."),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--for", help="Name of the topology that is to learn. Default: the scenario's."
        ),
    ] = None,
    history: Annotated[str | None, typer.Option("--history", help=HISTORY_HELP)] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Simulate scenarios at fixed sizes, for runs with --policy rlearn to start from."""
    from penstock.control.history.store import HistoryStore
    from penstock.sim.scenario_file import load_scenario
    from penstock.sim.training import train as trained

    wanted = [load_scenario(path) for path in scenarios]
    answer = []
    with HistoryStore(history_place(history)) as store:
        for scenario in wanted:
            learner = name or scenario.name
            runs = trained(scenario, store, learner)
            answer.append({
                "scenario": scenario.name,
                "for": learner,
                "sizes": [
                    {"processors": one.processors, "in_time_share": one.in_time_share,
                     "held_rows": one.backlog_rows}
                    for one in runs
                ],
                "learnt": _learnt(store, learner, scenario.max_latency_s, scenario.sharing),
            })  # fmt: skip
    if as_json:
        print_json(answer)
    else:
        _print_lines(answer)


def _learnt(store: Any, name: str, max_latency_s: float, sharing: Any) -> list[dict[str, Any]]:
    """The degree that is worth most, by component and highest rate of a bin."""
    from penstock.control.experience import experience

    knowledge = experience(store, name, max_latency_s, sharing)
    bins = sorted({(component, place) for component, place, _ in knowledge.values})
    found = []
    for component, place in bins:
        rate = knowledge.bin_ratio**place
        degree = knowledge.best_degree(component, rate)
        if degree is not None:
            found.append({"component": component, "up_to_rows_per_s": rate, "processors": degree})
    return found


def _print_lines(answer: list[dict[str, Any]]) -> None:
    for one in answer:
        for size in one["sizes"]:
            print(
                f"{one['scenario']} on {size['processors']} processors: "
                f"{share_text(size['in_time_share'])} in time, {size['held_rows']} rows left"
            )
        print(f"learnt for {one['for']}:")
        for row in one["learnt"]:
            whose = f"{row['component']}: " if row["component"] else ""
            print(f"  {whose}up to {row['up_to_rows_per_s']:.4g} rows/s {row['processors']}")
