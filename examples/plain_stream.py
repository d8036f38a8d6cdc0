"""A plain PySpark stream: IN OUT CHECKPOINT SECONDS. Nothing here knows Penstock."""

import sys
import time

from pyspark.sql import SparkSession


def look_up(batches):
    for batch in batches:
        time.sleep(0.004 * batch.num_rows)  # an account somewhere else
        yield batch


spark = SparkSession.builder.appName("plain-stream").getOrCreate()
reports = spark.readStream.schema("vehicle LONG, at DOUBLE").json(sys.argv[1])
found = reports.mapInArrow(look_up, reports.schema)
query = found.writeStream.option("checkpointLocation", sys.argv[3]).start(sys.argv[2])
query.awaitTermination(float(sys.argv[4]))
query.stop()
