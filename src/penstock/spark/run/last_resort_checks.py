"""Whether what a user allows as a last resort can be carried out at all."""

from penstock.config import Settings
from penstock.errors import InvalidInput
from penstock.model.topology import Topology
from penstock.spark.sources.running.kinds import running_sources


def check_last_resort(topology: Topology, settings: Settings, apart: bool) -> None:
    """Refuse a last resort, or an interval of batches, that could never be carried out."""
    wanted = {
        f"shed-at-most is {settings.shed_at_most}": settings.shed_at_most is not None,
        "adapt-interval is true": settings.adapt_interval,
        f"operator {next(iter(topology.variants), '')!r} has a cheaper form": bool(
            topology.variants
        ),
    }
    asked = next((words for words, wants in wanted.items() if wants), None)
    needed = {"shed", "interval_s"}
    foreign = [n for n, s in running_sources(topology).items() if not needed <= s.orders]
    if asked is not None and apart:
        raise InvalidInput(f"{asked}; that is possible only where components run together.")
    if foreign and (settings.shed_at_most is not None or settings.adapt_interval):
        raise InvalidInput(
            f"{asked}, but source {foreign[0]!r} cannot do that; only a Generator and Streams can."
        )


def check_attached(settings: Settings) -> None:
    """Refuse the same for queries whose sources are not Penstock's own."""
    for asked, wants in (
        (f"shed-at-most is {settings.shed_at_most}", settings.shed_at_most is not None),
        ("adapt-interval is true", settings.adapt_interval),
    ):
        if wants:
            raise InvalidInput(f"{asked}, but the sources of an attached query cannot do that.")
