"""Which sources of files a query reads again for each consumer, and which they share: by price."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.errors import Unavailable
from penstock.fusion.reading import Exchange, ReadingChoice, Sample, choose_reading
from penstock.model.topology import SinkBinding, Topology
from penstock.spark.compile.file_samples import sample_of
from penstock.spark.compile.inspection import Inspection
from penstock.spark.compile.row_bytes import value_bytes
from penstock.spark.compile.sharing import Sharing, by_format, plan_sharing, read_again
from penstock.spark.handles.file_scans import columns_read
from penstock.spark.handles.messages import SPARK_ERRORS


@dataclass(frozen=True)
class Shared:
    """The sharing of a query, its frame, and what was chosen by which prices."""

    sharing: Sharing
    frame: DataFrame
    readings: Mapping[str, ReadingChoice]


def shared_by_price(
    topology: Topology,
    inspection: Inspection,
    sinks: tuple[SinkBinding, ...],
    begun: Collection[str] | None,
    frame_of: Callable[[Sharing], DataFrame],
) -> Shared:
    """What is read again, where `begun` does not say what was since the query began.

    What each consumer uses of a source is seen once the query reads it again for each of them.
    """

    def built(again: Collection[str]) -> tuple[Sharing, DataFrame]:
        unshared = read_again(topology, inspection, again)
        sharing = plan_sharing(topology, inspection, sinks, unshared)
        return sharing, frame_of(sharing)

    if begun is not None:
        return Shared(*built(inspection.files.keys() & set(begun)), {})
    known, priced = by_format(inspection), _priced(topology, inspection)
    sharing, frame = built(known | priced)
    shareable = {
        source: exchanged
        for source in priced
        if (exchanged := _exchanged(topology, inspection, sinks, sharing, source))
    }
    if not shareable:
        return Shared(sharing, frame, {})
    found = _readings(inspection, sharing, frame, shareable)
    by_exchange = shareable.keys() - found.keys() - known  # as long as nothing speaks against it
    by_exchange |= {source for source, reading in found.items() if not reading.again}
    again = (known | priced) - by_exchange
    if read_again(topology, inspection, again) != sharing.unshared:
        sharing, frame = built(again)
    return Shared(sharing, frame, found)


def _priced(topology: Topology, inspection: Inspection) -> frozenset[str]:
    """Sources of files that may be read again: a route, or other forms, need one read."""
    if any(operator.has_forms for operator in topology.operators):
        return frozenset()
    routed = {source.name for source in topology.sources if source.route is not None}
    return frozenset(inspection.files.keys() - routed)


def _exchanged(
    topology: Topology, inspection: Inspection, sinks: tuple[SinkBinding, ...], sharing: Sharing,
    source: str,
) -> dict[str, int]:  # fmt: skip
    """Nodes that would be shared besides were a source not read again, and by how many consumers.

    None are where it cannot be shared, or has one consumer.
    """
    others = (inspection.files.keys() & sharing.unshared) - {source}
    instead = plan_sharing(topology, inspection, sinks, read_again(topology, inspection, others))
    return {node: n for node, n in instead.consumers.items() if node not in sharing.shared}


def _readings(
    inspection: Inspection, sharing: Sharing, frame: DataFrame,
    shareable: Mapping[str, Mapping[str, int]],
) -> dict[str, ReadingChoice]:  # fmt: skip
    """Of sources that a query reads for each consumer: whether that is cheaper.

    Those of which Spark does not say what each consumer uses are left out.
    """
    try:
        used_of = columns_read(frame, sharing.shared)
    except (Unavailable, *SPARK_ERRORS):  # the optimiser may find a mistake, which a start tells
        return {}
    found = {}
    for source in sorted(shareable.keys() & used_of.keys()):
        used = used_of[source]
        if len(used) < 2:
            continue
        sample = sample_of(inspection.files[source])
        # Others are of no file's: they are what Spark knows of it, such as its name.
        in_files = [[one for one in columns if one in sample.column_bytes] for columns in used]
        exchanges = [
            _exchange(inspection.types[node], consumers, sample)
            for node, consumers in sorted(shareable[source].items())
        ]
        found[source] = choose_reading(source, in_files, sample, exchanges)
    return found


def _exchange(rows: StructType, consumers: int, sample: Sample) -> Exchange:
    """One of such rows, of which there are as many as in a file: what drops some is not known."""
    known = sample.column_bytes
    sizes = {one.name: known.get(one.name, value_bytes(one.dataType)) for one in rows.fields}
    return Exchange(sizes, consumers)
