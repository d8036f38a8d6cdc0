"""How many rows wait at a source that is not Penstock's own, as far as its offsets show it."""

import json
from typing import Any


def lag_rows(source: dict[str, Any]) -> int:
    """Rows between the end of a batch and the newest offset; 0 where offsets do not show it."""
    end, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
    if isinstance(end, dict) and isinstance(latest, dict):
        return max(0, rows_before(latest) - rows_before(end))
    return 0


def rows_before(offset: dict[str, Any]) -> int:
    """Of offsets by topic and partition, as Kafka reports them; other forms count as nothing."""
    return sum(
        position
        for partitions in offset.values()
        if isinstance(partitions, dict)
        for position in partitions.values()
        if isinstance(position, int)
    )


def _offset(raw: Any) -> Any:
    if not isinstance(raw, str):
        return raw
    try:
        return json.loads(raw)
    except ValueError:
        return None
