"""Nexmark's queries in Flink SQL over CSV files: EVENTS OUT QUERY...; prints seconds as JSON.

Runs in an environment of its own that has apache-flink and nothing of ours. All queries are one
job; results that are only appended go to files, the others nowhere.
"""

import json
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

SLOTS = 2
WATERMARK = "WATERMARK FOR `at` AS `at` - INTERVAL '4' SECOND"
COLUMNS = {
    "person": "id BIGINT, name STRING, email STRING, city STRING, state STRING, `at` TIMESTAMP(3)",
    "auction": "id BIGINT, item STRING, `initial` BIGINT, `reserve` BIGINT, `at` TIMESTAMP(3), "
    "expires TIMESTAMP(3), seller BIGINT, category BIGINT",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, "
    "`at` TIMESTAMP(3), extra STRING",
}
HOP = "HOP(TABLE bid, DESCRIPTOR(`at`), INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
# Columns of the results, and the query.
QUERIES = {
    "q1": (
        "auction BIGINT, bidder BIGINT, price DOUBLE, `at` TIMESTAMP(3)",
        "SELECT auction, bidder, 0.908 * CAST(price AS DOUBLE), `at` FROM bid",
    ),
    "q2": (
        "auction BIGINT, price BIGINT",
        "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    ),
    "q3": (
        "name STRING, city STRING, state STRING, auction BIGINT",
        "SELECT p.name, p.city, p.state, a.id FROM person p JOIN auction a ON p.id = a.seller "
        "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    ),
    "q5": (
        "until TIMESTAMP(3), auction BIGINT, most BIGINT",
        f"""SELECT c.window_end, c.auction, c.n FROM
              (SELECT auction, COUNT(*) AS n, window_start, window_end FROM TABLE({HOP})
               GROUP BY auction, window_start, window_end) c
            JOIN (SELECT MAX(n) AS most, window_start, window_end FROM
                    (SELECT auction, COUNT(*) AS n, window_start, window_end FROM TABLE({HOP})
                     GROUP BY auction, window_start, window_end)
                  GROUP BY window_start, window_end) m
            ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.n = m.most""",
    ),
    "q7": (
        "until TIMESTAMP(3), price BIGINT",
        "SELECT window_end, MAX(price) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`at`), "
        "INTERVAL '10' SECOND)) GROUP BY window_start, window_end",
    ),
    "q8": (
        "id BIGINT, name STRING, auctions BIGINT",
        """SELECT p.id, p.name, a.n FROM
             (SELECT id, name, window_start, window_end FROM TABLE(
                TUMBLE(TABLE person, DESCRIPTOR(`at`), INTERVAL '10' SECOND))
              GROUP BY id, name, window_start, window_end) p
           JOIN (SELECT seller, COUNT(*) AS n, window_start, window_end FROM TABLE(
                   TUMBLE(TABLE auction, DESCRIPTOR(`at`), INTERVAL '10' SECOND))
                 GROUP BY seller, window_start, window_end) a
           ON p.id = a.seller AND p.window_start = a.window_start
             AND p.window_end = a.window_end""",
    ),
    "q11": (
        "bidder BIGINT, n BIGINT, start_at TIMESTAMP(3), end_at TIMESTAMP(3)",
        "SELECT bidder, COUNT(*), window_start, window_end FROM TABLE(SESSION(TABLE bid "
        "PARTITION BY bidder, DESCRIPTOR(`at`), INTERVAL '10' SECOND)) "
        "GROUP BY bidder, window_start, window_end",
    ),
    "q17": (
        "auction BIGINT, `day` STRING, bids BIGINT, low BIGINT, middle BIGINT, high BIGINT, "
        "least BIGINT, most BIGINT, total BIGINT",
        """SELECT auction, DATE_FORMAT(`at`, 'yyyy-MM-dd'), COUNT(*),
             COUNT(*) FILTER (WHERE price < 10000),
             COUNT(*) FILTER (WHERE price BETWEEN 10000 AND 999999),
             COUNT(*) FILTER (WHERE price > 999999), MIN(price), MAX(price), SUM(price)
           FROM bid GROUP BY auction, DATE_FORMAT(`at`, 'yyyy-MM-dd')""",
    ),
}  # fmt: skip
UPDATED = {"q17"}


def main(events: Path, out: Path, names: list[str]) -> dict[str, float]:
    """Run the queries as one job until all files are read; how long that took."""
    began_s = time.monotonic()
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = tables.get_config()
    settings.set("parallelism.default", str(SLOTS))
    settings.set("table.local-time-zone", "UTC")
    for kind, columns in COLUMNS.items():
        tables.execute_sql(
            f"CREATE TABLE {kind} ({columns}, {WATERMARK}) WITH ('connector' = 'filesystem', "
            f"'path' = '{events / kind}', 'format' = 'csv')"
        )
    job = tables.create_statement_set()
    for name in names:
        columns, query = QUERIES[name]
        sink = (
            "'connector' = 'blackhole'" if name in UPDATED
            else f"'connector' = 'filesystem', 'path' = '{out / name}', 'format' = 'csv'"
        )  # fmt: skip
        tables.execute_sql(f"CREATE TABLE {name}_out ({columns}) WITH ({sink})")
        job.add_insert_sql(f"INSERT INTO {name}_out {query}")
    job.execute().wait()
    return {"seconds": time.monotonic() - began_s}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])))
