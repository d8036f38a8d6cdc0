"""Spark's classes as a JVM has them in memory, kept in a file: JVMs start sooner.

A JVM that starts Spark reads, checks and links some fifteen thousand classes, which is most of what
its start costs. Java's class-data archive does that once: `penstock prepare` records which classes
the driver, the cluster and an executor of a small run load, and writes them as one file
that all of them map. A JVM whose class path or version differs ignores the file without a word.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyspark

from penstock.errors import Unavailable
from penstock.spark.cluster.installed import find_java, spark_home

RECORDING = "PENSTOCK_RECORD_CLASSES"  # a folder: JVMs list there what they load
SOURCES = tuple(
    Path(__file__).with_name(f"{name}.java") for name in ("Cluster", "WarmStart", "LocalFiles")
)
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
_NOTE = "spark-home"  # which Spark an archive is of
_WRITING_LIMIT_S = 300.0


def cache() -> Path:
    """Where a user's programs keep what is made once; RuntimeError where the user has no home."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "penstock"


def jar() -> Path | None:
    """Classes of ours as the archive knows them; None as long as it was not made."""
    try:
        made = _folder() / "classes.jar"
        return made if made.exists() else None
    except (OSError, RuntimeError, Unavailable):
        return None


def java_options() -> str:
    """What a JVM of ours is started with; empty as long as no archive was made."""
    if recording := os.environ.get(RECORDING):
        return f'"-XX:DumpLoadedClassList={recording}/%p.lst"'
    made = jar()
    if made is None or not _archive(made).exists():
        return ""
    return f'"-XX:SharedArchiveFile={_archive(made)}" -Xshare:auto {_QUIET}'


def usable() -> bool:
    """Whether there is an archive that this Java takes."""
    made = jar()
    return made is not None and _java("-Xshare:on", f"-XX:SharedArchiveFile={_archive(made)}",
                                      "-cp", class_path(made), "-version") == ""  # fmt: skip


def write_jar(classes: Mapping[str, bytes]) -> None:
    """Put compiled classes where `jar` finds them; the file is whole whenever it can be seen."""
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (
        tempfile.NamedTemporaryFile(dir=folder, delete=False) as scratch,
        zipfile.ZipFile(scratch, "w") as packed,
    ):
        for name, code in sorted(classes.items()):
            packed.writestr(f"{name.replace('.', '/')}.class", code)
    (folder / _NOTE).write_text(str(spark_home()), encoding="utf-8")
    Path(scratch.name).replace(folder / "classes.jar")


def write_archive(recorded: Path) -> None:
    """Write the archive of every class that is listed in a folder."""
    made = jar()
    if made is None:
        raise Unavailable("The classes of the archive are not compiled yet.")
    listed = recorded / "all.classes"
    listed.write_text("\n".join(_merged(recorded.glob("*.lst"))), encoding="utf-8")
    scratch = made.with_name(f"scratch-{os.getpid()}.jsa")
    said = _java("-Xshare:dump", f"-XX:SharedClassListFile={listed}",
                 f"-XX:SharedArchiveFile={scratch}", "-Xmx2g", *_QUIET.split(),
                 "-cp", class_path(made))  # fmt: skip
    if said or not scratch.exists():
        scratch.unlink(missing_ok=True)
        raise Unavailable(f"Java could not write the class archive: {said}")
    with scratch.open("rb") as written:
        os.fsync(written.fileno())  # a JVM trusts what it maps
    scratch.replace(_archive(made))


def forget_removed() -> None:
    """Remove archives whose Spark is no longer installed: each is as large as Spark's own files."""
    for note in cache().glob(f"archive-*/{_NOTE}"):
        if not Path(note.read_text(encoding="utf-8")).exists():
            shutil.rmtree(note.parent, ignore_errors=True)


def _merged(lists: Iterable[Path]) -> Iterable[str]:
    """Each class once, in the order in which they were met."""
    lines = (line for path in sorted(lists) for line in path.read_text("utf-8").splitlines())
    return dict.fromkeys(line for line in lines if not line.startswith("#"))


def class_path(made: Path | None) -> str:
    """As Spark's own scripts make it, with our classes in front."""
    jars = spark_home() / "jars"
    ours = () if made is None else (made,)
    return ":".join(map(str, (*ours, *jars.glob("slf4j-api-*.jar"), f"{jars}/*")))


def _archive(made: Path) -> Path:
    return made.with_name("classes.jsa")


def _folder() -> Path:
    """One for each Java, each installed Spark and each text of our classes."""
    of = (find_java().resolve(), spark_home(), pyspark.__version__)
    sources = b"".join(source.read_bytes() for source in SOURCES)
    name = hashlib.sha256(repr(of).encode() + sources).hexdigest()[:12]
    return cache() / f"archive-{name}"


def _java(*arguments: str) -> str:
    """Run java; empty if it succeeded, otherwise the end of what it said."""
    try:
        done = subprocess.run(
            [str(find_java()), *arguments], capture_output=True, text=True,
            timeout=_WRITING_LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not done after {_WRITING_LIMIT_S:g} s"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return "" if done.returncode == 0 else lines[-1] if lines else f"exit {done.returncode}"
