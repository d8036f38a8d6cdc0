"""Which kind a source is: the only place that looks."""

from penstock.model.channels import Feedback, FromChannel
from penstock.model.sources import Streams
from penstock.model.topology import Source, Topology
from penstock.spark.sources.running.channel import RunningChannel
from penstock.spark.sources.running.foreign import RunningFeedback, RunningFunction
from penstock.spark.sources.running.generator import RunningGenerator
from penstock.spark.sources.running.source import RunningSource
from penstock.spark.sources.running.streams import RunningStreams
from penstock.spark.sources.watch import SourceWatch
from penstock.workloads.generator import Generator


def running_source(
    source: Source, epoch_s: float = 0.0, watch: SourceWatch | None = None
) -> RunningSource:
    """A source as its kind has it; without a watch, one that is looked at and not run."""
    reader = source.reader
    if isinstance(reader, Generator):
        return RunningGenerator(source, reader, epoch_s)
    if isinstance(reader, Streams):
        return RunningStreams(source, reader, epoch_s, watch)
    if isinstance(reader, FromChannel):
        return RunningChannel(source, reader)
    if isinstance(reader, Feedback):
        return RunningFeedback(source, reader)
    return RunningFunction(source)


def running_sources(
    topology: Topology, epoch_s: float = 0.0, watch: SourceWatch | None = None
) -> dict[str, RunningSource]:
    """All sources of a topology by name."""
    return {source.name: running_source(source, epoch_s, watch) for source in topology.sources}
