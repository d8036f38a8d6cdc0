"""Scenario files: the example works, and what is wrong is said in one sentence."""

import copy
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.scaling.policies.registry import policy
from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.sim.scenario import Scenario
from penstock.sim.scenario_file import load_scenario, scenario_of

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "scenarios" / "toll_road.toml"
VALID = tomllib.loads(EXAMPLE.read_text())


def test_the_example_scales_out_and_in_and_beats_the_static_minimum():
    scenario = load_scenario(EXAMPLE)
    fixed, moved = simulate(scenario, Static()), simulate(scenario, policy("incremental"))
    assert max(moved.executors) == 4
    assert moved.executors[-1] == 1
    assert moved.in_time_share > fixed.in_time_share
    least, most = moved.static_executor_seconds
    assert least < moved.executor_seconds < most
    assert not [failure for step in moved.steps for failure in step.failures]


def test_linear_road_is_served_by_more_executors_at_its_peak():
    scenario = load_scenario(ROOT / "examples" / "scenarios" / "linear_road.toml")
    assert max(simulate(scenario, policy("incremental")).executors) > 1


def test_the_documented_example_loads():
    text = (ROOT / "docs" / "simulator.md").read_text()
    documented = [part.split("```")[0] for part in text.split("```toml\n")[1:]]
    assert documented
    for block in documented:
        scenario_of(tomllib.loads(block))


def changed(path, value):
    document = copy.deepcopy(VALID)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (["scenario", "duration"], "soon", "scenario.duration"),
        (["scenario", "duration"], float("inf"), "scenario.duration"),
        (["scenario", "step"], "1us", "scenario.step"),
        (["scenario", "step"], "1m", "step_s"),
        (["scenario", "sharing"], "both", "time, space"),
        (["scenario", "speed"], 3, "speed"),
        (["scenario", "seed"], -1, "seed"),
        (["cluster", "executors"], 9, "cluster.executors"),
        (["cluster", "min_executors"], 5, "min_executors"),
        (["cluster", "startup"], -1, "cluster.startup"),
        (["batch", "fixed"], "0s", None),  # per_processor is left
        (["batch", "table"], [[1, "1s"]], "table"),
        (["source", 0, "rate"], {"profile": "wave"}, "source 'reports': rate"),
        (["source", 0, "rate"], {"profile": "constant", "rate_per_s": 1e300}, "'reports': rate"),
        (["operator", 0, "selectivity"], 1e300, "'parse': selectivity"),
        (["source", 0, "arrivals"], "late", "arrivals"),
        (["source"], [], "source"),
        (["operator", 0, "from"], ["nowhere"], "nowhere"),
        (["operator", 0, "from"], [{"name": "reports", "share": 1.5}], "share"),
        (["operator", 0, "from"], ["tolls"], "reports"),
        (["operator", 1, "from"], ["parse", "tolls"], "loop"),
        (["operator", 0, "name"], "tolls", "more than once"),
        (["operator", 0, "service"], {"mean": "0s"}, "service.mean"),
        (["operator", 0, "service"], {"kind": "uniform", "mean": 1, "scv": 2}, "service.scv"),
        (["operator", 0, "service"], {"kind": "exponential", "mean": 1, "scv": 2}, "gamma"),
        (["operator", 0, "selectivity"], -0.5, "selectivity"),
        (["operator", 0, "selectivity"], float("nan"), "selectivity"),
        (["operator", 0, "processors"], 0, "processors"),
    ],
)
def test_what_is_wrong_is_named(path, value, word):
    if word is None:
        assert scenario_of(changed(path, value)).batch.fixed_s == 0
        return
    with pytest.raises(InvalidInput) as refusal:
        scenario_of(changed(path, value))
    assert word in str(refusal.value)
    assert str(refusal.value).endswith(".")


def test_a_loop_that_makes_rows_for_ever_is_refused():
    document = copy.deepcopy(VALID)
    del document["batch"]
    document["scenario"]["sharing"] = "space"
    document["cluster"] = {"slots": 6}
    for operator in document["operator"]:
        operator.pop("component", None)
    document["operator"][0]["from"] = ["reports", "account"]
    with pytest.raises(InvalidInput, match="pile up"):
        scenario_of(document)
    document["operator"][0]["from"] = ["reports", {"name": "account", "share": 0.2}]
    assert scenario_of(document).sharing == "space"


@pytest.mark.parametrize("text", ["= 1", "[scenario]\n", "x = [", "\x00", f"x = 1{5000 * '0'}"])
def test_a_file_that_is_no_scenario_is_refused(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"bad\.toml"):
        load_scenario(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_scenario(tmp_path / "missing.toml")


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**20), st.floats(), st.text(max_size=4),
    st.lists(st.integers(-1, 3), max_size=3), st.dictionaries(st.text(max_size=3), st.integers()),
    st.sampled_from([10**400, "5s", "time", "space", "reports", "tolls", "steps", "gamma"]),
)  # fmt: skip


def places(value, path=()):
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))
        else:
            yield (*path, key)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(places(VALID))), JUNK)
def test_any_change_gives_a_scenario_or_a_sentence(path, junk):
    sentence = ""
    try:
        made = isinstance(scenario_of(changed(list(path), junk)), Scenario)
    except InvalidInput as refusal:
        made, sentence = False, str(refusal)
    assert made or sentence.endswith(".")


def with_csv(folder, fields, text="time,value\n0,3\n10,6\n", **head):
    (folder / "load.csv").write_text(text)
    document = copy.deepcopy(VALID)
    document["source"][0]["rate"] = {"profile": "csv", "file": "load.csv", **fields}
    document["scenario"] |= head
    return document


def test_a_load_from_a_file_says_how_long_it_is_and_has_its_peak_in_processors(tmp_path):
    document = with_csv(tmp_path, {"peak_processors": 2, "step_s": "20s"})
    del document["scenario"]["duration"]
    scenario = scenario_of(document, tmp_path)
    assert scenario.duration_s == 40.0
    work_s = 0.2e-3 + 9e-3 + 0.3e-3 + 0.5 * 0.1e-3 + 0.2e-3 + (0.5 + 0.02) * 0.2e-3
    assert scenario.sources[0].profile.peak_rate_per_s == pytest.approx(2 / work_s)
    assert scenario_of(with_csv(tmp_path, {}), tmp_path).duration_s == 360.0


@pytest.mark.parametrize(
    ("fields", "head", "word"),
    [
        ({"peak_processors": 0}, {}, "peak_processors is 0"),
        ({"peak_processors": 2, "peak_per_s": 3}, {}, "give one of them"),
        ({"speed": 2}, {}, "no field 'speed'"),
        ({"file": 3}, {}, "file is 3"),
        ({"file": "nowhere.csv"}, {}, "nowhere.csv"),
        ({}, {"share": 1}, "share is 1"),
        ({}, {"share": 0}, "share is 0"),
    ],
)
def test_a_wrong_load_from_a_file_is_named(tmp_path, fields, head, word):
    with pytest.raises(InvalidInput) as refusal:
        scenario_of(with_csv(tmp_path, fields, **head), tmp_path)
    assert word in str(refusal.value)


def test_only_a_load_from_a_file_has_an_end_of_its_own():
    document = copy.deepcopy(VALID)
    del document["scenario"]["duration"]
    with pytest.raises(InvalidInput, match="duration"):
        scenario_of(document)


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "arena").glob("*/*.toml")))
def test_the_shipped_loads_have_the_regime_that_the_arena_states(path):
    scenario = load_scenario(path)
    assert scenario.name == path.stem
    assert scenario.duration_s == 4 * 3600
    assert scenario.sources[0].profile.peak_rate_per_s == pytest.approx(2400)
