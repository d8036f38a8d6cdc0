"""The process that an executor forks its Python workers from, with what they need imported once.

Spark's own daemon forks first and imports afterwards, in every worker: seconds of processor time
on an executor that was added because there was too little of it. And a worker looks for garbage
after each task, among everything imported: a fifth of a second of a processor for every task of
every batch. What is here before the first worker stays, so nobody needs to look through it.

Spark also puts archives of its Python files first in the path. What comes from there is compiled
anew in each process, and a worker reads their lists of contents again whenever its path changes.
Where PySpark is installed, the files beside them are the same, and compiled.

A thread does not live on in a fork, but what it had locked stays locked there, and whoever asks for
it waits for ever. So nothing that is imported here may start one.
"""

import gc
import importlib
import os
import sys

from penstock.spark.cluster.import_path import without_copies

PRELOADED = (
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.conversion",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.pandas.types",
    "pyspark.worker",
    "penstock.spark.channels.source",
    "penstock.spark.sinks.files",
    "penstock.spark.sources.generator_source",
    "penstock.spark.routes.reading",
    "penstock.spark.sources.reader",
    "penstock.spark.sources.backends.files",
    "penstock.spark.sources.backends.generators",
    "penstock.spark.windows.output",
    "penstock.spark.windows.pane_step",
)
WITHOUT_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",  # a worker has one core
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # an allocator of Arrow's that is not used
}


def main() -> None:
    """Fork workers until the executor ends."""
    preload()
    importlib.import_module("pyspark.daemon").manager()


def preload() -> None:
    """Import what workers need, without a thread."""
    for name, value in WITHOUT_THREADS.items():
        os.environ.setdefault(name, value)
    sys.path[:] = without_copies(sys.path)
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
