"""Python data sources in a session."""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from penstock.spark.handles.gateway import asking, java_class


@asking("register a source")
def register_sources(session: SparkSession, *sources: type[DataSource]) -> None:
    """Register data sources, each with an environment that two queries may write to at once.

    Spark 4.3 puts variables into the map of a registered source whenever a query starts its runner.
    Two that start together can leave a plain HashMap with a count that is wrong, and then every
    task that reads this source fails with OptionalDataException for the life of the session.
    """
    context: Any = session.sparkContext
    plain = context.environment
    try:
        for source in sources:
            context.environment = synchronized(session, plain)
            session.dataSource.register(source)
    finally:
        context.environment = plain


def synchronized(session: SparkSession, variables: dict[str, str]) -> Any:
    """A map of Java's that two threads may write to at once."""
    made = java_class(session, "java.util.HashMap")(variables)
    return java_class(session, "java.util.Collections").synchronizedMap(made)
