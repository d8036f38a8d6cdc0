"""Tables of an SQLite database as streams: every table with a column `id` that grows is one."""

import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidInput, Unavailable
from penstock.sources import Backend, Chunk, Discovered, Latest, positions


class SqliteTables(Backend):
    """Options: `database`, a file. A position is (0, the last id that was read)."""

    def __init__(self, database):
        self._database = database

    @classmethod
    def from_options(cls, options):
        if "database" not in options:
            raise InvalidInput("option database is missing; name the file of the database.")
        return cls(options["database"])

    def discover(self):
        found = self._ask("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return [Discovered(name) for (name,) in found]

    def latest(self, streams, since, whole=False):
        known = {stream.name for stream in self.discover()}
        end = [
            self._ask(f'SELECT coalesce(max(id), 0) FROM "{name}"')[0][0] if name in known else 0
            for name in streams
        ]
        fault = ["" if name in known else "there is no such table" for name in streams]
        end = np.maximum(np.array(end, dtype=np.int64), since.minor)
        return Latest.of(positions(end), end - since.minor, fault)

    def read(self, ranges, schema):
        columns = ", ".join(f'"{name}"' for name in schema.names)
        for number, name in enumerate(ranges.streams):
            between = (int(ranges.start.minor[number]), int(ranges.end.minor[number]))
            query = f'SELECT {columns} FROM "{name}" WHERE id > ? AND id <= ? ORDER BY id'
            values = list(zip(*self._ask(query, between), strict=True)) or [[]] * len(schema)
            arrays = [pa.array(v, field.type) for v, field in zip(values, schema, strict=True)]
            rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
            yield Chunk(rows, np.array([number]), np.array([rows.num_rows]))

    def _ask(self, query, values=()):
        try:
            with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as connection:
                return connection.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            raise Unavailable(f"{self._database}: {error}") from error
