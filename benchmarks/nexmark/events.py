"""Events of an auction site: persons, auctions and bids, 1 : 3 : 46, each a function of its number.

The mix, the hot keys and the fields are those of the Nexmark benchmark (Tucker et al. 2002, in the
form that its users have agreed on since). Whatever number an event has, its fields come from
hashing that number and its time from the rate, so any part of the stream can be made again,
anywhere, in any order: as files here, as streams in `source.py`.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.csv import WriteOptions, write_csv

from penstock.errors import InvalidInput
from penstock.workloads.generator import uniform_of
from penstock.workloads.profiles import RateProfile, constant

Ints = NDArray[np.int64]

SHARES = {"person": 1, "auction": 3, "bid": 46}  # of each fifty events, in this order
PLACES = {"person": 0, "auction": 1, "bid": 4}  # of the first of each kind
ROUND = sum(SHARES.values())
PER_S = 10_000.0
FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT = 100  # ids in a row of which one is hot
HOT_AUCTIONS, HOT_BIDDERS, HOT_SELLERS = 1 / 2, 3 / 4, 3 / 4  # share of events that go there
OPEN_AUCTIONS, ACTIVE_PERSONS = 100, 1_000
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond")
NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
RARE_CHANNELS = 10_000
EPOCH_US = 1_600_000_000_000_000

PERSON = "id LONG, name STRING, email STRING, city STRING, state STRING, at TIMESTAMP"
AUCTION = (
    "id LONG, item STRING, initial LONG, reserve LONG, at TIMESTAMP, expires TIMESTAMP, "
    "seller LONG, category LONG"
)
BID = (
    "auction LONG, bidder LONG, price LONG, channel STRING, url STRING, at TIMESTAMP, extra STRING"
)
SCHEMAS = {"person": PERSON, "auction": AUCTION, "bid": BID}


def events_before(kind: str, number: Ints) -> Ints:
    """How many events of a kind have a smaller number."""
    share, place = SHARES[kind], PLACES[kind]
    return number // ROUND * share + np.clip(number % ROUND - place, 0, share)


def numbers(kind: str, index: Ints) -> Ints:
    """The numbers that the events of a kind have, by how many of it come before.

    >>> numbers("auction", np.arange(5)).tolist()
    [1, 2, 3, 51, 52]
    """
    share = SHARES[kind]
    return index // share * ROUND + PLACES[kind] + index % share


class Events:
    """A stream of events by their numbers, which come at a rate from a moment of event time on."""

    def __init__(
        self, seed: int = 1, rate: RateProfile | float = PER_S, begin_us: int = EPOCH_US
    ) -> None:
        self._seed, self._begin_us = seed, begin_us
        self._rate = rate if isinstance(rate, RateProfile) else constant(rate)

    def tables(self, first: int, count: int) -> dict[str, pa.Table]:
        """Events of these numbers, by kind."""
        last = np.array([first, first + count], dtype=np.int64)
        between = {kind: events_before(kind, last) for kind in SHARES}
        return {
            kind: self.table(kind, numbers(kind, np.arange(*of, dtype=np.int64)))
            for kind, of in between.items()
        }

    def table(self, kind: str, number: Ints) -> pa.Table:
        """Events of these numbers, all of which are of this kind."""
        make = {"person": self._persons, "auction": self._auctions, "bid": self._bids}
        return make[kind](number)

    def write(self, folder: Path, count: int, files: int, csv: bool = False) -> None:
        """A folder for each kind, with one file for each of so many parts: Parquet, or CSV."""
        for part in range(files):
            first, last = count * part // files, count * (part + 1) // files
            for kind, table in self.tables(first, last - first).items():
                (folder / kind).mkdir(parents=True, exist_ok=True)
                file = folder / kind / f"{part:05d}"
                if csv:
                    write_csv(_without_zone(table), file.with_suffix(".csv"), _BARE)
                else:
                    pq.write_table(table, file.with_suffix(".parquet"))

    def _drawn(self, number: Ints, sequence: int) -> NDArray[np.float64]:
        salt = np.uint64((self._seed * 1_000_003 + sequence) * 0xD1B54A32D192ED03 % 2**64)
        return uniform_of(number, salt)

    def _chosen(self, number: Ints, sequence: int, words: tuple[str, ...]) -> pa.Array:
        index = (self._drawn(number, sequence) * len(words)).astype(np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(index), pa.array(words)).cast(pa.string())

    def _at(self, number: Ints) -> pa.Array:
        # Between two events, so that no window ends with the last: a query that waits for other
        # inputs too would leave it open, and one of its own would not.
        at_s = self._rate.arrival_s(number - 0.5)
        if not np.isfinite(at_s).all():
            raise InvalidInput("rate ends at 0 before so many events; give one that goes on.")
        return pa.array(self._begin_us + np.rint(at_s * 1e6).astype(np.int64), _TIME)

    def _persons(self, number: Ints) -> pa.Table:
        identity = FIRST_ID + number // ROUND
        name = self._chosen(number, 1, NAMES)
        return pa.table({
            "id": identity, "name": name,
            "email": pa.array([f"{one}@example.com" for one in identity.tolist()]),
            "city": self._chosen(number, 2, CITIES), "state": self._chosen(number, 3, STATES),
            "at": self._at(number),
        })  # fmt: skip

    def _auctions(self, number: Ints) -> pa.Table:
        identity = FIRST_ID + events_before("auction", number)
        initial = _price(self._drawn(number, 4))
        length_us = (self._drawn(number, 5) * 20e6).astype(np.int64) + 1_000_000
        at = self._at(number)
        newest = number // ROUND  # of the persons so far
        return pa.table({
            "id": identity, "item": pa.array([f"item {one}" for one in identity.tolist()]),
            "initial": initial, "reserve": initial + _price(self._drawn(number, 6)), "at": at,
            "expires": pa.array(at.cast(pa.int64()).to_numpy() + length_us, _TIME),
            "seller": self._person(number, newest, 7, HOT_SELLERS, 0),
            "category": FIRST_CATEGORY + (self._drawn(number, 9) * CATEGORIES).astype(np.int64),
        })  # fmt: skip

    def _bids(self, number: Ints) -> pa.Table:
        newest = events_before("auction", number) - 1
        back = (self._drawn(number, 11) * OPEN_AUCTIONS).astype(np.int64)
        hot = self._drawn(number, 10) < HOT_AUCTIONS
        auction = FIRST_ID + np.where(hot, newest // HOT * HOT, np.maximum(newest - back, 0))
        rare = self._drawn(number, 14) < 0.5
        which = (self._drawn(number, 15) * RARE_CHANNELS).astype(np.int64)
        usual = self._chosen(number, 16, CHANNELS).to_pylist()
        pairs = list(zip(rare.tolist(), which.tolist(), usual, strict=True))
        channel = [f"channel-{number}" if is_rare else name for is_rare, number, name in pairs]
        url = [
            f"https://www.nexmark.com/a/b{number % 97}/item.htm?query=1"
            + (f"&channel_id={number}" if is_rare else "")
            for is_rare, number, _ in pairs
        ]
        return pa.table({
            "auction": auction,
            "bidder": self._person(number, number // ROUND, 12, HOT_BIDDERS, 1),
            "price": _price(self._drawn(number, 17)), "channel": channel, "url": url,
            "at": self._at(number),
            "extra": self._chosen(number, 18, ("abc", "accc", "xyz", "cab c")),
        })  # fmt: skip

    def _person(self, number: Ints, newest: Ints, sequence: int, hot: float, place: int) -> Ints:
        """One of the newest persons; mostly the hot one of each hundred."""
        back = (self._drawn(number, sequence + 100) * ACTIVE_PERSONS).astype(np.int64)
        is_hot = self._drawn(number, sequence) < hot
        chosen = np.where(is_hot, newest // HOT * HOT + place, newest - back)
        return FIRST_ID + np.clip(chosen, 0, newest)


_TIME = pa.timestamp("us", "UTC")
_BARE = WriteOptions(include_header=False)


def _without_zone(table: pa.Table) -> pa.Table:
    """Times as other systems write them."""
    fields = [f.with_type(pa.timestamp("us")) if f.type == _TIME else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _price(drawn: NDArray[np.float64]) -> Ints:
    return np.round(10.0 ** (drawn * 6) * 100).astype(np.int64)
