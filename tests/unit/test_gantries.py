"""The streams of the demo: what they add up to, and what is known of them beforehand."""

import tomllib

import numpy as np

from penstock.workloads.gantries import Gantries, RushHour

GANTRIES = Gantries(100.0, RushHour(10, 20, 30, 40, 50))


def test_the_gantries_together_are_the_load() -> None:
    moments = np.linspace(0, 50, 101)
    together = sum(g.rate.rate_per_s(moments) for g in GANTRIES.all.values())
    np.testing.assert_allclose(together, GANTRIES.load.rate_per_s(moments))
    assert abs(GANTRIES.rows - GANTRIES.load.rows) <= len(GANTRIES.all)
    assert GANTRIES.load.peak_rate_per_s == 400.0


def test_gantries_of_the_rush_hour_are_known_before_their_first_report() -> None:
    for name, opened_s in GANTRIES.openings().items():
        first_s = float(GANTRIES.for_rush[name].rate.arrival_s(0))
        assert opened_s < first_s


def test_the_declared_file_names_those_that_always_stand() -> None:
    declared = tomllib.loads(GANTRIES.declaration())["streams"]
    assert set(declared) == set(GANTRIES.always)
    assert all(meta == GANTRIES.known(name) for name, meta in declared.items())


def test_no_two_gantries_report_the_same() -> None:
    seeds = [generator.seed for generator in GANTRIES.all.values()]
    assert len(set(seeds)) == len(seeds)
