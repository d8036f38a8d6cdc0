"""Sessions for scripts of the user's own: `penstock.session` and `penstock cluster env`.

The cluster of `penstock cluster up` lets nobody in without its secret. A plain script gets it from
a file of Spark's own kind (`spark-defaults.conf`) that only its owner can read, a program from a
socket: it is never in a variable of the environment and never on a command line.
"""

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.errors import InvalidInput
from penstock.spark.act.executors import executor_settings
from penstock.spark.checkpoint.durable_files import make_directory
from penstock.spark.cluster import java_classes, launch
from penstock.spark.cluster.embedded import start_driver_jvm
from penstock.spark.cluster.standing import UserCluster, user_cluster

DEFAULTS, ENVIRONMENT = "spark-defaults.conf", "spark-env.sh"
LEAST_EXECUTOR_MB = 512


def session_settings(executors: tuple[int, int] = (1, 4), slots: int = 1) -> dict[str, str]:
    """Settings of a session on any cluster whose executors `attach` is to change.

    It starts with the first of the two numbers and can have up to the second, each with so many
    slots. There is nothing secret in them.

    >>> session_settings((1, 8))["spark.executor.instances"]
    '1'
    """
    least, most = _bounds(executors)
    return executor_settings(least, most, slots)


def session(
    name: str = "penstock",
    executors: tuple[int, int] | None = None,
    *,
    slots: int = 1,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A plain Spark session on the cluster of `penstock cluster up`, made for `attach`.

    Executors have `slots` slots each and stay between the two numbers of `executors`; without them,
    from one to as many as the cluster can hold. `settings` are Spark's and win over ours.
    """
    cluster = user_cluster()
    given = {**_settings(cluster, executors, slots), **(settings or {})}
    running = SparkSession.getActiveSession()
    if running is not None and running.sparkContext.master != cluster.settings["spark.master"]:
        raise InvalidInput(
            f"a session on {running.sparkContext.master} is open, and a program has one at a time; "
            "stop() it before penstock.session()."
        )
    for variable, value in _environment().items():
        os.environ.setdefault(variable, value)
    start_driver_jvm(given)
    given |= java_classes.warm_start(given)
    builder = SparkSession.builder.appName(name)
    for key, value in given.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def shell_environment(least: int = 1, most: int | None = None, slots: int = 1) -> dict[str, str]:
    """Variables with which a plain script's session is on the cluster of `penstock cluster up`.

    They name a folder of Spark's configuration, made here, which goes with the cluster.
    """
    cluster = user_cluster()
    most = _room(cluster, slots) if most is None else most
    folder = cluster.directory / "session" / f"{least}-{most}-{slots}"
    make_directory(folder)
    write_configuration(folder, _settings(cluster, (least, most), slots), cluster.directory)
    return {"SPARK_CONF_DIR": str(folder), **_environment()}


def write_configuration(folder: Path, settings: Mapping[str, str], cluster: Path) -> None:
    """Write a folder of Spark's configuration for a session on the cluster of a directory.

    Executors warm themselves up if the cluster has the classes for it. They are behind the class
    path, so that they are found as well where a script has a class path of its own.
    """
    classes = launch.behind_class_path(cluster)
    if classes:
        settings = {java_classes.PLUGINS: java_classes.WARM_START, **settings}
    _write(folder / DEFAULTS, (f"{key} {value}" for key, value in settings.items()))
    _write(folder / ENVIRONMENT, (f"{key}={shlex.quote(path)}" for key, path in classes.items()))


def _write(path: Path, lines: Iterable[str]) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def _environment() -> dict[str, str]:
    # Executors would otherwise run whatever `python3` is where the cluster was started.
    return {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def _settings(
    cluster: UserCluster, executors: tuple[int, int] | None, slots: int
) -> dict[str, str]:
    room = _room(cluster, slots)
    least, most = _bounds((1, room) if executors is None else executors)
    if most > room:
        raise InvalidInput(
            f"{most} executors of {slots} slots were asked for; the cluster has {cluster.slots} "
            f"slots, so allowed: 1 to {room}."
        )
    memory_mb = max(LEAST_EXECUTOR_MB, cluster.memory_mb * slots // cluster.slots)
    return {
        **cluster.settings,
        **session_settings((least, most), slots),
        # All executors that may come have room beside each other.
        "spark.executor.memory": f"{memory_mb}m",
    }


def _room(cluster: UserCluster, slots: int) -> int:
    """How many executors of so many slots the cluster can hold."""
    if not 1 <= slots <= cluster.slots:
        raise InvalidInput(
            f"slots is {slots}; an executor can have from 1 to the cluster's {cluster.slots}."
        )
    return cluster.slots // slots


def _bounds(executors: object) -> tuple[int, int]:
    match executors:
        case (int(least), int(most)) if not isinstance(least, bool) and not isinstance(most, bool):
            return least, most
    raise InvalidInput(f"executors is {executors!r}; give the least and the most, such as (1, 8).")
