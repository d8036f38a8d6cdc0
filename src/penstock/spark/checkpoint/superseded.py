"""What queries left behind when their state was moved, and when it goes."""

from penstock.spark.checkpoint.layout import Checkpoint


class Superseded:
    """Directories that are kept until a batch has committed where the query is kept now."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._queries = set(checkpoint.superseded())
        self._first_written: dict[str, int] = {}  # batch by query

    def batch_written(self, query: str, batch_id: int) -> None:
        """Forget what a query left: Spark has committed a batch before it begins another one."""
        committed = batch_id > self._first_written.setdefault(query, batch_id)
        if committed and query in self._queries:
            self._queries.discard(query)  # tried once a run
            self._checkpoint.forget_superseded(query)
