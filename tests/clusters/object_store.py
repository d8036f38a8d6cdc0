"""A server with the interface of S3 on one host of a test: moto's, which keeps all in memory."""

import os
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from brokers.server_process import ServerProcess

PLACE = "PENSTOCK_S3"
PORT = 5000
BUCKET = "penstock"


def missing() -> str | None:
    """Why it cannot be started here; None if it can."""
    if not os.environ.get(PLACE):
        return f"{PLACE} names no folder with a server of S3; `make test-hosts` fetches it"
    return None


@contextmanager
def object_store(
    folder: Path, address: str, inside: Sequence[str], answers: Callable[[int], bool]
) -> Iterator[tuple[str, dict[str, str]]]:
    """One with a bucket; `answers` tries a port there. Gives its URI, and settings of Spark."""
    place = Path(os.environ[PLACE])
    folder.mkdir()
    moto = [str(place / "env/bin/python"), "-m", "moto.server", "-H", address, "-p", str(PORT)]
    server = ServerProcess([*inside, *moto], folder, lambda: answers(PORT))
    url = f"http://{address}:{PORT}"
    try:
        server.start()
        made = urllib.request.Request(f"{url}/{BUCKET}", method="PUT")
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(made, timeout=60).close()
        yield f"s3a://{BUCKET}", {
            "spark.jars": ",".join(map(str, sorted((place / "jars").glob("*.jar")))),
            "spark.hadoop.fs.s3a.endpoint": url,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.fs.s3a.access.key": "anyone",
            "spark.hadoop.fs.s3a.secret.key": "nothing",
        }  # fmt: skip
    finally:
        server.kill()
