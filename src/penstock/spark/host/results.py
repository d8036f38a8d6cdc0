"""The newest rows of a topology's sinks, for those who may see them but not its files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from penstock.errors import InvalidInput
from penstock.model.sinks import Files, Memory
from penstock.model.topology import SinkBinding
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.sinks.places import local_path


def newest_rows(run: ElasticRun, sink: str | None, rows: int) -> Mapping[str, Any]:
    """At most so many rows, the newest last; values as text."""
    binding = chosen(run.topology.sinks, sink)
    kept = binding.sink
    if isinstance(kept, Memory):
        found = [row.asDict() for row in run.rows(binding.name)[-rows:]]
    elif isinstance(kept, Files) and (folder := local_path(kept.path)) is not None:
        found = newest_in_files(folder, kept.format, rows)
    else:
        raise InvalidInput(
            f"sink {binding.name!r} is {kept!r}; rows are shown of Memory, and of Files "
            "with a path on the host's machine."
        )
    columns = list(found[0]) if found else []
    return {
        "sink": binding.name,
        "columns": columns,
        "rows": [[str(row[column]) for column in columns] for row in found],
    }


def chosen(sinks: Sequence[SinkBinding], wanted: str | None) -> SinkBinding:
    """The sink of that name, or the only one."""
    names = [binding.name for binding in sinks]
    if wanted is None and len(sinks) == 1:
        return sinks[0]
    if wanted not in names:
        raise InvalidInput(f"sink is {wanted!r}; give one of {', '.join(names)}.")
    return sinks[names.index(wanted)]


def newest_in_files(path: Path, form: str, rows: int) -> list[dict[str, Any]]:
    """From the newest batches backwards until there are enough."""
    batches = [batch for batch in path.glob("batch=*") if batch.name[6:].isdigit()]
    found: list[dict[str, Any]] = []
    for batch in sorted(batches, key=lambda one: int(one.name[6:]), reverse=True):
        files = [str(file) for file in sorted(batch.iterdir()) if file.name.startswith("part-")]
        if len(found) >= rows or not files:
            break
        tables = [ds.dataset(file, format=form).to_table() for file in files]
        table = pa.concat_tables(tables, promote_options="default")
        found = table.slice(max(0, len(table) - rows)).to_pylist() + found
    return found[-rows:]
