"""A session that has our sources."""

from pathlib import Path

from pyspark.sql import SparkSession

from penstock.spark.channels.source import ChannelSource
from penstock.spark.cluster import session
from penstock.spark.handles.data_sources import register_sources
from penstock.spark.sources.generator_source import GeneratorSource
from penstock.spark.sources.reader import PenstockSource


def build_session(
    name: str,
    master: str = "local[2]",
    *,
    key_groups: int = 8,
    log_file: Path | None = None,
    quick_start: bool = False,
    extra: dict[str, str] | None = None,
) -> SparkSession:
    """A session as `cluster.session` builds it, which can read all of our sources."""
    built = session.build_session(
        name,
        master,
        key_groups=key_groups,
        log_file=log_file,
        quick_start=quick_start,
        extra=extra,
    )
    register_sources(built, GeneratorSource, PenstockSource, ChannelSource)
    return built
