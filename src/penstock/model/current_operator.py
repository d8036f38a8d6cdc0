"""Which operator's function is being called, for errors that name it."""

from contextvars import ContextVar

CURRENT_OPERATOR: ContextVar[str] = ContextVar("operator", default="")


def operator_name() -> str:
    """The operator whose function is being called; empty outside of a topology."""
    return CURRENT_OPERATOR.get()
