"""The last batch of each query that may have reached a sink, as far as anybody knows."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.spark.checkpoint.carried_state import numbered
from penstock.spark.checkpoint.layout import Checkpoint


class LastBatches:
    """What is known when a run starts, and what is when it ends in good order.

    While it goes on, and after it was killed, nothing is.
    """

    def __init__(self, checkpoint: Checkpoint, queries: Iterable[str]) -> None:
        self._checkpoint = checkpoint
        handed = checkpoint.last_handed()
        self._before = {
            query: handed.get(query, _settled(checkpoint.query_folder(query))) for query in queries
        }
        checkpoint.mark_handed({})

    def ended(self, handed: Mapping[str, int | None]) -> None:
        """Note the last batch that each query handed to its sinks; None for none in this run."""
        last = {query: self._before.get(query) if n is None else n for query, n in handed.items()}
        self._checkpoint.mark_handed({query: n for query, n in last.items() if n is not None})


def _settled(folder: Path) -> int | None:
    """The last batch where Spark has finished all it planned; None where one was left open."""
    planned, done = (max(numbered(folder / log), default=-1) for log in ("offsets", "commits"))
    return planned if planned == done else None
