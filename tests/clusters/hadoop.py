"""What programs of Hadoop need: their jars, and a folder of settings."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

JARS = "PENSTOCK_YARN_JARS"
LOG = """\
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1}: %m%n
"""


def missing() -> str | None:
    """Why none of them can be started here; None if they can."""
    if not os.environ.get(JARS):
        return f"{JARS} names no folder with Hadoop's jars; `make test-yarn` fetches them"
    if shutil.which("java") is None:
        return "java is not on the path"
    return None


def configuration(
    place: Path, files: Mapping[str, Mapping[str, str]], file_system: str = "file:///"
) -> Path:
    """A folder for the class path, with these settings by the names of their files."""
    place.mkdir(parents=True, exist_ok=True)
    core = {"fs.defaultFS": file_system, "hadoop.tmp.dir": str(place / "tmp")}
    for name, values in {"core-site": core, **files}.items():
        rows = "".join(
            f"<property><name>{key}</name><value>{escape(value)}</value></property>\n"
            for key, value in values.items()
        )
        (place / f"{name}.xml").write_text(f"<configuration>\n{rows}</configuration>\n")
    (place / "log4j.properties").write_text(LOG)
    return place
