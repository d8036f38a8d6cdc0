"""Options of a run that an attached query has answered already, and where it did."""

from collections.abc import Collection

from penstock.config.settings import OPTION_OF, OPTIONS
from penstock.errors import InvalidInput

_FUSION = "its operators are not fused anew: that needs a Topology"
ALREADY_SET = {
    "slots": "its session was built with them: penstock.session_settings(slots=...)",
    "executor_memory_mb": "its session was built with spark.executor.memory",
    "key_groups": "its checkpoint was begun with spark.sql.shuffle.partitions; `penstock "
    "key-groups` changes it while the query is stopped",
    "batch_interval_s": "the query's own trigger says it: .trigger(processingTime=...)",
    "channel_rows": "it has no channels: that needs a Topology run apart",
    "fusion_beta": _FUSION,
    "fusion_capacity": _FUSION,
    "fusion_tolerance": _FUSION,
}
# Of a file or the environment, which other runs share, only these are read.
READ = tuple(o.name for o in OPTIONS if o.name not in {OPTION_OF[f].name for f in ALREADY_SET})


def refuse_already_set(given: Collection[str]) -> None:
    """Refuse what would do nothing, with what to do instead."""
    for name, instead in ALREADY_SET.items():
        if name in given:
            raise InvalidInput(f"attach({name}) cannot be given for a running query; {instead}.")
