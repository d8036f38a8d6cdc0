"""Which Java and which Spark there are."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import Unavailable


def find_java() -> Path:
    """The `java` that Spark's scripts would run."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise Unavailable(f"JAVA_HOME is {home}, but {java} cannot be run; unset or fix it.")
        return java
    found = shutil.which("java")
    if found is None:
        raise Unavailable(
            "There is no java on the PATH and JAVA_HOME is not set; install Java 17 or 21."
        )
    return Path(found)


def scala_version() -> str:
    """The Scala that the installed Spark was made with, as its jars are named after it."""
    for core in (spark_home() / "jars").glob("spark-core_*.jar"):
        return core.name.removeprefix("spark-core_").partition("-")[0]
    raise Unavailable(f"{spark_home()} has no jars; install pyspark again.")


def spark_home() -> Path:
    """The installed pyspark package, which is a whole Spark."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("pyspark is not installed for this Python; install it with pip.")
    # As Spark finds itself, however the environment is reached: JVMs compare class paths by name.
    return Path(spec.submodule_search_locations[0]).resolve()
