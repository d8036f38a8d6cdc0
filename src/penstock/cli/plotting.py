"""Figures need matplotlib, which only those who want figures install."""

from importlib.util import find_spec

from penstock.errors import Unavailable

MISSING = "figures need matplotlib, which is not installed: pip install 'penstock[plot]'."


def can_plot() -> bool:
    """Whether matplotlib is there; it is not imported yet, which takes half a second."""
    return find_spec("matplotlib") is not None


def require_plotting() -> None:
    """Refuse a figure that is asked for, before the work that it would show."""
    if not can_plot():
        raise Unavailable(MISSING)
