"""The season of a series, found in the series itself."""

import numpy as np

from penstock.model.observation import Floats

_LEAST_SEASON = 8  # steps; what is shorter is noise
_AS_ALIKE = 0.05
_LEAST_LIKENESS = 0.5  # correlation of a series with itself one season before


def season_of(series: Floats) -> int | None:
    """The lag, of at most half its length, at which a series is most like itself; None if none is.

    A lag counts only where the likeness has a peak, so that a slow drift is not taken for one.
    """
    count = len(series)
    if count < 3 * _LEAST_SEASON:
        return None
    centred = series - series.mean()
    spectrum = np.fft.rfft(centred, 2 * count)
    products = np.fft.irfft(spectrum * np.conj(spectrum))[:count]
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])
    lags = np.arange(count // 2 + 1)
    # Correlation over the pairs there are: of those that lead and those that follow.
    norm = np.sqrt((squares[count - lags]) * (squares[count] - squares[lags]))
    with np.errstate(divide="ignore", invalid="ignore"):
        likeness = np.where(norm > 0, products[: len(lags)] / norm, 0.0)
    inner = likeness[1:-1]
    peaks = np.flatnonzero((inner >= likeness[:-2]) & (inner > likeness[2:])) + 1
    peaks = peaks[(peaks >= _LEAST_SEASON) & (likeness[peaks] >= _LEAST_LIKENESS)]
    if not len(peaks):
        return None
    # Twice a season is as alike as one: the shortest of those that are about as good.
    return int(peaks[(likeness[peaks] >= likeness[peaks].max() - _AS_ALIKE).argmax()])
