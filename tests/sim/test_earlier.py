"""A scenario may have what an earlier run saw; policies that go by the time of the week know it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.config import Settings
from penstock.errors import InvalidInput
from penstock.forecast.calendar import RateCalendar
from penstock.sim.arena import run_policy
from penstock.sim.earlier import calendar_of
from penstock.sim.run import settings_in
from penstock.sim.scenario import Scenario
from penstock.sim.scenario_file import scenario_of

DAY = [5, 5, 5, 5, 40, 40, 5, 5]  # a point every 15 s, so a day lasts two minutes
FILE = {"profile": "csv", "file": "now.csv", "step_s": "15s", "peak_processors": 8}


def written(folder: Path, name: str, values: list[int]) -> None:
    lines = ["time,value", *(f"{n},{value}" for n, value in enumerate(values))]
    (folder / name).write_text("\n".join(lines) + "\n")


def document(folder: Path) -> dict[str, object]:
    written(folder, "now.csv", DAY * 3)
    written(folder, "before.csv", DAY * 7)
    return {
        "scenario": {"name": "known", "max_latency": "5s", "day": "2m"},
        "cluster": {"max_executors": 12, "startup": "15s"},
        "source": [{"name": "rows", "rate": FILE, "earlier": "before.csv"}],
        "operator": [{"name": "work", "from": ["rows"], "service": {"mean": "10ms"}}],
    }


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return scenario_of(document(tmp_path), tmp_path)


def test_the_calendar_is_on_the_scale_of_the_load_and_of_its_days(scenario: Scenario) -> None:
    calendar = calendar_of(scenario)
    assert calendar is not None
    moments_s = np.arange(2.0, 360.0, 15.0)
    assert calendar.usual_per_s(moments_s) == pytest.approx(
        scenario.sources[0].profile.rate_per_s(moments_s)
    )
    assert scenario.sources[0].profile.peak_rate_per_s == pytest.approx(800)


def test_the_rush_is_met_that_earlier_days_had(scenario: Scenario) -> None:
    known = run_policy(scenario, Settings(policy="promise"))
    (source,) = scenario.sources
    new = run_policy(
        replace(scenario, sources=(replace(source, earlier=None),)), Settings(policy="promise")
    )
    assert known.in_time_share > new.in_time_share + 0.02


def test_what_was_learnt_already_is_not_replaced(scenario: Scenario) -> None:
    learnt = RateCalendar((1.0,) * 10080)
    given = Settings(policy="promise", policy_options={"calendar": learnt})
    assert settings_in(scenario, given).policy_options["calendar"] is learnt
    empty = replace(given, policy_options={"calendar": RateCalendar()})
    assert settings_in(scenario, empty).policy_options["calendar"]
    assert "calendar" not in settings_in(scenario, Settings(policy="ds2")).policy_options


def test_what_cannot_be_an_earlier_load_is_refused(tmp_path: Path) -> None:
    asked = document(tmp_path)
    plain = {"name": "rows", "rate": {"profile": "constant", "rate_per_s": 5}, "earlier": "x.csv"}
    with pytest.raises(InvalidInput, match="'rows': earlier is a CSV file, so rate has to be"):
        scenario_of({**asked, "source": [plain]}, tmp_path)
    missing = {"name": "rows", "rate": FILE, "earlier": "none.csv"}
    with pytest.raises(InvalidInput, match=r"'rows': earlier: file .*none\.csv' cannot be read"):
        scenario_of({**asked, "source": [missing]}, tmp_path)
    two = [asked["source"][0], {"name": "more", "rate": FILE}]  # type: ignore[index]
    work = {"name": "work", "from": ["rows", "more"], "service": {"mean": "10ms"}}
    with pytest.raises(InvalidInput, match="some sources have 'earlier' and some have not"):
        scenario_of({**asked, "source": two, "operator": [work]}, tmp_path)
