"""Synthetic video: frames with logos in them, their features, and how these match.

Alone in its file because executors import it. A frame is a pure function of its number, so it is
not carried along: what travels is its number and, once extracted, its features.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

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


@cache
def logo_image(logo: int) -> Image:
    """One of the logos: blocks of light and dark."""
    random = np.random.default_rng((1, logo))
    return np.kron(random.integers(0, 2, (6, 6)), np.ones((4, 4))).astype(np.float32)


@cache
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


def matches(found: Features) -> NDArray[np.int64]:
    """How many features of a frame are close to one of each logo's."""
    known, owner = logo_features()
    # |a - b|^2 = |a|^2 + |b|^2 - 2 a b, and all have length 1.
    distance = np.sqrt(np.maximum(2.0 - 2.0 * found @ known.T, 0.0))
    nearest = distance.argmin(axis=1)
    close = distance[np.arange(len(found)), nearest] < CLOSE
    return np.bincount(owner[nearest[close]], minlength=LOGOS)


def _between(coarse: Floats, rows: Floats, columns: Floats) -> Floats:
    """Bilinear interpolation of a coarse grid."""
    top, left = rows.astype(np.int64), columns.astype(np.int64)
    down, right = (rows - top)[:, None], (columns - left)[None, :]
    a, b = coarse[np.ix_(top, left)], coarse[np.ix_(top, left + 1)]
    c, d = coarse[np.ix_(top + 1, left)], coarse[np.ix_(top + 1, left + 1)]
    upper, lower = a + (b - a) * right, c + (d - c) * right
    return np.asarray(upper + (lower - upper) * down)
