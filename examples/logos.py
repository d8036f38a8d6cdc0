"""Video logo detection (Fu et al. 2017, s. V-A): frames -> extract -> match -> aggregate.

penstock run examples/logos.py:video --apart --master 'local[8]' --policy drs

Each operator has processors of its own. Frames are made up, features are really computed and
matched. A frame is a pure function of its number, so it is not carried along: what travels is its
number and, once extracted, its features. Waiting may be added to each operator to stand for
hardware that a machine has not: it keeps a processor busy, but no core.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock import Files, Generator, RateProfile, Topology, steps
from penstock.model.sinks import Sink
from penstock.workloads.generator import uniform

Image = NDArray[np.float32]
Features = NDArray[np.float32]
Floats = NDArray[np.float64]

HEIGHT, WIDTH = 96, 128
LOGO = 24  # pixels of a side
LOGOS = 16  # as in Fu et al. 2017, s. V-B
PATCH = 16  # pixels of a side that a feature describes, in 4 x 4 cells of 8 directions
DIRECTIONS = 8
LENGTH = 4 * 4 * DIRECTIONS
LEAST_POINTS, MOST_POINTS = 20, 120
CLOSE = 0.45  # L2 distance of features that match
ENOUGH = 5  # matched features that make a logo seen

EXTRACTED = "frame BIGINT, features BINARY"
MATCHED = "frame BIGINT, matched ARRAY<BIGINT>"
SEEN = "frame BIGINT, logo BIGINT, matched BIGINT"

Batches = Iterator[pa.RecordBatch]
OPERATORS = ("extract", "match", "aggregate")


@dataclass(frozen=True)
class Video:
    """A clip; every third frame or so shows a logo, half of these two."""

    seed: int = 7

    def logos_of(self, frame: int) -> tuple[tuple[int, int, int], ...]:
        """Which logos a frame shows, each with the place of its corner."""
        random = np.random.default_rng((self.seed, frame, 1))
        count = int(random.choice([0, 0, 0, 1, 2]))
        found = []
        for place, logo in enumerate(random.choice(LOGOS, size=count, replace=False)):
            left = place * WIDTH // 2  # in halves of their own, so that none hides another
            row = int(random.integers(0, HEIGHT - LOGO))
            found.append((int(logo), row, left + int(random.integers(0, WIDTH // 2 - LOGO))))
        return tuple(found)

    def image(self, frame: int) -> Image:
        """The frame: a soft background, noise, and its logos."""
        random = np.random.default_rng((self.seed, frame))
        coarse = random.random((HEIGHT // 16 + 2, WIDTH // 16 + 2))
        rows, columns = np.arange(HEIGHT) / 16, np.arange(WIDTH) / 16
        image = _between(coarse, rows, columns) + 0.02 * random.standard_normal((HEIGHT, WIDTH))
        for logo, row, column in self.logos_of(frame):
            image[row : row + LOGO, column : column + LOGO] = logo_image(logo)
        return image.astype(np.float32)


def logo_image(logo: int) -> Image:
    """One of the logos: blocks of light and dark."""
    random = np.random.default_rng((1, logo))
    return np.kron(random.integers(0, 2, (6, 6)), np.ones((4, 4))).astype(np.float32)


def logo_features() -> tuple[Features, NDArray[np.int64]]:
    """Features of all logos, and which logo each is of."""
    parts = []
    for logo in range(LOGOS):
        shown = np.full((LOGO + 16, LOGO + 16), 0.5, dtype=np.float32)
        shown[8:-8, 8:-8] = logo_image(logo)
        parts.append(features(shown, MOST_POINTS // 2))
    owner = np.repeat(np.arange(LOGOS), [len(part) for part in parts])
    return np.concatenate(parts), owner


def features(image: Image, most: int = MOST_POINTS) -> Features:
    """Histograms of gradient directions around the points where the image changes most.

    How many there are depends on the image, and with it the work that follows.
    """
    down, right = np.gradient(image)
    strength = np.hypot(down, right)
    direction = ((np.arctan2(down, right) / (2 * np.pi)) % 1 * DIRECTIONS).astype(np.int64)
    inner = strength[PATCH // 2 : -PATCH // 2, PATCH // 2 : -PATCH // 2]
    strong = int(np.count_nonzero(inner > 0.25))
    count = int(np.clip(strong // 4, LEAST_POINTS, most))
    best = np.argpartition(inner.ravel(), -count)[-count:]
    rows, columns = np.unravel_index(np.sort(best), inner.shape)
    found = np.zeros((count, LENGTH), dtype=np.float32)
    cells = np.arange(PATCH) // 4
    for number, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        area = slice(row, row + PATCH), slice(column, column + PATCH)
        bins = (cells[:, None] * 4 + cells[None, :]) * DIRECTIONS + direction[area] % DIRECTIONS
        found[number] = np.bincount(bins.ravel(), strength[area].ravel(), LENGTH)
    norms = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.maximum(norms, 1e-6), dtype=np.float32)


def _between(coarse: Floats, rows: Floats, columns: Floats) -> Floats:
    """Bilinear interpolation of a coarse grid."""
    top, left = rows.astype(np.int64), columns.astype(np.int64)
    down, right = (rows - top)[:, None], (columns - left)[None, :]
    a, b = coarse[np.ix_(top, left)], coarse[np.ix_(top, left + 1)]
    c, d = coarse[np.ix_(top + 1, left)], coarse[np.ix_(top + 1, left + 1)]
    upper, lower = a + (b - a) * right, c + (d - c) * right
    return np.asarray(upper + (lower - upper) * down)


@dataclass(frozen=True)
class Waiting:
    """Exponential times of this mean, one for each row."""

    mean_s: float = 0.0
    stream: int = 0  # another one for each operator, or they would wait alike

    def times_s(self, row: NDArray[np.int64]) -> NDArray[np.float64]:
        """How long each row waits."""
        return np.asarray(-self.mean_s * np.log1p(-uniform(row, 7_919 + self.stream)))

    def wait(self, row: NDArray[np.int64]) -> None:
        """Let these rows wait, one after the other."""
        if self.mean_s > 0:
            time.sleep(float(self.times_s(row).sum()))


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
        self._known, self._owner = logo_features()  # once, and sent along with the function

    def __call__(self, batches: Batches) -> Batches:
        """One row for each frame."""
        for batch in batches:
            frames = batch.column("frame").to_numpy()
            self._waiting.wait(frames)
            found = [
                self._matches(np.frombuffer(blob, dtype=np.float32).reshape(-1, LENGTH)).tolist()
                for blob in batch.column("features").to_pylist()
            ]
            columns = [pa.array(frames), pa.array(found, pa.list_(pa.int64()))]
            yield pa.RecordBatch.from_arrays(columns, names=["frame", "matched"])

    def _matches(self, found: Features) -> NDArray[np.int64]:
        """How many features of a frame are close to one of each logo's."""
        # |a - b|^2 = |a|^2 + |b|^2 - 2 a b, and all have length 1.
        distance = np.sqrt(np.maximum(2.0 - 2.0 * found @ self._known.T, 0.0))
        nearest = distance.argmin(axis=1)
        close = distance[np.arange(len(found)), nearest] < CLOSE
        return np.bincount(self._owner[nearest[close]], minlength=LOGOS)


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


def video_logos(
    rate: RateProfile,
    logos: Sink,
    *,
    max_latency: str = "5s",
    frames: int | None = None,
    max_rows: int | None = None,
    waits_s: tuple[float, float, float] = (0.0, 0.0, 0.0),
    seed: int = 7,
) -> Topology:
    """The topology; each operator is a component of its own where it runs apart."""
    video = Topology("video-logos", max_latency=max_latency)
    stream = Generator(rate, keys=1, seed=seed, rows=frames, lanes=2, max_rows=max_rows)
    video.source("frames", stream)
    extract_wait, match_wait, aggregate_wait = (Waiting(s, n) for n, s in enumerate(waits_s))

    @video.operator("frames", separate=True)
    def extract(frames: Any) -> Any:
        return frames.mapInArrow(Extract(Video(seed), extract_wait), EXTRACTED)

    @video.operator("extract", separate=True)
    def match(extract: Any) -> Any:
        return extract.mapInArrow(Match(match_wait), MATCHED)

    @video.operator("match", separate=True)
    def aggregate(match: Any) -> Any:
        return match.mapInArrow(Aggregate(aggregate_wait), SEEN)

    video.sink("logos", "aggregate", logos)
    return video


def shown(frames: int, seed: int = 7) -> set[tuple[int, int]]:
    """Which logos the first frames really show, as (frame, logo)."""
    video = Video(seed)
    return {(frame, logo) for frame in range(frames) for logo, _, _ in video.logos_of(frame)}


video = video_logos(
    steps([(20, 4), (20, 12), (20, 4)]),
    Files("out/logos", overwrite=True),
    max_latency="10s",
    frames=400,
    waits_s=(0.1, 0.15, 0.0),
)
