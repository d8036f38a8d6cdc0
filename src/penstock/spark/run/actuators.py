"""What of the loop's decisions can be carried out in a session, and what would be advice only.

`penstock doctor --master URL` asks a session of its own on that master, in a process of its own.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import astuple
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.config import Settings
from penstock.control.actions import (
    MoveKeyGroups,
    SetExecutors,
    SetInterval,
    SetRouteTasks,
    ShedLoad,
    UseForms,
    UseVariants,
)
from penstock.errors import PenstockError
from penstock.spark import handles
from penstock.spark.act.actuator import SparkActuator
from penstock.spark.cluster.doctor import Check
from penstock.spark.handles.messages import SPARK_ERRORS, first_line
from penstock.spark.run.place import Place, open_session

LIMIT_S = 420.0  # YARN may let an application wait, and pods may have to fetch an image
REMEDY = "Start the cluster, make room on it, or see Spark's own message."
OURS = "works in topologies, whose sources are Penstock's"
# Every decision the loop can act on, and what it changes; True if it needs sources of ours.
ACTUATORS: Mapping[str, tuple[str, bool]] = {
    SetExecutors.NAME: ("the number of executors", False),
    MoveKeyGroups.NAME: ("where state lives", False),
    SetRouteTasks.NAME: ("tasks of routed sources", True),
    SetInterval.NAME: ("how often batches start", True),
    UseForms.NAME: ("equivalent forms of operators", True),
    UseVariants.NAME: ("cheaper forms of operators", True),
    ShedLoad.NAME: ("rows that are dropped", True),
}


def actuators(session: SparkSession) -> tuple[Check, ...]:
    """Each actuator of a session: what works, and what is advice only, with the reason."""
    cannot = SparkActuator(session, ()).unavailable()
    return tuple(
        Check(f"act: {what}", True, _verdict(cannot.get(name, ""), of_ours))
        for name, (what, of_ours) in ACTUATORS.items()
    )


def _verdict(reason: str, of_ours: bool) -> str:
    if of_ours:
        return f"{OURS}; advice only for attached queries ({reason.rstrip('.')})"
    return f"advice only: {reason}" if reason else "works"


def examine_master(master: str) -> tuple[Check, ...]:
    """What a session on a master can do, asked in a process of its own."""
    name = f"master {master}"
    try:
        answer = subprocess.run(
            [sys.executable, "-m", __name__, master], capture_output=True, text=True,
            timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return (Check(name, False, f"no answer within {LIMIT_S:g} s", REMEDY),)
    if answer.returncode != 0:
        last = (answer.stderr.strip().split("\n") or [""])[-1]
        return (Check(name, False, last, REMEDY),)
    found = json.loads(answer.stdout.strip().split("\n")[-1])
    return tuple(Check(*one) for one in found)


def examined(session: SparkSession) -> Iterator[Check]:
    """What a session can do: its executors, their Python, and each actuator."""
    for host in sorted({one.host for one in handles.executors(session)}):
        yield Check("executor", True, f"came on {host}")
    yield _python_there(session)
    yield from actuators(session)


def _python_there(session: SparkSession) -> Check:
    """The Python of an executor, which topologies need penstock in."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import platform
        from importlib.util import find_spec

        found = find_spec("penstock")
        if found is None:
            raise ModuleNotFoundError("No module named 'penstock'")
        for _ in batches:
            said = f"{platform.python_version()} with penstock at {found.origin}"
            yield pa.RecordBatch.from_pydict({"said": [said]})

    try:
        (row,) = session.range(0, 1, 1, 1).mapInArrow(look, "said string").collect()
    except SPARK_ERRORS as error:
        remedy = "Install penstock there, or send an environment along (spark.archives)."
        return Check("python of executors", False, first_line(error), remedy)
    return Check("python of executors", True, row.said)


def _main(master: str) -> None:
    settings = Settings(executors_max=1, slots=1, executor_memory_mb=512)
    with ExitStack() as ending:
        scratch = Path(ending.enter_context(TemporaryDirectory(prefix="penstock-doctor-")))
        try:
            session = open_session(
                "penstock doctor", settings, Place(master), scratch / "checkpoint", ending
            )
            found = tuple(examined(session))
        except PenstockError as reason:
            found = (Check(f"master {master}", False, str(reason), REMEDY),)
        sys.stdout.write(json.dumps([astuple(one) for one in found]) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1])
