"""The plain stream of the elastic benchmark as a Flink job: IN OUT.

Runs in an environment of its own that has apache-flink and nothing of ours. Rows of growing JSON
files wait as long as in examples/plain_stream.py, and each comes out with the time it was ready.
"""

import sys
import time

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf

ROW_S = 0.004


@udf(result_type=DataTypes.DOUBLE(), deterministic=False)
def look_up(_vehicle: int) -> float:
    """An account somewhere else."""
    time.sleep(ROW_S)
    return time.time()


def main(came: str, out: str) -> None:
    """Submit the job; it runs until it is cancelled."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.create_temporary_system_function("look_up", look_up)
    tables.execute_sql(
        f"CREATE TABLE reports (vehicle BIGINT, `at` DOUBLE) WITH ('connector' = 'filesystem', "
        f"'path' = '{came}', 'format' = 'json', 'source.monitor-interval' = '250ms')"
    )
    tables.execute_sql(
        f"CREATE TABLE found (vehicle BIGINT, `at` DOUBLE, ready DOUBLE) WITH "
        f"('connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv')"
    )
    tables.execute_sql("INSERT INTO found SELECT vehicle, `at`, look_up(vehicle) FROM reports")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
