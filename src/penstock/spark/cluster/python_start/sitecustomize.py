"""In every Python process that the driver's JVM starts: PySpark comes from where it is installed.

Spark puts archives of its Python files first in the path. What is imported from there is compiled
anew in each process: half a second of a core for each source of each query, before it has read a
row. Python imports this at its start, as its folder is on the PYTHONPATH of the JVM.

What a query's plan asks of its sources is asked in processes that one of these forks. It imports
what they need once, before it forks, and not each of them by itself.
"""

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

sys.path[:] = [entry for entry in sys.path if Path(entry) != Path(__file__).parent]
with suppress(ImportError):  # where Penstock is not installed, the archives are all there is
    from penstock.spark.cluster.import_path import without_copies

    sys.path[:] = without_copies(sys.path)
_ours = sys.modules.pop("sitecustomize")
try:
    import_module("sitecustomize")  # whoever else has one
except ModuleNotFoundError:
    sys.modules["sitecustomize"] = _ours
_forks, _what = (["", "", *sys.orig_argv])[-2:]
if _forks == "pyspark.daemon" and _what.startswith("pyspark.sql.worker."):
    with suppress(ImportError):
        for _name in (_what, "penstock.spark.sources.reader", "penstock.spark.channels.source"):
            import_module(_name)
