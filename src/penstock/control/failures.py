"""What stands between the loop and whatever may fail behind a port or in a policy."""

import logging
from collections.abc import Callable
from typing import TypeVar

from penstock.control.records import FailureRecord

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Attempts:
    """Calls that never raise: a failure is logged in one line and kept for the period's record."""

    def __init__(self) -> None:
        self.failures: list[FailureRecord] = []  # of this period

    def attempt(self, stage: str, call: Callable[[], Result], at_s: float) -> Result | None:
        """The query must outlive any fault of a port or a policy, whatever its type."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001
            message = " ".join(f"{type(error).__name__}: {error}".split())
            self.failures.append(FailureRecord(at_s, stage, message))
            log.warning("%s failed, going on: %s", stage, message)
            return None
