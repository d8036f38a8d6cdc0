"""What Penstock says when it refuses: one sentence, and the exit code that goes with it."""

from collections.abc import Iterator
from contextlib import contextmanager


class PenstockError(Exception):
    """A refusal a person can act on; its message is one sentence."""

    exit_code = 1


class InvalidInput(PenstockError):
    """A document, option or topology is wrong; the sentence names the field and what is allowed."""

    exit_code = 2


class InvalidTopology(InvalidInput):
    """A topology is refused before anything starts."""


class Unavailable(PenstockError):
    """Something outside (Java, a port, a cluster, a Spark handle) is missing or failed."""


class Infeasible(PenstockError):
    """What is asked for is well said and cannot be had."""

    exit_code = 3


@contextmanager
def documented(page: str) -> Iterator[None]:
    """Refusals from inside a `with` block are noted with the page that says how it is done.

    A note is shown below a traceback and by the command line; the sentence itself stays as it is.
    """
    try:
        yield
    except PenstockError as error:
        if not notes_of(error):
            error.add_note(f"See penstock docs {page}.")
        raise


def shown(value: object, most: int = 40) -> str:
    """What a user wrote, as a refusal repeats it: its beginning, where there is much of it.

    >>> shown("min 4"), shown("9" * 5000, 10)
    ("'min 4'", "'9999999999...'")
    """
    if isinstance(value, str):
        return repr(value if len(value) <= most else f"{value[:most]}...")
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}..."


def notes_of(error: BaseException) -> tuple[str, ...]:
    """What was noted on an error."""
    return tuple(getattr(error, "__notes__", ()))
