"""Look-ups that take longer for some values than for others, dealt by what they were seen to take.

DABS is AUTOSCALE+ with OSG:

    penstock run examples/lookups.py:lookups --policy autoscale_plus --master embedded --slots 1
"""

import time

import pyarrow.compute as pc

from penstock import Files, Generator, Route, Topology, costed, steps

lookups = Topology("lookups", max_latency="5s")
lookups.source(
    "requests",
    Generator(steps([(10, 20), (10, 60)]), keys=50, rows=800),
    route=Route("osg", key="key", partitions=8, period="2s", follow=True),
)


def look_up(batches):
    for batch in batches:
        time.sleep(pc.sum(batch.column("key")).as_py() * 0.0002)  # 0 to 10 ms a request
        yield batch


@lookups.operator("requests")
def answers(requests):
    timed = costed(look_up, by="key", source="requests")
    return requests.mapInArrow(timed, requests.schema)


lookups.sink("out", "answers", Files("out", overwrite=True))
