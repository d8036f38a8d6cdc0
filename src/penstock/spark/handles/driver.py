"""The driver's JVM before there is a session."""

from collections.abc import Mapping
from typing import Any

from pyspark import SparkConf, SparkContext

from penstock.spark.handles.gateway import asking, class_of

COMPILER = "org.codehaus.janino.SimpleCompiler"  # of Spark's own generated code


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
