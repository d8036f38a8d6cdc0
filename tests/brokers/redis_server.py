"""A Redis server of our own on loopback, for as long as a test needs it.

Writes are in the append-only file before they are answered, so that kill -9 loses nothing.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .free_port import free_port
from .server_process import ServerProcess


def missing() -> str | None:
    """Why no server can be started here; None if one can."""
    if shutil.which("redis-server") is None:
        return "no redis-server is installed"
    try:
        import redis  # noqa: F401
    except ImportError:
        return "redis-py is not installed"
    return None


class RedisServer:
    """The server, and clients of it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        command = [
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
            "--dir", str(folder), "--save", "", "--appendonly", "yes",
            "--appendfsync", "always",  # else it may answer first, while the disk is busy
        ]  # fmt: skip
        self._process = ServerProcess(command, folder, self._answers)
        self.start, self.kill = self._process.start, self._process.kill
        self.signal = self._process.signal

    def client(self) -> Any:
        """A client that gives bytes, as Redis holds them."""
        import redis

        return redis.Redis.from_url(self.url)

    def _answers(self) -> bool:
        import redis

        client = self.client()
        try:
            return bool(client.ping())
        except redis.RedisError:  # nothing is listening yet, or the file is still being loaded
            return False
        finally:
            client.close()


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """A fresh, empty server; it ends with the block."""
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
