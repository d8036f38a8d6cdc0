"""What is shown of latencies is the quantile that was promised, wherever it was measured."""

import io
import math
from dataclasses import replace

import pytest

from contract.fakes import observation
from penstock.cli.history import observation_line
from penstock.cli.live import LiveView
from penstock.cli.report import draw
from penstock.control.notebook import course_html
from penstock.control.step import Step
from penstock.control.summary import RunTally
from penstock.model.observation import LatencyObservation, Observation

LATENCY = LatencyObservation(100, 1.0, 1.5, 4.0, 0.98, share_s=3.25)
SEEN = observation(1e9, latency=LATENCY)
BEFORE = observation(1e9, latency=replace(LATENCY, share_s=math.nan))  # read from an old history


@pytest.mark.parametrize(
    ("seen", "share", "words"),
    [
        (SEEN, 0.999, "latency mean 1 s, 99.9% within 3.25 s, 2.0% late"),
        (BEFORE, None, "latency mean 1 s, 95% within 1.5 s, 2.0% late"),
        (BEFORE, 0.99, "95% within 1.5 s"),
    ],
)
def test_a_line_of_the_history(seen: Observation, share: float | None, words: str) -> None:
    assert words in observation_line(seen, share)


@pytest.mark.parametrize(
    ("share", "words"), [(0.9, "(90%: 3.2 s) of 2 s"), (None, "(95%: 1.5 s) of 2 s")]
)
def test_the_live_view(share: float | None, words: str) -> None:
    out = io.StringIO()
    LiveView("road", 2.0, None, out, joined=True, share=share).step(Step(1e9, SEEN))
    assert words in out.getvalue()


def test_a_notebook_and_a_report() -> None:
    steps = [Step(1e9, SEEN), Step(1e9 + 5, replace(SEEN, at_s=1e9 + 5, latency=None))]
    summary = RunTally().summary(2.0, 1, 4, share=0.99)
    assert "latency, 99%: 3.25 s of 2.00 s" in course_html("road", steps, summary)
    figure = draw([SEEN, steps[1].observation or SEEN], steps, summary)
    lines = {line.get_label(): line.get_ydata().tolist() for line in figure.axes[1].lines[:2]}
    assert lines == {"mean": [1.0], "99%": [3.25]}
    old = [Step(1e9, BEFORE)]
    assert "latency, 95%: 1.50 s" in course_html("road", old, summary)
