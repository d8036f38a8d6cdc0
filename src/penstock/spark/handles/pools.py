"""The pools of Spark's fair scheduler: how many slots each gets before the others, and by weight.

A pool is made with the first task that names it, as the allocation file says, and its numbers are
fixed. Those that are made or changed here hold from the next task on.
"""

from pyspark.sql import SparkSession

from penstock.spark.handles.gateway import asking, context, java_class

POOL = "spark.scheduler.pool"  # the local property of the thread that starts a query
CLASS = "org.apache.spark.scheduler.Pool"
FIELDS = ("weight", "minShare")


def set_pool(spark: SparkSession, name: str, slots: int) -> None:
    """Give a pool so many slots at least, and what is over by the same number."""
    with asking("change a scheduler pool"):
        root = context(spark).taskScheduler().rootPool()
        pool = root.getSchedulableByName(name)
        if pool is None:
            modes = java_class(spark, "org.apache.spark.scheduler.SchedulingMode")
            root.addSchedulable(java_class(spark, CLASS)(name, modes.FIFO(), slots, slots))
            return
        for field_name in FIELDS:
            field = pool.getClass().getDeclaredField(field_name)
            field.setAccessible(True)
            field.set(pool, slots)


def pool_slots(spark: SparkSession, name: str) -> int | None:
    """What a pool was given; None where there is no such pool yet."""
    with asking("read a scheduler pool"):
        pool = context(spark).taskScheduler().rootPool().getSchedulableByName(name)
        return None if pool is None else int(pool.minShare())
