"""What a notebook shows of a run and of a controller."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

from contract.fakes import observation
from penstock.control.notebook import course_html
from penstock.control.step import Step
from penstock.control.summary import RunSummary, RunTally
from penstock.model.observation import LatencyObservation, NodeObservation, Observation
from penstock.model.topology import Topology
from penstock.spark.run.attached import Attached, AttachedSeveral
from penstock.spark.run.elastic import ElasticRun


def seen(number: int, p95_s: float | None) -> Observation:
    latency = None if p95_s is None else LatencyObservation(100, p95_s / 2, p95_s, p95_s, 1.0)
    nodes = (NodeObservation("1", 2, 1.0),) * number
    return observation(1e9 + 5 * number, latency=latency, nodes=nodes)


def shown(*latencies: float | None, name: str = "attached to orders") -> str:
    tally, steps = RunTally(), []
    for number, p95_s in enumerate(latencies, 1):
        steps.append(Step(1e9 + 5 * number, seen(number, p95_s)))
        tally.take(steps[-1])
    return course_html(name, steps, tally.summary(5.0, 1, 4))


def test_figures_and_the_course_are_shown() -> None:
    html = shown(1.0, None, 2.5, 4.0)
    assert "latency, 95%: 4.00 s of 5.00 s" in html
    assert "executors: 4" in html
    assert "always fewest 20, always most 80" in html
    ElementTree.fromstring(f"<div>{html}</div>")  # whole, so that nothing after it is torn
    points = [len(found.split()) for found in re.findall(r'points="([^"]+)"', html)]
    assert points == [3, 4]  # what was not measured is no point


class Controlled:
    """Stands in for a controller that has seen two periods."""

    steps = (Step(1e9 + 5, seen(1, 2.0)), Step(1e9 + 10, seen(2, 2.0)))

    def summary(self) -> RunSummary:
        tally = RunTally()
        for step in self.steps:
            tally.take(step)
        return tally.summary(5.0, 1, 4)


def test_a_run_is_shown_as_a_controller_is_and_before_it_starts() -> None:
    run = ElasticRun.__new__(ElasticRun)
    run.topology = Topology("road", max_latency="5s")
    assert "run of road</b>: not started; use it as a context manager" in run._repr_html_()
    run._controller = Controlled()  # type: ignore[assignment]
    html = run._repr_html_()
    assert html.startswith("<p><b>run of road</b></p>")
    assert "executors: 2" in html


def test_several_controllers_are_shown_one_below_the_other() -> None:
    def one(name: str) -> Attached:
        made = Attached.__new__(Attached)
        made._among = SimpleNamespace(query=name)  # type: ignore[assignment]
        made._controller = Controlled()  # type: ignore[assignment]
        return made

    several = AttachedSeveral.__new__(AttachedSeveral)
    several._attached = {name: one(name) for name in ("orders", "audit")}
    html = several._repr_html_()
    assert html.index("attached to orders") < html.index("attached to audit")
    assert html.count("<figcaption>executors: 2") == 2


def test_nothing_measured_is_no_chart_and_text_stays_text() -> None:
    html = shown(name="<script>alert(1)</script>")
    assert "<svg" not in html
    assert "<script>" not in html
    assert "in time</th><td>- within 5 s" in html


def test_a_summary_is_shown_by_itself() -> None:
    html = RunTally().summary(5.0, 1, 4)._repr_html_()
    assert html.startswith("<table>")
