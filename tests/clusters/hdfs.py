"""HDFS on one host of a test: a file system whose bytes cross the network."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from brokers.server_process import ServerProcess
from clusters.hadoop import JARS, configuration

PORT = 8020


@contextmanager
def hdfs(
    folder: Path, address: str, inside: Sequence[str], answers: Callable[[int], bool]
) -> Iterator[str]:
    """A name node and a data node at an address; `answers` tries a port there. Gives its URI."""
    listening = {
        "dfs.namenode.rpc-address": f"{address}:{PORT}",
        "dfs.namenode.http-address": f"{address}:9870",
        "dfs.datanode.address": f"{address}:9866",
        "dfs.datanode.ipc.address": f"{address}:9867",
        "dfs.datanode.http.address": f"{address}:9864",
    }
    settings = {
        **listening,
        "dfs.namenode.name.dir": f"file://{folder}/names",
        "dfs.datanode.data.dir": f"file://{folder}/data",
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        # Of a disk that others fill as well.
        "dfs.datanode.du.reserved": "0",
    }
    uri = f"hdfs://{address}:{PORT}"
    conf = configuration(folder, {"hdfs-site": settings}, uri)
    for pages in ("hdfs", "datanode"):  # which the jars on Maven Central come without
        (conf / "webapps" / pages).mkdir(parents=True)
    java = [
        *inside, "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp", f"{conf}:{os.environ[JARS]}/*",
    ]  # fmt: skip
    server = "org.apache.hadoop.hdfs.server"
    names = f"{server}.namenode.NameNode"
    subprocess.run(
        [*java, names, "-format", "-nonInteractive"], check=True, capture_output=True, timeout=120
    )
    with ExitStack() as ending:
        for name, port in ((names, PORT), (f"{server}.datanode.DataNode", 9864)):
            process = ServerProcess([*java, name], folder, lambda port=port: answers(port))
            ending.callback(process.kill)
            process.start()
        yield uri
