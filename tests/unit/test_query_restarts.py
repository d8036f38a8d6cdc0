"""Which ends of a query it is brought back from."""

from typing import Any, cast

import pytest

from penstock.spark import handles
from penstock.spark.run.query_restarts import QueryRestarts


class Ended:
    """A query that is no more."""

    isActive = False
    name = "road"


@pytest.mark.parametrize(
    ("cause", "again"),
    [
        ("java.io.EOFException: null", True),
        ("java.net.SocketException: Broken pipe", True),
        (
            "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to "
            "connect back",
            True,
        ),
        ("java.lang.ArithmeticException: / by zero", False),
        (None, False),
    ],
)
def test_a_runner_that_died_or_came_too_late_is_not_the_end(
    monkeypatch: pytest.MonkeyPatch, cause: str | None, again: bool
) -> None:
    monkeypatch.setattr(handles, "failure_cause", lambda query: cause)
    restarts = QueryRestarts(list, lambda place: True)
    assert restarts.will_restart(cast(Any, Ended())) is again
    restarts.stop()
    assert not restarts.will_restart(cast(Any, Ended()))
