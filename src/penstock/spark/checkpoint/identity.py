"""What a checkpoint's state and outputs depend on, beside the plan."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from penstock.model.topology import Topology
from penstock.spark.checkpoint.planned import PlannedTopology


def identity(
    topology: Topology,
    built: PlannedTopology,
    session: SparkSession,
    sources: Mapping[str, str],
) -> dict[str, object]:
    """What state and outputs depend on; a restart with another identity is refused.

    `sources` is the identity of each source by name.
    """
    declared = {sink.name: sink.upstream for sink in topology.sinks}  # whatever the order it has
    return {
        "topology": topology.name,
        "order of sources": [source.name for source in topology.sources],
        "source": dict(sources),
        "sink": {
            sink.name: [declared.get(sink.name, sink.upstream), query.plan.name, sink.output_mode]
            for query in built.queries
            for sink in query.sinks
        },
        "key_groups": int(str(session.conf.get("spark.sql.shuffle.partitions"))),
        "schema": built.schemas,
        "key": {name: list(key) for name, key in built.keys.items()},
    }
