"""Which sources of files a query reads again for each consumer, and which they share: by price."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.errors import Unavailable
from penstock.fusion.reading import ReadingChoice, choose_reading
from penstock.model.topology import SinkBinding, Topology
from penstock.spark.compile.file_samples import sample_of
from penstock.spark.compile.inspection import Inspection
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
    if not any(sharing.copies.get(source, 0) > 1 for source in priced):
        return Shared(sharing, frame, {})
    found = _readings(inspection, frame, priced)
    again = (known - found.keys()) | {name for name, reading in found.items() if reading.again}
    if read_again(topology, inspection, again) != sharing.unshared:
        sharing, frame = built(again)
    return Shared(sharing, frame, found)


def _priced(topology: Topology, inspection: Inspection) -> frozenset[str]:
    """Sources of files that may be read again: a route, or other forms, need one read."""
    if any(operator.has_forms for operator in topology.operators):
        return frozenset()
    routed = {source.name for source in topology.sources if source.route is not None}
    return frozenset(inspection.files.keys() - routed)


def _readings(
    inspection: Inspection, frame: DataFrame, priced: Collection[str]
) -> dict[str, ReadingChoice]:
    """Of sources that a query reads for each consumer: whether that is cheaper.

    Empty where Spark does not say what each consumer uses.
    """
    try:
        used_of = columns_read(frame)
    except (Unavailable, *SPARK_ERRORS):  # the optimiser may find a mistake, which a start tells
        return {}
    return {
        source: choose_reading(
            source, used, sample_of(inspection.files[source], inspection.types[source])
        )
        for source, used in used_of.items()
        if source in priced and len(used) > 1
    }
