"""The same stream with a latency bound and few executors: three lines more."""

import sys
import time

from pyspark.sql import SparkSession

import penstock


def look_up(batches):
    for batch in batches:
        time.sleep(0.004 * batch.num_rows)  # an account somewhere else
        yield batch


spark = SparkSession.builder.appName("plain-stream").getOrCreate()
reports = spark.readStream.schema("vehicle LONG, at DOUBLE").json(sys.argv[1])
found = reports.mapInArrow(look_up, reports.schema)
query = found.writeStream.option("checkpointLocation", sys.argv[3]).start(sys.argv[2])
controller = penstock.attach(query, max_latency="5s", executors=(1, 4))
query.awaitTermination(float(sys.argv[4]))
controller.detach()
query.stop()
