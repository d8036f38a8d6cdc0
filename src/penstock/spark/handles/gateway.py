"""The way into the driver's JVM, and how answers come back."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.errors import Unavailable

PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"
STREAMING = "org.apache.spark.sql.execution.streaming"


def java_class(spark: SparkSession, name: str) -> Any:
    """A class by its full name, to make objects of it or call what is static.

    Asked for as `jvm.org.apache...`, py4j would look for a class of each part of the name, and for
    those in every jar: a millisecond or more.
    """
    return class_of(gateway(spark), name)


def scala_object(spark: SparkSession, name: str) -> Any:
    """An object of Scala's by its full name."""
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def class_of(way_in: Any, name: str) -> Any:
    """The same, where a driver's JVM runs and no session is there yet."""
    return JavaClass(name, way_in._gateway_client)


def gateway(spark: SparkSession) -> Any:
    """py4j's end on this side."""
    return spark.sparkContext._gateway


def context(spark: SparkSession) -> Any:
    """The driver's own SparkContext."""
    return spark.sparkContext._jsc.sc()


def read(spark: SparkSession, objects: Any) -> list[dict[str, Any]]:
    """Objects of Spark's status interface, through the writer of its own REST pages.

    They cross in a private file: a py4j answer of more than some kilobytes waits 40 ms for a
    delayed acknowledgement.
    """
    with tempfile.NamedTemporaryFile(prefix="penstock-status-") as file:
        made = java_class(spark, "java.io.File")(file.name)
        _writer(spark).writeValue(made, objects)
        rows: list[dict[str, Any]] = json.load(file)
    return rows


@lru_cache(maxsize=1)
def _writer(spark: SparkSession) -> Any:
    mapper = java_class(spark, "org.apache.spark.status.api.v1.JacksonMessageWriter")().mapper()
    mapper.setDateFormat(None)  # times as numbers: milliseconds since the epoch
    feature = java_class(spark, "com.fasterxml.jackson.databind.SerializationFeature")
    mapper.disable(feature.INDENT_OUTPUT)
    maps = java_class(spark, "java.lang.Class").forName("scala.collection.immutable.Map")
    mapper.configOverride(maps).setIsIgnoredType(True)  # links to logs in every single row
    return mapper


def require_methods(spark: SparkSession, class_name: str, *wanted: str) -> None:
    """Raise AttributeError if a class lacks a method; nothing is called."""
    found = java_class(spark, "java.lang.Class").forName(class_name).getMethods()
    listed = str(java_class(spark, "org.apache.commons.lang3.ArrayUtils").toString(found))
    for method in wanted:
        if f".{method}(" not in listed:
            raise AttributeError(f"{class_name} has no method {method}")


def require_constructor(spark: SparkSession, class_name: str, parameters: int) -> None:
    """Raise AttributeError if a class cannot be made from so many parameters; none is made."""
    made = java_class(spark, "java.lang.Class").forName(class_name).getConstructors()
    if parameters not in [one.getParameterCount() for one in made]:
        raise AttributeError(f"{class_name} is not made from {parameters} parameters")


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Turn whatever a missing or changed handle raises into one sentence."""
    try:
        yield
    except (Py4JError, AttributeError, KeyError, TypeError, ValueError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise Unavailable(f"Spark could not {what}: {reason or type(error).__name__}.") from error
