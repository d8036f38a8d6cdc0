"""Where results go. Each kind is data; spark/ carries it out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidTopology
from penstock.masking import carries_secret

FILE_FORMATS = ("parquet", "json", "csv", "orc")
OUTPUT_MODES = ("append", "update", "complete")


def _check_place(path: str, field: str) -> None:
    """Refuse a path that is none, or whose secrets commit records and errors would show."""
    if not path:
        raise InvalidTopology(f"{field} is empty; name a directory.")
    # Only an address has them: a name of a local file may look like one.
    if "://" in path and not path.startswith("file:") and carries_secret(path):
        raise InvalidTopology(
            f"{field} carries a password or key, which would be written into commit records; leave "
            "it out, and give it in the environment of driver and executors instead, for S3 as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )


@dataclass(frozen=True)
class Files:
    """One directory per batch below `path`, published whole: exactly once.

    A run that begins anew is refused where batches of another one are; with `overwrite` it removes
    them first. A run that goes on with its checkpoint removes nothing. As long as a run lives, no
    other one may write there.
    """

    path: str
    format: str = "parquet"
    overwrite: bool = False

    def __post_init__(self) -> None:
        _check_place(self.path, "Files(path)")
        if self.format not in FILE_FORMATS:
            allowed = ", ".join(FILE_FORMATS)
            raise InvalidTopology(f"Files(format) is {self.format!r}; allowed: {allowed}.")


@dataclass(frozen=True)
class ForeachBatch:
    """A function of (DataFrame, batch id); a batch repeated after a failure has the same id."""

    function: Callable[[Any, int], None]


@dataclass(frozen=True)
class Console:
    """The first rows of each batch, printed."""

    rows: int = 20


@dataclass(frozen=True)
class Memory:
    """Rows kept in the driver, for tests and small looks: `run.rows(sink)`."""


@dataclass(frozen=True)
class ToChannel:
    """A channel at `path`, which other queries read at their own pace: exactly once."""

    path: str

    def __post_init__(self) -> None:
        _check_place(self.path, "ToChannel(path)")


Sink = Files | ForeachBatch | Console | Memory | ToChannel
