"""Five topologies of different kinds whose rush hours come one after the other, as files to submit.

What a row costs is a wait, which keeps a processor busy but no core, so that a cluster with more
slots than cores can be compared.
"""

from dataclasses import dataclass
from pathlib import Path

WARM_UP_S = 40.0  # until the first rush: five topologies start beside each other, or one alone
COURSE_S = 140.0
RUSH_S = 20.0
QUIET_PER_S, RUSH_PER_S = 20.0, 300.0  # a rush takes three processors, the rest a fifth of one
WAIT_S = 0.01
BOUND_S = 12.0

TEXT = """
import time

from penstock import Files, Generator, Topology, window_aggregate
from penstock.workloads.profiles import knots
from pyspark.sql import functions as F

{name} = Topology("{name}", max_latency="{bound:g}s")
{name}.source("rows", Generator(knots({times}, {rates}), keys=20, seed={seed}, rows={rows}))


def look_up(batches):
    for batch in batches:
        time.sleep({wait} * batch.num_rows)
        yield batch


@{name}.operator("rows")
def answered(rows):
    return rows.mapInArrow(look_up, rows.schema)


{last}


{name}.sink("out", "last", Files({out!r}))
"""
OPERATOR = '@{name}.operator("answered")\ndef last(rows):\n    return '
KINDS = {
    "mapped": "rows.selectExpr('row', 'key', '2 * value AS value')",
    "counted": (
        "rows.withWatermark('at', '1 second').groupBy('key', F.window('at', '5 seconds'))"
        ".agg(F.count('*').alias('rows'), F.avg('value').alias('value'))"
    ),
    "sliding": (
        "window_aggregate(rows.withWatermark('at', '1 second'), by='key', time='at', "
        "window='10s', slide='1s', aggregates={'rows': 'count', 'value': 'avg(value)'})"
    ),
    "distinct": (
        "rows.withWatermark('at', '1 second').dropDuplicatesWithinWatermark(['row']).select('row')"
    ),
    "joined": (
        "rows.join(F.broadcast(rows.sparkSession.range(20).selectExpr('id AS key', "
        "'id % 3 AS class')), 'key').select('row', 'class')"
    ),
}
ROW_BY_ROW = ("mapped", "distinct", "joined")  # of which every row comes out


@dataclass(frozen=True)
class Written:
    """A topology as a file, and where its results go."""

    name: str
    file: Path
    out: Path
    rows: int

    @property
    def spec(self) -> str:
        """As it is submitted or run."""
        return f"{self.file}:{self.name}"


def write(folder: Path, same_rows: bool = False) -> list[Written]:
    """All five, each with its rush at another fifth of the course, or all with the same rows."""
    folder.mkdir()
    return [_written(folder, name, 0 if same_rows else place) for place, name in enumerate(KINDS)]


def _written(folder: Path, name: str, place: int) -> Written:
    begins_s = WARM_UP_S + place * (COURSE_S - WARM_UP_S - RUSH_S) / (len(KINDS) - 1)
    rises_s, falls_s = begins_s - 5.0, begins_s + RUSH_S
    times = [0.0, rises_s, begins_s, falls_s, falls_s + 5.0, COURSE_S + 30.0]
    rates = [QUIET_PER_S, QUIET_PER_S, RUSH_PER_S, RUSH_PER_S, QUIET_PER_S, QUIET_PER_S]
    rows = round(QUIET_PER_S * COURSE_S + (RUSH_PER_S - QUIET_PER_S) * RUSH_S)
    made = Written(name, folder / f"{name}.py", folder / f"{name}-out", rows)
    text = TEXT.format(
        name=name, bound=BOUND_S, times=times, rates=rates, seed=place, rows=rows, wait=WAIT_S,
        last=OPERATOR.format(name=name) + KINDS[name], out=str(made.out),
    )  # fmt: skip
    made.file.write_text(text, encoding="utf-8")
    return made
