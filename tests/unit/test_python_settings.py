"""Options given in Python: the same sources, precedence and refusals as on the command line."""

from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.config import Settings
from penstock.config.settings import OPTION_OF
from penstock.errors import InvalidInput, Unavailable, notes_of
from penstock.spark import handles
from penstock.spark.run import attached, before_start, elastic


class Recorded:
    """Stands in for a run and keeps what it was given."""

    def __init__(self, _target: object, *given: Any) -> None:
        self.settings = next(one for one in given if isinstance(one, Settings))
        self.place = next((one for one in given if isinstance(one, elastic.Place)), None)
        LAST.append(self)

    def __enter__(self) -> "Recorded":
        return self

    def __exit__(self, *_: object) -> None: ...

    def wait(self, limit_s: float | None) -> None: ...

    def finish(self) -> None: ...


LAST: list[Recorded] = []


@pytest.fixture(autouse=True)
def _no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(elastic, "ElasticRun", Recorded)
    monkeypatch.setattr(attached, "Attached", Recorded)


def run(**options: Any) -> Recorded:
    penstock.Topology("road", max_latency="5s").run(**options)
    return LAST[-1]


def start(**options: Any) -> Recorded:
    penstock.Topology("road", max_latency="5s").start(**options)
    return LAST[-1]


def attach(**options: Any) -> Recorded:
    penstock.attach(object(), max_latency="5s", **options)
    return LAST[-1]


DOORS = pytest.mark.parametrize("door", [run, start, attach])


@DOORS
def test_keywords_beat_the_environment_which_beats_the_file(
    door: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("penstock.toml").write_text(
        '[penstock]\npolicy = "static"\nperiod = "7s"\nwindow = 9\n', encoding="utf-8"
    )
    assert door().settings.policy == "static"
    monkeypatch.setenv("PENSTOCK_POLICY", "ds2")
    monkeypatch.setenv("PENSTOCK_PERIOD", "3s")
    found = door(period_s="250ms").settings
    assert (found.policy, found.period_s, found.window) == ("ds2", 0.25, 9)


@DOORS
def test_another_file_can_be_named(door: Any) -> None:
    Path("other.toml").write_text("[penstock]\nwindow = 8", encoding="utf-8")
    assert door(config="other.toml").settings.window == 8


@DOORS
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"period_s": -1}, "period_s is -1; allowed: 0.1 s to 3600 s."),
        ({"shed_at_most": 5}, "shed_at_most is 5; allowed: 0.01 to 0.95, or off."),
        ({"executors_max_": 8}, "option 'executors_max_' is unknown; known: period_s, policy, "),
        ({"step_out": "many"}, "step_out is 'many'; give a whole number, 1 to 10000, or off."),
        ({"policy": "clever"}, "policy is 'clever'; allowed: admission-led, "),
        ({"allocation": "none"}, "allocation is 'none'; write off to turn it off."),
        ({"policy_options": 3}, "policy_options is 3; give a mapping"),
        (
            {"policy": "ds2", "policy_options": {"model": "mmk"}},
            "policy_options['model'] is not an option of ds2; known: target_utilisation, ",
        ),
        (
            {"policy": "incremental", "policy_options": {"min_ratio": 0.9, "max_ratio": 0.5}},
            "thresholds are min 0.9 and max 0.5",
        ),
    ],
)
def test_a_bad_keyword_is_refused_by_its_own_name(
    door: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        door(**options)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_text_is_read_as_the_option_has_it() -> None:
    assert run(executors_max="8").settings.executors_max == 8


def test_the_options_of_a_policy_reach_it() -> None:
    found = run(policy="drs", policy_options={"model": "mmk", "reallocate_after_s": "1 minute"})
    assert found.settings.policy_options == {"model": "mmk", "reallocate_after_s": 60.0}


@DOORS
@pytest.mark.parametrize("off", [None, "off"])
def test_none_and_off_turn_an_option_off(door: Any, off: object) -> None:
    found = door(cooldown_in_s=off, allocation=off, catch_up_s=off).settings
    assert (found.cooldown_in_s, found.allocation, found.catch_up_s) == (None, None, None)


def test_what_cannot_be_turned_off_says_so() -> None:
    with pytest.raises(InvalidInput, match=r"period_s is None; write a duration"):
        run(period_s=None)


def test_a_run_that_is_started_takes_all_that_a_run_takes() -> None:
    given: dict[str, Any] = {
        "master": "local[3]", "checkpoint": "state", "once": True, "apart": True,
        "processors": {"one": 2}, "plan": "none", "apply": True,
    }  # fmt: skip
    assert start(**given).place == run(**given).place


@pytest.mark.parametrize(
    ("option", "value", "instead"),
    [
        ("slots", 2, "penstock.session_settings(slots=...)"),
        ("executor_memory_mb", 2048, "spark.executor.memory"),
        ("key_groups", 8, "`penstock key-groups`"),
        ("batch_interval_s", 3, ".trigger(processingTime=...)"),
        ("channel_rows", 5, "a Topology run apart"),
        ("fusion_beta", 3, "needs a Topology"),
        ("fusion_capacity", 3, "needs a Topology"),
        ("fusion_tolerance", 3, "needs a Topology"),
    ],
)
def test_attach_refuses_what_the_query_has_answered(
    option: str, value: object, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        attach(**{option: value})
    assert str(refusal.value).startswith(f"attach({option}) cannot be given")
    assert instead in str(refusal.value)
    assert "See penstock docs attach." in notes_of(refusal.value)
    variable = OPTION_OF[option].variable
    monkeypatch.setenv(variable, str(int(value) + 1000))  # type: ignore[call-overload]
    assert getattr(attach().settings, option) == getattr(Settings(), option)


class Triggered:
    """A query with a trigger, which is all that is asked of it here."""

    name, id = "orders", "1"

    def __init__(self, interval_s: float | None) -> None:
        self.interval_s = interval_s


def test_policies_of_attached_queries_plan_with_the_trigger_that_they_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interval_s(query: Triggered) -> float:
        if query.interval_s is None:
            raise Unavailable("Spark does not say it.")
        return query.interval_s

    monkeypatch.setattr(handles, "trigger_interval_s", interval_s)
    found = [
        before_start.trigger_of_queries([Triggered(one) for one in intervals])  # type: ignore[misc]
        for intervals in ([10.0], [10.0, 2.0], [10.0, None], [])
    ]
    assert found == [10.0, 2.0, 0.0, 0.0]


def test_attach_has_defaults_of_its_own_below_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (attach().settings.policy, attach().settings.allocation) == ("promise", "milp")
    monkeypatch.setenv("PENSTOCK_ALLOCATION", "off")
    monkeypatch.setenv("PENSTOCK_EXECUTORS_MAX", "9")
    found = attach().settings
    assert (found.policy, found.allocation, found.executors_max) == ("promise", None, 9)
    assert attach(executors=(2, 3)).settings.executors_max == 3
