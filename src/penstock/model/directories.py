"""Directories that a topology uses: each by one sink or source alone, however it is spelt."""

import os
import posixpath
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from penstock.errors import InvalidTopology
from penstock.model.channels import FromChannel
from penstock.model.sinks import Files, ToChannel

ALIASES = {"gcs": "gs", "abfss": "abfs"}  # of schemes that pyarrow takes for the same
HDFS_PORT = ":8020"  # where none is given


def check_directories(uses: Iterable[tuple[str, object]]) -> None:
    """Refuse two uses of one directory, or of one within the other.

    `uses` are what is said of each ("sink 'out'") and the sink or the source's reader. Each takes
    files it finds in its directory for its own. A channel may be read where it is written, and
    several times. Its log is read and written as files of a directory.
    """
    seen: list[tuple[str, object, str]] = []
    for who, use in uses:
        if not isinstance(use, Files | ToChannel | FromChannel):
            continue
        if not isinstance(use, Files) and ("://" in use.path or use.path.startswith("file:")):
            raise InvalidTopology(
                f"{who}: path {use.path!r} is a URL; a channel is in a directory, give its path."
            )
        place = _canonical(use.path)
        for other, kind, taken in seen:
            may_share = place == taken and (
                isinstance(kind, FromChannel) and not isinstance(use, Files)
            )
            if not may_share and (_within(place, taken) or _within(taken, place)):
                raise InvalidTopology(
                    f"{who}: path {use.path!r} is the directory of {other}, or one holds the "
                    "other; give each a directory of its own."
                )
        seen.append((who, use, place))


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def _canonical(path: str) -> str:
    """One spelling for each directory, as far as it can be known here."""
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path)
    elif "://" in path:
        url = urlsplit(path)
        host = url.netloc.lower()
        if url.scheme == "hdfs":
            host = host.removesuffix(HDFS_PORT)
        inner = posixpath.normpath("/" + unquote(url.path).lstrip("/"))
        return f"{ALIASES.get(url.scheme, url.scheme)}://{host}{inner}".rstrip("/")
    return os.path.realpath(path)
