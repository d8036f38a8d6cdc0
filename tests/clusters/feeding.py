"""Files that a stream reads, written at a rate that a test sets; and what must come of them."""

import threading
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FILE_S = 0.5  # one file each
KEYS = 60


class Feeder:
    """Writes numbered rows at `rate_per_s`, a file each half second, until stopped."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.rows = 0
        self.rate_per_s = 0.0
        self._ended = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def pause(self) -> int:
        """Write nothing more; the rows written in all."""
        self.rate_per_s = 0.0
        with self._writing:
            return self.rows

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def expected(self) -> pd.DataFrame:
        """Count and sum of each key, over all rows written: a batch, without Spark."""
        rows = pd.DataFrame({"row": range(self.rows)})
        rows["key"] = rows["row"] % KEYS
        by_key = rows.groupby("key").agg(n=("row", "size"), total=("row", "sum"))
        return by_key.reset_index()

    def _run(self) -> None:
        files, owed, before_s = 0, 0.0, time.monotonic()
        while not self._ended.wait(FILE_S):
            now_s = time.monotonic()
            with self._writing:
                owed = owed + self.rate_per_s * (now_s - before_s) if self.rate_per_s else 0.0
                before_s = now_s
                count = int(owed)
                if not count:
                    continue
                owed -= count
                row = range(self.rows, self.rows + count)
                table = pa.table({"row": list(row), "key": [one % KEYS for one in row]})
                name = f"{files:06d}.parquet"
                pq.write_table(table, self._folder / f".{name}")
                (self._folder / f".{name}").rename(self._folder / name)
                self.rows += count
                files += 1


def written(folder: Path) -> pd.DataFrame:
    """The newest count and sum of each key, of the batches that wrote them."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        return pd.DataFrame({"key": [], "n": [], "total": []}, dtype="int64")
    batches = pd.concat([pq.read_table(file).to_pandas() for file in files])
    for _, counts in batches.groupby("key")["n"]:
        assert counts.is_monotonic_increasing, "a later batch counted fewer rows of a key"
    return batches.groupby("key").last().reset_index().sort_values("key", ignore_index=True)
