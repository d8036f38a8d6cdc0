"""Rounds of a policy on Spark: real key groups of real queries, moved while they run.

An embedded cluster on one machine, three executors with one slot each. What is small here is the
number of nodes and key groups; policies, actuator and measurements are those of any run.
"""

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from experiments.allocation.on_spark.placement import Trial, slowest_to_mean
from experiments.claim import save_figure
from penstock.control.allocating import Allocating, AllocationRules
from penstock.control.key_groups import key_group_table
from penstock.model.observation import Observation

EXECUTORS = 3
BATCHES = 2  # to a round


@dataclass(frozen=True)
class Course:
    """What each round measured before it moved anything."""

    slowest_to_mean: list[float]
    collocation: list[float]
    migrations: list[int]


def course(trial: Trial, rules: AllocationRules, rounds: int) -> Course:
    """A policy, round by round."""
    allocating = Allocating(rules)
    ratio, share, moves = [], [], []
    for _ in range(rounds):
        observation, record, _ = trial.round(allocating, BATCHES)
        ratio.append(slowest_to_mean(observation))
        share.append(_collocation(observation))
        moves.append(len(record.moves) if record is not None else 0)
    return Course(ratio, share, moves)


def _collocation(observation: Observation) -> float:
    return 100 * key_group_table(observation).collocation


def draw_rounds(
    folder: Path, name: str, label: str, courses: dict[str, list[float]]
) -> tuple[str, ...]:
    """A curve for each policy."""
    figure = Figure(figsize=(5, 3.2))
    axis = figure.subplots()
    for who, values in courses.items():
        axis.plot(values, marker="o", label=who)
    axis.set(xlabel="round", ylabel=label)
    axis.legend()
    return save_figure(figure, folder, name)
