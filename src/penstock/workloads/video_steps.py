"""What executors run for video logo detection: Arrow batches in and out of each operator."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.workloads.video_frames import ENOUGH, LENGTH, Video, features, matches
from penstock.workloads.waiting import Waiting

EXTRACTED = "frame BIGINT, features BINARY"
MATCHED = "frame BIGINT, matched ARRAY<BIGINT>"
SEEN = "frame BIGINT, logo BIGINT, matched BIGINT"

Batches = Iterator[pa.RecordBatch]


class Extract:
    """A frame's number to its features."""

    def __init__(self, video: Video, waiting: Waiting) -> None:
        self._video, self._waiting = video, waiting

    def __call__(self, batches: Batches) -> Batches:
        """One row for each frame."""
        for batch in batches:
            frames = batch.column("row").to_numpy()
            self._waiting.wait(frames)
            found = [features(self._video.image(frame)).tobytes() for frame in frames.tolist()]
            columns = [pa.array(frames), pa.array(found, pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, names=["frame", "features"])


class Match:
    """Features of a frame to how many of them match each logo."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting

    def __call__(self, batches: Batches) -> Batches:
        """One row for each frame."""
        for batch in batches:
            frames = batch.column("frame").to_numpy()
            self._waiting.wait(frames)
            found = [
                matches(np.frombuffer(blob, dtype=np.float32).reshape(-1, LENGTH)).tolist()
                for blob in batch.column("features").to_pylist()
            ]
            columns = [pa.array(frames), pa.array(found, pa.list_(pa.int64()))]
            yield pa.RecordBatch.from_arrays(columns, names=["frame", "matched"])


class Aggregate:
    """Matches of a frame to the logos that it shows."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting

    def __call__(self, batches: Batches) -> Batches:
        """One row for each logo that is seen in a frame."""
        for batch in batches:
            frames = batch.column("frame").to_numpy()
            self._waiting.wait(frames)
            seen = [
                (frame, logo, count)
                for frame, counts in zip(
                    frames.tolist(), batch.column("matched").to_pylist(), strict=True
                )
                for logo, count in enumerate(counts)
                if count >= ENOUGH
            ]
            columns = [list(column) for column in zip(*seen, strict=True)] or [[], [], []]
            arrays = [pa.array(column, pa.int64()) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=["frame", "logo", "matched"])
