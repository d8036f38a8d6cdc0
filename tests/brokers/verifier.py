"""Exactly once and in order, judged from the output files and the writer's counts alone."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq


def rows_in_order(out: Path) -> dict[str, list[int]]:
    """The sequence numbers of each stream as they came out: by batch, then file, then row."""
    found: dict[str, list[int]] = defaultdict(list)
    for batch in sorted(out.glob("batch=*"), key=lambda path: int(path.name.partition("=")[2])):
        for file in sorted(batch.glob("*.parquet")):
            table = pq.read_table(file, partitioning=None)
            streams, seqs = (table[name].to_pylist() for name in ("stream", "seq"))
            for stream, seq in zip(streams, seqs, strict=True):
                found[stream].append(seq)
    return found


def verify(out: Path, counts: Mapping[str, int], whole: Mapping[str, bool]) -> None:
    """Every stream is 0, 1, 2, ...; to its last row where it is to be whole."""
    found = rows_in_order(out)
    assert set(found) <= set(counts), "rows of streams that nobody wrote"
    for stream, seqs in found.items():
        assert seqs == list(range(len(seqs))), f"{stream}: lost, twice or out of order"
        assert len(seqs) <= counts[stream], f"{stream}: rows that nobody wrote"
    for stream, is_whole in whole.items():
        if is_whole:
            assert len(found.get(stream, [])) == counts[stream], f"{stream} is not whole"
