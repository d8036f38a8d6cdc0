"""The claims of seed 000 on admission: A1 to A6."""

from experiments.admission.claims import run, run_on_spark

__all__ = ["run", "run_on_spark"]
