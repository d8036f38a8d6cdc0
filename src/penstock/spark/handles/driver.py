"""The driver's JVM, the settings of its session, and the Python sources in it."""

from collections.abc import Mapping
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from penstock.spark.handles.gateway import (
    asking,
    class_of,
    context,
    java_class,
    scala_object,
)

COMPILER = "org.codehaus.janino.SimpleCompiler"  # of Spark's own generated code
STRICT = "spark.sql.streaming.statefulOperator.useStrictDistribution"


@asking("start the driver")
def start_driver(settings: Mapping[str, str]) -> None:
    """Start the driver's JVM with these settings on its command line, if there is none."""
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    SparkContext._ensure_initialized(conf=conf)


@asking("compile a Java class")
def compile_java(source: str) -> dict[str, bytes]:
    """Code of each class in a text."""
    compiler = _class(COMPILER)()
    compiler.setParentClassLoader(_class("java.lang.ClassLoader").getSystemClassLoader())
    compiler.cook(source)
    return {str(name): bytes(code) for name, code in compiler.getBytecodes().items()}


@asking("load a Java class")
def load_class(name: str) -> None:
    """Raise Unavailable if the driver does not find a class."""
    _class("java.lang.Class").forName(name)


def _class(name: str) -> Any:
    return class_of(SparkContext._gateway, name)


def lighten_configuration(spark: SparkSession) -> None:
    """Make Hadoop's configuration forget which file each of its settings came from.

    Whatever uses state sends all of it to the executors, twice for each operator in every batch,
    and each of some hundred sources is compressed by itself: 6 ms a time. Nobody asks for them.
    """
    with asking("forget where settings came from"):
        settings_sources(spark).clear()


def settings_sources(spark: SparkSession) -> Any:
    """Which file each of Hadoop's settings came from."""
    held = context(spark).hadoopConfiguration()
    held.size()  # reads the files, if nobody has yet
    sources = held.getClass().getDeclaredField("updatingResource")
    sources.setAccessible(True)
    return sources.get(held)


@asking("leave out the search for installed sources")
def leave_out_search_for_sources(session: SparkSession) -> None:
    """Tell Spark that no installed package offers a Python source.

    Otherwise it starts a Python process to ask, 0.8 s of a core, before the first is registered.
    """
    found = installed_sources(session)
    if found.dataSourceBuilders().isEmpty():
        none = scala_object(session, "scala.collection.immutable.Map").empty()
        getattr(found, "dataSourceBuilders_$eq")(java_class(session, "scala.Option").apply(none))


def installed_sources(session: SparkSession) -> Any:
    """What holds those that were found, or None of Scala's as long as nobody has searched."""
    return scala_object(session, "org.apache.spark.sql.execution.datasources.DataSourceManager")


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
