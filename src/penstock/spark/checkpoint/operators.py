"""What the state of a checkpoint was made by: windows, aggregates, joins, watermarks, functions.

Recorded of each operator are the text of its analysed plan, if it keeps state (of others, their
watermarks), a digest of the code of state functions, which Spark cannot look into, and what its
author wrote, for the sentence that tells of a change. Texts of plans are Spark's, and byte code is
Python's: where the version is another one, a start goes on and records them anew.
"""

import hashlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import pyspark

from penstock.errors import InvalidTopology
from penstock.model.topology import Operator, Topology
from penstock.model.user_code import reachable_code
from penstock.spark.handles.analysed_plan import OperatorAnalysis

SHOWN = 60  # characters on either side of what changed


def operators_record(
    topology: Topology, analyses: Mapping[str, OperatorAnalysis]
) -> dict[str, Any]:
    """What is to be the same whenever a run goes on with a checkpoint, as JSON values."""
    return {
        "spark": str(pyspark.__version__),
        "python": ".".join(map(str, sys.version_info[:2])),
        "operators": {
            operator.name: {
                "plan": analyses[operator.name].state_text,
                "code": (
                    code_digest(operator.function)
                    if analyses[operator.name].state_function
                    else None
                ),
                "written": _written(operator),
            }
            for operator in topology.operators
            if operator.name in analyses and analyses[operator.name].state_text
        },
    }


def refuse_changes(before: Mapping[str, Any], now: Mapping[str, Any], checkpoint: Path) -> None:
    """Refuse to continue where an operator computes its state differently from the checkpoint."""
    if (before["spark"], before["python"]) != (now["spark"], now["python"]):
        return
    for name, made in now["operators"].items():
        old = before["operators"].get(name)
        if old is None or (old["plan"], old["code"]) == (made["plan"], made["code"]):
            continue
        differ = "written" if old["written"] != made["written"] else "plan"
        was, is_now = _around_change(old[differ] or "", made[differ] or "")
        what = f"it was {was!r} and is {is_now!r}" if was != is_now else "what it calls has changed"
        raise InvalidTopology(
            f"operator {name!r} computes its state differently from checkpoint {checkpoint}: "
            f"{what}; results of both kinds would mix. Change it back, choose another checkpoint, "
            "or use the new operator on the old state (--accept-changes, or "
            "run(accept_changes=True))."
        )


def code_digest(function: Any) -> str:
    """A digest of the code that a function may run, wherever its lines stand."""
    parts = sorted(_code_text(code) for code in reachable_code(function))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _code_text(code: CodeType) -> str:
    consts = [_constant(one) for one in code.co_consts]
    return repr((code.co_name, code.co_code.hex(), code.co_names, code.co_varnames, consts))


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return value.co_name
    if isinstance(value, frozenset):  # in the order of hashes, which differ from run to run
        return repr(sorted(map(repr, value)))
    return repr(value)


def _written(operator: Operator) -> str | None:
    """What the operator's author wrote, on one line; None where it cannot be had."""
    if operator.sql is not None:
        return " ".join(operator.sql.split())
    try:
        return " ".join(inspect.getsource(operator.function).split())  # type: ignore[arg-type]
    except (OSError, TypeError):
        return None


def _around_change(was: str, now: str) -> tuple[str, str]:
    """Where two texts begin to differ, with some of what stands around it."""
    first = next(
        (at for at, (a, b) in enumerate(zip(was, now, strict=False)) if a != b),
        min(len(was), len(now)),
    )
    start = max(0, first - SHOWN // 2)
    return tuple(
        f"{'...' if start else ''}{text[start : first + SHOWN // 2]}"
        f"{'...' if len(text) > first + SHOWN // 2 else ''}"
        for text in (was, now)
    )  # type: ignore[return-value]
