"""Tiles of the earth's surface: the grid function of the traffic query.

Balkesen et al. 2013, s. 1.1.
"""

import numpy as np

from penstock.model.observation import Floats, Ints

_RADIUS_M = 6_378_137.0  # WGS 84
_FLATTENING = 1 / 298.257223563
_SCALE = 0.9996
_EAST_M = 500_000.0
_TILES = 10_000_000  # tiles of a metre from the equator to a pole


def grid_areas(longitude: Floats, latitude: Floats, precision_m: float) -> Ints:
    """The tile of each position, `precision_m` wide and high, in its zone of six degrees.

    Positions are projected by the transverse Mercator series (Krueger, to the third order), as the
    UTM does, so tiles have the same size everywhere.

    >>> grid_areas(np.array([-122.42, -122.42]), np.array([37.77, 37.7701]), 100.0).tolist()
    [100055100041804, 100055100041804]
    """
    zone = np.floor((longitude + 180.0) / 6.0).astype(np.int64) + 1
    east, north = _projected(np.radians(longitude - (6.0 * zone - 183.0)), np.radians(latitude))
    column = np.floor(east / precision_m).astype(np.int64)
    row = np.floor(north / precision_m).astype(np.int64)
    return (zone * _TILES // 10 + column) * _TILES + row


def _projected(angle: Floats, latitude: Floats) -> tuple[Floats, Floats]:
    n = _FLATTENING / (2 - _FLATTENING)
    radius = _RADIUS_M / (1 + n) * (1 + n**2 / 4 + n**4 / 64)
    terms = (
        n / 2 - 2 * n**2 / 3 + 5 * n**3 / 16,
        13 * n**2 / 48 - 3 * n**3 / 5,
        61 * n**3 / 240,
    )
    squeeze = 2 * np.sqrt(n) / (1 + n)
    sine = np.sin(latitude)
    conformal = np.sinh(np.arctanh(sine) - squeeze * np.arctanh(squeeze * sine))
    xi = np.arctan2(conformal, np.cos(angle))
    eta = np.arctanh(np.sin(angle) / np.sqrt(1 + conformal**2))
    east, north = eta.copy(), xi.copy()
    for order, term in enumerate(terms, start=1):
        east += term * np.cos(2 * order * xi) * np.sinh(2 * order * eta)
        north += term * np.sin(2 * order * xi) * np.cosh(2 * order * eta)
    return _EAST_M + _SCALE * radius * east, _SCALE * radius * north
