"""Orders of many shops, one table each, read through a source of one's own.

Run as `PYTHONPATH=examples penstock run examples/own_source.py --once`; tables may be added, and
rows to them, while it runs.
"""

import os

from penstock import Files, Streams, Topology

shops = Topology("shops", max_latency="5s")
shops.source(
    "orders",
    Streams(
        backend="sqlite_backend:SqliteTables",
        options={"database": os.path.abspath("shops.sqlite")},  # executors run elsewhere
        schema="id BIGINT, cents BIGINT",
        stream_column="shop",
    ),
)
shops.add("large", "SELECT shop, id, cents FROM orders WHERE cents >= 10000", upstream="orders")
shops.sink("out", "large", Files("out/large", overwrite=True))
