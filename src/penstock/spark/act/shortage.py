"""A cluster that gave fewer executors than it was asked for: for a while it is not asked for more.

Each request that is not met holds the loop up until it is withdrawn, and what a full queue or a
quota refuses now it will most likely refuse in a few seconds too.
"""

import time
from collections.abc import Callable

FIRST_WAIT_S = 60.0
LONGEST_WAIT_S = 600.0


class Shortage:
    """What was given last, and when more may be asked for; waits double until more comes.

    >>> now_s = 0.0
    >>> shortage = Shortage(lambda: now_s)
    >>> shortage.most(), shortage.fell_short(given=3, asked=4), shortage.most()
    (None, None, 3)
    >>> shortage.reason()
    'the cluster gave 3 of 4 executors 0 s ago; more are asked for again in 60 s'
    >>> now_s = 61.0
    >>> shortage.most(), shortage.fell_short(given=3, asked=4), shortage.reason()[-4:]
    (None, None, '20 s')
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._given, self._asked = 0, 0
        self._began_s, self._wait_s = 0.0, 0.0

    def fell_short(self, given: int, asked: int) -> None:
        """A request was not met."""
        again = self._wait_s > 0 and given <= self._given
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S) if again else FIRST_WAIT_S
        self._given, self._asked, self._began_s = given, asked, self._now_s()

    def met(self, total: int) -> None:
        """A request was met: if for more than before, there is no shortage any more."""
        if total > self._given:
            self._wait_s = 0.0

    def most(self) -> int | None:
        """Executors that may be asked for at present; None if there is no such bound."""
        return self._given if self._left_s() > 0 else None

    def reason(self) -> str:
        """Why no more are asked for."""
        age_s = self._now_s() - self._began_s
        return (
            f"the cluster gave {self._given} of {self._asked} executors {age_s:.0f} s ago; more "
            f"are asked for again in {max(0.0, self._left_s()):.0f} s"
        )

    def _left_s(self) -> float:
        return self._began_s + self._wait_s - self._now_s() if self._wait_s else 0.0
