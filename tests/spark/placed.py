"""A stream, moves of its key groups, and the end of an executor: shared by tests of placement."""

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.control.actions import Move
from penstock.spark.act.placement import Placement
from penstock.spark.sources.generator_source import FORMAT
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

STREAM = Generator(constant(400.0), keys=50, skew=0.9, seed=3, lanes=1, max_rows=2_000)


def rows(session: SparkSession, epoch_s: float) -> DataFrame:
    options = {"generator": STREAM.to_json(), "epoch_s": repr(epoch_s), "stream": "rows"}
    return session.readStream.format(FORMAT).options(**options).load()


def kill_executor(session: SparkSession, executor: str) -> None:
    """kill -9 the process of one executor of this session."""
    application = str(session.sparkContext.applicationId)
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if application in words and words[words.index("--executor-id") + 1] == executor:
            os.kill(int(entry.parent.name), signal.SIGKILL)
            return
    pytest.fail(f"executor {executor} has no process")


def all_to(placement: Placement, nodes: list[str]) -> list[Move]:
    """Every key group to the nodes in turn."""
    return [
        Move(name, group, nodes[group % len(nodes)])
        for name, groups in placement.observe().items()
        for group in range(len(groups.node))
    ]
