"""Streams of a topology as a streaming frame."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.errors import InvalidTopology, PenstockError
from penstock.forecast.named import forecaster_named
from penstock.model.route import Route
from penstock.model.sources import Streams
from penstock.spark.routes.by_value import at_source
from penstock.spark.routes.frames import route_options
from penstock.spark.sources.backends.classes import make_backend
from penstock.spark.sources.declared import read_declared
from penstock.spark.sources.packing import MOST_COLUMNS, packed_schema, unpacked
from penstock.spark.sources.reader import AT_ONCE, FORMAT, PACKS, PenstockSource, columns_of
from penstock.spark.sources.settings import settings_of

PROPERTY = "penstock.sources"  # a local property: where sources of queries started here keep files


def announce_sources(session: SparkSession, folder: Path) -> None:
    """Say where the sources of queries that this thread starts keep their files."""
    session.sparkContext.setLocalProperty(PROPERTY, str(folder))


def read_streams(
    name: str, streams: Streams, session: SparkSession, epoch_s: float, route: Route | None,
    more: Mapping[str, str] | None = None, at_once: bool = False,
    max_latency_s: float | None = None,
) -> DataFrame:  # fmt: skip
    """The frame of a source of many streams; nothing is read yet. `more` are further options."""
    try:
        columns = columns_of(streams.kind, streams.schema, streams.backend_options)
        if streams.admission.forecaster is not None:
            forecaster_named(streams.admission.forecaster)
        if streams.declared is not None:
            read_declared(Path(streams.declared))
    except PenstockError as error:
        raise InvalidTopology(f"source {name!r}: {error}") from error
    if columns is None:
        raise InvalidTopology(
            f"source {name!r}: Streams(schema) is not given; name the columns of {streams.kind}, "
            "as in schema='device STRING, value DOUBLE'."
        )
    _check(name, streams, columns)
    found = session.sparkContext.getLocalProperty(PROPERTY)
    directory = None if found is None else Path(found) / name
    settings = settings_of(streams, name, directory, epoch_s, max_latency_s)
    options = {"settings": settings.to_json(), "columns": columns, **(more or {})}
    if at_once:
        options[AT_ONCE] = "true"
    if route is not None:
        options |= route_options(session, name, route)
    packed = _packed(streams, options)
    if packed is not None:
        options |= {"settings": replace(settings, packed=True).to_json(), PACKS: packed.json()}
    frame = session.readStream.format(FORMAT).options(**options).load()
    frame = frame if packed is None else unpacked(frame)
    return at_source(frame, name, route)


def _packed(streams: Streams, options: dict[str, str]) -> StructType | None:
    """The columns of packs, where rows are to cross to Spark in packs.

    Other formats than Arrow take so long to decode that it would not show. Asked here, as whoever
    asks the source for its schema later has no session to read columns with.
    """
    if (streams.kind, streams.format) != ("files", "arrow"):
        return None
    fields = StructType.fromDDL(str(PenstockSource(options).schema()))
    assert isinstance(fields, StructType)  # of columns, which is what the DDL has
    return packed_schema(fields) if len(fields) <= MOST_COLUMNS else None


def _check(name: str, streams: Streams, columns: str) -> None:
    """Refuse what its backend can never read; Spark itself refuses columns that are not DDL."""
    if streams.kind == "generators":  # they have columns of their own, and may be very many
        return
    with suppress(PySparkException):
        fields = StructType.fromDDL(columns)
        assert isinstance(fields, StructType)  # of columns, which is what the DDL has
        # Spark would believe it, and take what lies where a value is missing for the value.
        for field in fields.fields:
            if '"nullable":false' in field.json():
                raise InvalidTopology(
                    f"source {name!r}: column {field.name!r} is declared NOT NULL, which "
                    "cannot be guaranteed for future records; leave NOT NULL out, and filter where "
                    "it matters."
                )
        schema = to_arrow_schema(fields, timezone="UTC")
        try:
            make_backend(streams.kind, streams.backend_options).check(schema)
        except PenstockError as error:
            raise InvalidTopology(f"source {name!r}: {error}") from error
