"""Which plan a run wants: none, the proposal of a history, one from a file, or the checkpoint's."""

import json
from pathlib import Path

from penstock.control.history.store import HistoryStore
from penstock.errors import InvalidInput
from penstock.model.plan import TopologyPlan
from penstock.model.plan_document import Group, read_plan
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.run.slow_loop import proposed

PlanName = str | TopologyPlan | tuple[Group, ...] | None


def choose_plan(
    wanted: PlanName, apply: bool, store: HistoryStore, topology: str, checkpoint: Path
) -> PlanChoice:
    """What `--plan` and `--apply` ask for.

    `auto` follows the newest proposals of the history. Where a checkpoint has begun, its plan is
    kept unless state may be carried over.
    """
    if wanted is None:
        return PlanChoice(None, apply)
    if not isinstance(wanted, str):
        return PlanChoice(wanted, apply)
    if wanted == "none":
        return PlanChoice((), apply, as_declared=True)
    if wanted == "auto":
        begun = (checkpoint / "queries").is_dir()
        found = proposed(store, topology)
        if found.groups is None or (begun and not apply):
            return PlanChoice(None, apply)
        return PlanChoice(
            found.groups, apply, if_possible=True, orders=found.orders,
            expected_gains=found.expected_gains,
        )  # fmt: skip
    return PlanChoice(read_plan_file(Path(wanted)), apply)


def read_plan_file(file: Path) -> TopologyPlan | tuple[Group, ...]:
    """The plan of a JSON file."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"--plan is {str(file)!r}, which cannot be read ({error.strerror}); give none, auto or "
            "a JSON file."
        ) from error
    except ValueError as error:
        raise InvalidInput(f"--plan {file} is not JSON: {error}.") from error
    return read_plan(document, f"--plan {file}")
