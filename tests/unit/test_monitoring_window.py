"""AUTOSCALE must see whole windows of the operators it measures."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import penstock
from penstock.errors import InvalidInput
from penstock.scaling.policies.registry import names, policy, policy_class
from penstock.spark.handles.analysed_plan import longest_window_s
from penstock.spark.run.before_start import check_monitoring_window

WINDOWS = {"minute": 60.0, "five": 300.0}


@pytest.mark.parametrize("name", ["autoscale", "autoscale_plus"])
def test_a_window_not_longer_than_that_of_an_operator_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"operator 'five' computes over windows of 300 s"):
        check_monitoring_window(policy(name, window_s=300.0), WINDOWS)
    check_monitoring_window(policy(name, window_s=301.0), WINDOWS)
    check_monitoring_window(policy(name, window_s=1.0), {})


def test_any_policy_may_say_that_it_needs_whole_windows() -> None:
    """A policy that is not ours, say; nothing but the trait tells."""
    needs = SimpleNamespace(name="mine", monitored_s=60.0)
    with pytest.raises(InvalidInput, match=r"policy mine: window_s is 60, but query 'q' computes"):
        check_monitoring_window(needs, {"q": 60.0}, "query")  # type: ignore[arg-type]


def test_nothing_outside_of_scaling_knows_policies_by_their_class() -> None:
    package = Path(penstock.__file__).parent
    classes = "|".join(policy_class(name).__name__ for name in names())
    known = re.compile(rf"isinstance\([^)]*\b({classes})\b")
    found = [
        str(file)
        for file in package.rglob("*.py")
        if package / "scaling" not in file.parents and known.search(file.read_text())
    ]
    assert found == []


@pytest.mark.parametrize("name", ["drs", "promise", "rlearn"])
def test_policies_without_a_monitoring_window_take_any(name: str) -> None:
    check_monitoring_window(policy(name), WINDOWS)


def test_the_longest_of_several_windows_counts() -> None:
    ends = [f"precisetimestampconversion((t + {n}), LongType, TimestampNTZType)" for n in (5, 7e6)]
    assert longest_window_s(", ".join(ends).replace("7000000.0", "7000000")) == 7.0
    assert longest_window_s("a + 90000000") == 0.0
