"""`penstock prepare`: make, once for a machine, what lets every later start take 0.6 of the CPU."""

import compileall
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, one_line, print_json
from penstock.errors import Unavailable

_LIMIT_S = 600.0
_IMPORTED = ("penstock", "pyspark", "py4j", "pandas", "numpy", "pyarrow", "sqlalchemy")


def prepare(
    anew: Annotated[bool, typer.Option("--anew", help="Make it even if there is one.")] = False,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Make an archive of Spark's classes, so that JVMs start with 0.6 of the CPU time.

    It takes about a minute and 200 MB in the user's cache, and runs a small topology to see which
    classes are used. Without it everything works, and starts more slowly. Python files that were
    installed without being compiled are compiled, too.
    """
    from penstock.spark.cluster import class_archive, java_classes

    began = time.monotonic()
    compile_modules(_IMPORTED)
    made = anew or not class_archive.usable()
    if made:
        class_archive.forget_removed()
        with tempfile.TemporaryDirectory(prefix="penstock-prepare-") as folder:
            _record(folder)
            if compiled := java_classes.compiled_classes():
                class_archive.write_jar(compiled)
            class_archive.write_archive(Path(folder))
    took_s = time.monotonic() - began
    if as_json:
        print_json({"made": made, "seconds": round(took_s, 1)})
    else:
        print(
            f"Prepared in {took_s:.0f} s." if made else "Prepared already; --anew makes it again."
        )


def compile_modules(packages: Iterable[str]) -> None:
    """Compile what nobody has: not every installer does, and not every process keeps what it made.

    A run has processes for its driver, its sources and each executor, which all import these.
    """
    for package in packages:
        found = find_spec(package)
        if found is not None and found.origin is not None:
            compileall.compile_dir(Path(found.origin).parent, quiet=2)


def run_everything() -> None:
    """A topology with a source, a shuffle, state and a sink, on a cluster with one executor."""
    from penstock import Generator, Memory, Topology, constant

    topology = Topology("prepare", max_latency="10s")
    topology.source("rows", Generator(constant(400), keys=10, rows=400))
    topology.add("recent", lambda rows: rows.withWatermark("at", "1 second"), "rows")
    topology.add(
        "counted",
        "SELECT key, count(*) AS n FROM recent GROUP BY key, window(at, '1 second')",
        "recent",
    )
    topology.sink("out", "counted", Memory())
    topology.run(master="embedded", executors_max=1)


def _record(folder: str) -> None:
    """Run everything in a program of its own, whose JVMs list in a folder what they load."""
    from penstock.spark.cluster.class_archive import RECORDING

    command = [sys.executable, "-c", f"from {__name__} import run_everything; run_everything()"]
    try:
        done = subprocess.run(
            command, env={**os.environ, RECORDING: folder}, cwd=folder, capture_output=True,
            text=True, timeout=_LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"Preparing was not done after {_LIMIT_S:g} s; try again.") from error
    if done.returncode:
        raise Unavailable(f"Preparing failed: {one_line(done.stderr[-500:])}")
