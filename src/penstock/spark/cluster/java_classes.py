"""Classes of ours that are Java, and the settings by which sessions use them.

`LocalFiles` makes files without a program started for each. Hadoop runs `chmod` for every file it
makes where its native library is missing, as it is in PySpark: two for each file of a checkpoint, a
fifth of a small batch with state. `WarmStart` does in a new executor what its first tasks would
have to, before it is given any. The driver compiles them with the compiler that Spark has for its
own generated code, once for a user; where that fails, files are made and executors start as they
would without us. The class of a cluster is compiled along, so that `penstock prepare` finds all.
"""

import hashlib
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pyspark

from penstock.errors import Unavailable
from penstock.spark.cluster import class_archive
from penstock.spark.cluster.class_archive import SOURCES
from penstock.spark.cluster.launch import SECRET
from penstock.spark.handles import compile_java, load_class

log = logging.getLogger(__name__)
LOCAL_FILES, WARM_START = "penstock.LocalFiles", "penstock.WarmStart"
PLUGINS = "spark.plugins"
_PACKAGE = "penstock"
_DRIVER, _EXECUTORS = "spark.driver.extraClassPath", "spark.executor.extraClassPath"


def class_path() -> dict[str, str]:
    """The setting by which a driver finds the classes, compiled already or not yet."""
    try:
        place = _place()
        if place.suffix != ".jar":  # a JVM forgets what was not there
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the latter where the user has no home
        return {}
    return {_DRIVER: str(place)}


def use_with(settings: Mapping[str, str]) -> dict[str, str]:
    """What to add to a session's settings to use the classes; nothing if they cannot be loaded."""
    try:
        place = str(_place())
        if settings.get(_EXECUTORS, place) != place:
            return {}
        _compile()
        load_class(LOCAL_FILES)
    except (Unavailable, OSError, RuntimeError) as error:
        log.debug("using Hadoop's own local files: %s", error)
        return {}
    found = {_EXECUTORS: place, "spark.hadoop.fs.file.impl": LOCAL_FILES}
    return found | warm_start({**settings, **found})


def warm_start(settings: Mapping[str, str]) -> dict[str, str]:
    """What makes executors of a cluster of ours warm themselves up; its driver runs already."""
    if SECRET not in settings or PLUGINS in settings or settings.get(_EXECUTORS) != str(_place()):
        return {}
    with suppress(Unavailable):
        load_class(WARM_START)
        return {PLUGINS: WARM_START}
    return {}


def _compile() -> None:
    """Write the compiled classes, the one that is looked for last: where it is, all are."""
    folder = _folder() / _PACKAGE
    if _place().suffix == ".jar" or (folder / "LocalFiles.class").exists():
        return
    compiled = [compile_java(source.read_text(encoding="utf-8")) for source in SOURCES]
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, code in chain.from_iterable(sorted(made.items(), reverse=True) for made in compiled):
        file = folder / f"{name.split('.')[-1]}.class"
        scratch = file.with_suffix(f".{os.getpid()}")
        scratch.write_bytes(code)
        scratch.replace(file)  # whole, whoever else compiles at the same time


def compiled_classes() -> dict[str, bytes]:
    """All of ours, by their names, as a driver has compiled them."""
    files = (_folder() / _PACKAGE).glob("*.class")
    return {f"{_PACKAGE}.{file.stem}": file.read_bytes() for file in files}


def _place() -> Path:
    return class_archive.jar() or _folder()


def _folder() -> Path:
    """One for each text of the classes and each Spark, because either may change."""
    made_of = b"".join(map(Path.read_bytes, SOURCES)) + pyspark.__version__.encode()
    return class_archive.cache() / f"classes-{hashlib.sha256(made_of).hexdigest()[:12]}"
