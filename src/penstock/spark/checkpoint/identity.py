"""What a checkpoint's state and outputs depend on, beside the plan."""

from pyspark.sql import SparkSession

from penstock.model.sources import Streams
from penstock.model.topology import Topology
from penstock.spark.checkpoint.planned import PlannedTopology
from penstock.workloads.generator import Generator


def generators(topology: Topology) -> dict[str, Generator]:
    """The sources of a topology that are generated streams."""
    return {
        source.name: source.reader
        for source in topology.sources
        if isinstance(source.reader, Generator)
    }


def identity(
    topology: Topology, built: PlannedTopology, session: SparkSession
) -> dict[str, object]:
    """What state and outputs depend on; a restart with another identity is refused."""
    declared = {sink.name: sink.upstream for sink in topology.sinks}  # whatever the order it has
    return {
        "topology": topology.name,
        "order of sources": [source.name for source in topology.sources],
        "source": {
            source.name: source.reader.to_json()
            if isinstance(source.reader, Generator)
            else source.reader.identity
            if isinstance(source.reader, Streams)
            else "a function"
            for source in topology.sources
        },
        "sink": {
            sink.name: [declared.get(sink.name, sink.upstream), query.plan.name, sink.output_mode]
            for query in built.queries
            for sink in query.sinks
        },
        "key_groups": int(str(session.conf.get("spark.sql.shuffle.partitions"))),
        "schema": built.schemas,
        "key": {name: list(key) for name, key in built.keys.items()},
    }
