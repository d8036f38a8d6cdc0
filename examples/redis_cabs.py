"""Cabs that report to Redis, one stream each; every cab that appears is read.

As a program it writes some reports and reads them. To read on until Ctrl-C:

    penstock run examples/redis_cabs.py:cabs
"""

import json
import os
import random

from penstock import Admission, Files, Streams, Topology

SERVER = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")

cabs = Topology("cabs", max_latency="10s")
cabs.source(
    "reports",
    Streams(
        redis=SERVER,
        keys="cab:*",
        schema="speed DOUBLE, at TIMESTAMP",
        stream_column="cab",
        options={"timestamp_column": "at"},
        admission=Admission(lane_capacity=20_000),
    ),
)
cabs.add("fast", "SELECT cab, at, speed FROM reports WHERE speed > 100", "reports")
cabs.sink("out", "fast", Files("out/cabs", overwrite=True))


def report(client, count):
    for _ in range(count):
        speed = random.uniform(40, 130)
        client.xadd(f"cab:{random.randrange(50)}", {"value": json.dumps({"speed": speed})})


if __name__ == "__main__":
    import redis

    report(redis.Redis.from_url(SERVER), 2_000)
    print(cabs.run(once=True))
