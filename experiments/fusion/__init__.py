"""The claims of seed 001: F1 to F3."""

from experiments.fusion.claims import run

__all__ = ["run"]
