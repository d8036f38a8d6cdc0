"""What this machine needs to run Penstock: each check says what was found and what to do."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from penstock.errors import PenstockError
from penstock.spark.cluster.installed import find_java

JAVA_VERSIONS = (17, 21)
LEAST_PYTHON = (3, 11)
LEAST_MEMORY_MB = 2048  # a driver, a master, a worker and one executor
LEAST_DISK_MB = 1024
PORTS = 12  # a master, a worker, a driver and four executors listen on two each, and less
_PROBE_LIMIT_S = 120.0
_ALONE = "python -c 'from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate()'"
_PINNED = "Install the pyspark that penstock requires; what needs this is left out with another."


@dataclass(frozen=True)
class Check:
    """One thing looked at; `remedy` is empty when it is fine."""

    name: str
    ok: bool
    found: str
    remedy: str = ""


def examine(*, with_spark: bool = False) -> tuple[Check, ...]:
    """All checks; with `with_spark` also a tiny local session in a process of its own."""
    checks: list[Callable[[], Check]] = [
        check_python, check_java, check_pyspark, check_import, check_ports, check_memory,
        check_disk,
    ]  # fmt: skip
    return (*(check() for check in checks), *(check_session() if with_spark else ()))


def check_python() -> Check:
    """The interpreter that runs this."""
    found = ".".join(map(str, sys.version_info[:3]))
    least = ".".join(map(str, LEAST_PYTHON))
    ok = sys.version_info[:2] >= LEAST_PYTHON
    return Check("python", ok, found, "" if ok else f"Install Python {least} or newer.")


def check_java() -> Check:
    """The Java that Spark's scripts would run."""
    allowed = " or ".join(map(str, JAVA_VERSIONS))
    remedy = f"Install Java {allowed} (Debian: apt install openjdk-17-jre-headless)."
    try:
        java = find_java()
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_PROBE_LIMIT_S, check=False
        )
    except PenstockError as reason:
        return Check("java", False, str(reason), remedy)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("java", False, f"java cannot be run: {error}", remedy)
    number = java_version(answer.stderr)
    found = f"{number or 'unknown version'} at {java}"
    ok = number in JAVA_VERSIONS
    return Check("java", ok, found, "" if ok else f"{remedy} Point JAVA_HOME at it.")


def java_version(text: str) -> int | None:
    """The major version in what `java -version` prints.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('version "1.8.0_1"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def check_pyspark() -> Check:
    """The installed pyspark against the one this package was built for."""
    wanted = _pinned("pyspark")
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Check("pyspark", False, "not installed", f"pip install pyspark=={wanted}")
    ok = wanted in ("", found)
    return Check("pyspark", ok, found, "" if ok else f"pip install pyspark=={wanted}")


def check_import() -> Check:
    """Executors import the package in interpreters of their own, from another directory."""
    code = "import penstock, sys; sys.stdout.write(penstock.__file__)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=_PROBE_LIMIT_S,
        check=False, cwd=tempfile.gettempdir(),
    )  # fmt: skip
    if answer.returncode == 0:
        return Check("import", True, answer.stdout)
    last = (answer.stderr.strip().split("\n") or [""])[-1]
    remedy = "Install penstock into this Python (pip install), or put it on PYTHONPATH."
    return Check("import", False, last, remedy)


def check_ports() -> Check:
    """Free ports on loopback, and that a connection to one gets through."""
    remedy = "Allow connections to 127.0.0.1 and free some ports."
    listening: list[socket.socket] = []
    try:
        listening.extend(socket.create_server(("127.0.0.1", 0)) for _ in range(PORTS))
        address = listening[0].getsockname()
        with socket.create_connection(address, timeout=5):
            pass
        return Check("ports", True, f"{PORTS} free ports on 127.0.0.1")
    except OSError as error:
        found = f"{len(listening)} of {PORTS} ports on 127.0.0.1: {error.strerror or error}"
        return Check("ports", False, found, remedy)
    finally:
        for server in listening:
            server.close()


def check_memory() -> Check:
    """Memory that could be used now."""
    available_mb = available_memory_mb()
    if available_mb is None:
        return Check("memory", True, "unknown on this system")
    ok = available_mb >= LEAST_MEMORY_MB
    remedy = f"Free memory: an embedded cluster needs about {LEAST_MEMORY_MB} MB."
    return Check("memory", ok, f"{available_mb} MB available", "" if ok else remedy)


def available_memory_mb() -> int | None:
    """As the kernel estimates it, within the limit of a container; None where there is no /proc."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    if found is None:
        return None
    available_mb = int(found.group(1)) // 1024
    try:
        group = Path("/sys/fs/cgroup")
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        used = (group / "memory.current").read_text(encoding="ascii").strip()
        left_mb = (int(limit) - int(used)) // 2**20
    except (OSError, ValueError):  # no container, or no limit ("max")
        return available_mb
    return min(available_mb, left_mb)


def check_disk() -> Check:
    """Room where shuffle files and state are written."""
    place = tempfile.gettempdir()
    free_mb = shutil.disk_usage(place).free // 2**20
    ok = free_mb >= LEAST_DISK_MB and os.access(place, os.W_OK)
    remedy = f"Free {LEAST_DISK_MB} MB in {place}, or point TMPDIR elsewhere."
    return Check("disk", ok, f"{free_mb} MB free in {place}", "" if ok else remedy)


def check_session() -> tuple[Check, ...]:
    """A local session, in a process of its own, and what works in it of Spark's private parts."""
    local = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    remedy = f"Fix what the checks above say; {_ALONE} shows all that Spark says."
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _SESSION], capture_output=True, text=True, env=local,
            timeout=_PROBE_LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        slow = f"Try again when the machine has less to do. {remedy}"
        return (Check("spark", False, f"no answer within {_PROBE_LIMIT_S:g} s", slow),)
    if answer.returncode != 0:
        last = (answer.stderr.strip().split("\n") or [""])[-1]
        return (Check("spark", False, last, remedy),)
    return (
        Check("spark", True, "a local session answers"),
        *(Check(f"spark: {name}", *found) for name, *found in json.loads(answer.stdout)),
    )


# A session that counts rows in a Python worker, and tries each family of handles.
_SESSION = f"""
import json, sys
from pyspark.sql import SparkSession
settings = {{"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1"}}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
assert spark.range(10).mapInArrow(lambda rows: rows, "id long").count() == 10
from penstock.spark.handles import NEED_EXECUTORS, Family, probe
broken, needs = probe(spark), "needs a cluster, which has executors of its own"
spark.stop()
json.dump([
    (one, True, needs) if one in NEED_EXECUTORS else
    (one, one not in broken, broken.get(one, "works"), {_PINNED!r} if one in broken else "")
    for one in Family
], sys.stdout)
"""


def _pinned(name: str) -> str:
    """The exact version that penstock requires of a package; empty when it is not pinned."""
    try:
        wanted = requires("penstock") or []
    except PackageNotFoundError:
        return ""
    for line in wanted:
        if found := re.fullmatch(rf"{name}==([\w.]+)", line.strip()):
            return found.group(1)
    return ""
