"""Waiting for what a cluster does by itself."""

import time
from collections.abc import Callable

LIMIT_S = 300.0


def until(what: str, holds: Callable[[], object]) -> None:
    """Until it holds, beside other load as well."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come in {LIMIT_S:g} s"
        time.sleep(0.2)
