"""How malformed input is tried: refused in one sentence, or handled, and soon."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.errors import PenstockError

CASES = int(os.environ.get("PENSTOCK_FUZZ_CASES", "600"))
TARGETS = 6 + 10  # kinds of advise, and the others
EACH = max(1, CASES // TARGETS)
LONGEST_S = 60


@contextmanager
def soon() -> Iterator[None]:
    """Whatever does not end is a fault of its own."""

    def hang(*_: object) -> None:
        raise AssertionError(f"not done after {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(LONGEST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refused_or_done(attempt: Callable[[], object], seed: int, given: object) -> bool:
    """Whether it was refused; anything but a sentence of ours is a failure that tells the input."""
    try:
        with soon():
            attempt()
    except PenstockError as error:
        sentence = str(error)
        assert len(sentence.splitlines()) == 1, (seed, given, sentence)
        assert "Traceback" not in sentence, (seed, given)
        return True
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r} for {str(given)[:3000]}") from error
    return False


def some_of_both(refused: int) -> None:
    """Input that is always refused early, or never, would test nothing."""
    assert refused > 0, "nothing was refused"
