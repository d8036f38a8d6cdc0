"""Benchmarks run by hand, now and then: what they import must be there all the same."""

import importlib
import pkgutil

import pytest

import benchmarks

NAMES = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
BY_NAME = [name for name in NAMES if name[0] != "_"]  # the others are programs and their parts


@pytest.mark.parametrize("name", BY_NAME)
def test_every_benchmark_can_be_imported(name: str) -> None:
    importlib.import_module(f"benchmarks.{name}")
