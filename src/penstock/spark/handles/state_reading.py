"""Every row of a checkpoint's state, by Spark's own reader, summed up so that two can be compared.

The reader is public, but how it names what an operator keeps differs by operator.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.spark.handles.gateway import asking


@dataclass(frozen=True)
class StoreDigest:
    """What an operator keeps under a name: equal digests are of equal rows, in any order."""

    operator: int
    what: str
    rows: int
    checksum: int
    elsewhere: int  # rows in another key group than a hash of their whole key says


@asking("read state")
def state_digests(
    spark: SparkSession, checkpoint: str, batch: int, key_groups: int
) -> tuple[StoreDigest, ...]:
    """The state after a batch, which so many key groups divide."""
    stores = spark.read.format("state-metadata").load(checkpoint)
    columns = ("operatorId", "operatorName", "operatorProperties")
    named = stores.select(*columns).distinct().orderBy("operatorId").collect()
    return tuple(
        _digest(spark, checkpoint, options | {"batchId": str(batch)}, key_groups)
        for row in named
        for options in _kept_by(row)
    )


def _kept_by(operator: Row) -> Iterator[dict[str, str]]:
    """What has to be said to the reader for all that an operator keeps."""
    number = {"operatorId": str(operator["operatorId"])}
    kind = str(operator["operatorName"])
    if kind == "symmetricHashJoin":
        yield from ({**number, "joinSide": side} for side in ("left", "right"))
    elif kind.startswith("transformWithState"):
        kept = json.loads(operator["operatorProperties"] or "{}").get("stateVariables", [])
        yield from ({**number, "stateVarName": str(one["stateName"])} for one in kept)
    else:
        yield number


def _digest(
    spark: SparkSession, checkpoint: str, options: dict[str, str], key_groups: int
) -> StoreDigest:
    rows = spark.read.format("statestore").options(**options).load(checkpoint)
    kind = rows.schema["key"].dataType
    assert isinstance(kind, StructType)
    home = F.pmod(F.hash(*(F.col("key").getField(name) for name in kind.fieldNames())), key_groups)
    kept = [column for column in rows.columns if column != "partition_id"]
    found = (
        rows.select(
            F.xxhash64(*kept).alias("digest"),
            (home != F.col("partition_id")).cast("int").alias("out"),
        )
        .agg(F.count("*"), F.sum(F.col("digest").cast("decimal(38,0)")), F.sum("out"))
        .collect()[0]
    )
    what = options.get("joinSide") or options.get("stateVarName") or "state"
    number = int(options["operatorId"])
    return StoreDigest(number, what, int(found[0]), int(found[1] or 0), int(found[2] or 0))
