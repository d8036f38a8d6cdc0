"""Sources that nothing is known of but their frame: a user's function, a loop not yet closed."""

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import InvalidTopology
from penstock.model.channels import Feedback
from penstock.model.topology import Source
from penstock.spark.handles.messages import first_line
from penstock.spark.sources.running.source import Opening, RunningSource


class RunningFunction(RunningSource):
    """A function of the session that returns a streaming frame."""

    def open(self, session: SparkSession, opening: Opening) -> DataFrame:
        _refuse_route(self._source)
        reader: Any = self._source.reader
        if not callable(reader):
            raise InvalidTopology(
                f"source {self.name!r}: reader is {reader!r}; give a Generator or a function "
                "of the SparkSession that returns a streaming DataFrame."
            )
        try:
            frame = reader(session)
        except Exception as error:  # the user's code may raise anything
            raise InvalidTopology(f"source {self.name!r}: reader: {first_line(error)}") from error
        if not isinstance(frame, DataFrame) or not frame.isStreaming:
            raise InvalidTopology(
                f"source {self.name!r}: reader returned {kind_of(frame)}; it must return a "
                "streaming DataFrame, as spark.readStream makes them."
            )
        return frame

    def sample(self, batches: int, rows: int, span_s: float) -> Any:
        """Itself: what it does when it is read twice is the user's business."""
        return self._source.reader


class RunningFeedback(RunningSource):
    """Stands in for a loop's channel, which is only made once the operators were looked at."""

    def __init__(self, source: Source, feedback: Feedback) -> None:
        super().__init__(source)
        self._feedback = feedback

    def open(self, session: SparkSession, opening: Opening) -> DataFrame:
        _refuse_route(self._source)
        try:
            schema = StructType.fromDDL(self._feedback.schema)
            assert isinstance(schema, StructType)
        except PySparkException as error:
            raise InvalidTopology(
                f"feedback {self.name!r}: schema {self._feedback.schema!r}: {first_line(error)}"
            ) from error
        rows = session.readStream.format("rate").load()
        return rows.select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields))


def kind_of(value: object) -> str:
    """What a user's function returned, in words."""
    if isinstance(value, DataFrame):
        return "a DataFrame that is not streaming"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _refuse_route(source: Source) -> None:
    if source.route is not None:
        raise InvalidTopology(
            f"source {source.name!r}: route is given, but only lanes of Penstock's own sources "
            "can write routes; use Streams, a Generator or a channel, or leave route out."
        )
