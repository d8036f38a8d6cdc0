"""The process that an executor forks its Python workers from, with what they need imported once.

Spark's own daemon forks first and imports afterwards, in every worker: seconds of processor time
on an executor that was added because there was too little of it. And a worker looks for garbage
after each task, among everything imported: a fifth of a second of a processor for every task of
every batch. What is here before the first worker stays, so nobody needs to look through it.
"""

import gc
import importlib

from pyspark.daemon import manager

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
    "penstock.spark.file_sink",
    "penstock.spark.generator_source",
    "penstock.spark.routes.lane",
    "penstock.spark.source.reader",
    "penstock.spark.backends.files",
    "penstock.spark.backends.generators",
    "penstock.spark.windows.output",
    "penstock.spark.windows.pane_step",
)

if __name__ == "__main__":
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    manager()
