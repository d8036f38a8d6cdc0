"""What Spark's exceptions say, in one sentence."""

import re

from pyspark.errors import PySparkException

_OURS = re.compile(r"^penstock\.errors\.\w+: (.+)$", re.MULTILINE)


def first_line(error: BaseException) -> str:
    """What an exception says, without its stack or plan; of a worker's, what we said there."""
    if isinstance(error, PySparkException):
        text = error.getMessage() or str(error)
        ours = _OURS.search(str(error))
        if ours is not None:
            return ours.group(1)
    else:
        text = f"{type(error).__name__}: {error}"
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
