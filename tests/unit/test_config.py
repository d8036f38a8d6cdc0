"""Options: their sources and precedence, what is refused, and that their page is current."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from penstock import config
from penstock.allocation.assignment import OBJECTIVES
from penstock.allocation.policies import POLICIES as ALLOCATION_POLICIES
from penstock.cli.options_page import options_page
from penstock.config import ALLOCATIONS, OPTIONS, Settings
from penstock.config.option import ByPolicy
from penstock.config.settings import USUAL_CATCH_UP_S, USUAL_SCALE_DOWN_WINDOW_S
from penstock.config.sources import from_command_line, from_keywords
from penstock.control.resolved_settings import known_options, resolved_settings
from penstock.errors import InvalidInput
from penstock.scaling.policies.registry import names, policy_options


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str, path: Path = config.DEFAULT_FILE) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def read(
    options: dict[str, Any] | None = None,
    *policy_option: str,
    environment: dict[str, str] | None = None,
    **more: Any,
) -> Settings:
    """Settings as the command line has them."""
    explicit = from_command_line(options or {}, policy_option)
    return resolved_settings(explicit, environment=environment or {}, **more)


def test_without_any_source_the_defaults_hold() -> None:
    assert read() == Settings()


def test_the_command_line_beats_the_environment_beats_the_file() -> None:
    written('[penstock]\nperiod = "1s"\nstep-out = 3\nwindow = 7')
    environment = {"PENSTOCK_PERIOD": "2s", "PENSTOCK_STEP_OUT": "4", "UNRELATED": "x"}
    found = read({"period": "250ms"}, environment=environment)
    assert (found.period_s, found.step_out, found.window) == (0.25, 4, 7)


def test_a_named_file_is_read_instead_of_the_default_one() -> None:
    written("[penstock]\nwindow = 7")
    other = written("[penstock]\nwindow = 8\n[other]\nx = 1", Path("other.toml"))
    assert read(file=other).window == 8


def test_defaults_of_a_caller_are_below_every_source() -> None:
    own = {"policy": "drs", "window": 5}
    found = read(environment={"PENSTOCK_POLICY": "ds2"}, defaults=own)
    assert (found.policy, found.window) == ("ds2", 5)


def test_what_a_command_does_not_take_is_not_read_either() -> None:
    written("[penstock]\nwindow = 0\n[penstock.policy-options]\nunknown = 1")
    found = read(environment={"PENSTOCK_PERIOD": "never"}, only=["history"])
    assert found == Settings()


def test_every_default_is_what_its_page_says() -> None:
    for option, field in zip(OPTIONS, fields(Settings), strict=True):
        assert option.description.endswith(".")
        if option.kind == "table" or option.name == "share":  # which is the topology's
            continue
        if field.default is ByPolicy.USUAL:
            usual, _, policies = option.default.removesuffix("; else off").partition(" with ")
            steadied = [Settings(policy=name) for name in policies.split(", ")]
            given = option.read(usual, "default")
            assert {one.usual_or_given(field.default, 9.0) for one in steadied} == {9.0}
            assert given in (USUAL_SCALE_DOWN_WINDOW_S, USUAL_CATCH_UP_S)
            continue
        assert option.read(option.default, "default") == field.default
        assert field.default is not None or option.can_be_off


def test_what_can_be_turned_off_is_none_when_off() -> None:
    able = [option.name for option in OPTIONS if option.can_be_off]
    assert able == [
        "schedule", "batch-interval", "cooldown-out", "cooldown-in", "step-out", "step-in",
        "scale-down-window", "catch-up", "utilisation-low", "utilisation-high", "quota",
        "excluded-times", "shadow", "fusion-beta", "fusion-capacity", "allocation",
        "shed-at-most", "history-age", "history-mb",
    ]  # fmt: skip
    found = read(dict.fromkeys(able, "off"))
    assert {getattr(found, config.settings.FIELD_OF[name]) for name in able} == {None}
    for name in able:
        with pytest.raises(InvalidInput, match=f"--{name} is 'none'; write off to turn it off."):
            read({name: "none"})


def test_names_in_options_are_those_that_there_are() -> None:
    assert set(ALLOCATIONS) == set(ALLOCATION_POLICIES)
    assert Settings().policy in names()
    listed = {option.name: option.choices for option in known_options() if option.choices}
    assert listed == {
        "policy": names(),
        "shadow": names(),
        "allocation": ALLOCATIONS,
        "allocation-objective": OBJECTIVES,
    }


@pytest.mark.parametrize(
    ("name", "raw", "words"),
    [
        ("period", "soon", "write a duration"),
        ("period", "0", "0.1 s to 3600 s"),
        ("period", "2h", "0.1 s to 3600 s"),
        ("period", "off", "write a duration"),
        ("period", True, "write a duration"),
        ("window", "3.5", "a whole number"),
        ("window", "nan", "a whole number"),
        ("window", "inf", "a whole number"),
        ("window", [1], "a whole number"),
        ("window", 0, "1 to 100000"),
        ("window", "9" * 5000, "1 to 100000|a whole number"),
        ("executors-min", True, "a whole number"),
        ("aim", "much", "a number"),
        ("aim", -0.1, "0.05 to 1"),
        ("aim", "inf", "0.05 to 1"),
        ("share", 1, "0.5 to 0.9999"),
        ("schedule", "mon min", "write rules such as"),
        ("quota", 0, "1 to 1000000000000, or off"),
        ("dry-run", "perhaps", "true or false"),
        ("policy", " ", "allowed: admission-led, "),
        ("policy", "clever", "allowed: admission-led, "),
        ("allocation", "best", "allowed: milp, albic, flux, cola, potc, resource-aware, or off"),
        ("shadow", "drs,nonsense", "names 'nonsense'; allowed: any of admission-led, "),
        ("shadow", "drs,", "names ''; allowed: any of admission-led, "),
        ("shadow", "drs,drs", "name each one once"),
        ("excluded-times", "noon", "write spans such as"),
        ("history", 3, "not empty"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_what_is_allowed(
    name: str, raw: Any, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        read({name: raw})
    assert str(refusal.value).startswith(f"--{name} ")


def test_the_environment_and_the_file_name_themselves_in_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"^PENSTOCK_WINDOW is 'x'"):
        read(environment={"PENSTOCK_WINDOW": "x"})
    written("[penstock]\nwindow = 'x'")
    with pytest.raises(InvalidInput, match=r"^window in penstock.toml is 'x'"):
        read()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[penstock]\nperiods = 1", "unknown option 'periods'; known: period, "),
        ("penstock = 1", "must be a table"),
        ("[penstock]\npolicy-options = 1", "policy-options must be a table"),
        ("[penstock", "is not TOML"),
        (f"[penstock]\nperiod = 1{5000 * '0'}", "holds a number that is too long"),
        (f"[penstock]\nperiod = 1{400 * '0'}", "period .* is 10+\\.\\.\\."),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(text: str, words: str) -> None:
    written(text)
    with pytest.raises(InvalidInput, match=words) as refusal:
        read()
    assert "\n" not in str(refusal.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(file=tmp_path / "absent.toml")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(file=tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read(file=tmp_path / "binary")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"executors-min": 5},
            "--executors-min is 5; it must be at most executors-max, which is 4.",
        ),
        (
            {"utilisation-low": 0.9, "utilisation-high": 0.5},
            "--utilisation-low is 0.9; it must be below --utilisation-high, which is 0.5.",
        ),
        (
            {"utilisation-high": 0.5},
            "utilisation-low is off but --utilisation-high is not; give both ends of the band or "
            "none.",
        ),
        (
            {"shadow": "drs,promise"},
            "--shadow is 'drs,promise'; promise is the policy that acts already.",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(options)
    assert str(refusal.value) == sentence


def test_options_of_a_policy_can_be_given_everywhere_and_are_merged_by_name() -> None:
    written(
        '[penstock]\npolicy = "ds2"\n[penstock.policy-options]\n'
        'catch_up_s = "1 minute"\nrestart_s = "off"\ntarget_utilisation = 0.5'
    )
    environment = {"PENSTOCK_POLICY_OPTIONS": "target_utilisation=0.6, utilisation_band=0.2"}
    found = read({}, "target_utilisation=0.8", environment=environment).policy_options
    assert found == {
        "catch_up_s": 60.0, "restart_s": 0.0, "target_utilisation": 0.8, "utilisation_band": 0.2,
    }  # fmt: skip


def test_options_of_a_policy_do_not_outlive_it() -> None:
    written('[penstock]\npolicy = "ds2"\n[penstock.policy-options]\ncatch_up_s = 60')
    found = read({"policy": "drs"}, "model=mmk")
    assert (found.policy, found.policy_options) == ("drs", {"model": "mmk"})


def test_shadows_take_the_options_that_they_have() -> None:
    found = read({"shadow": "drs"}, "model=mmk", "keep=0.8")
    assert found.policy_options == {"model": "mmk", "keep": 0.8}
    with pytest.raises(InvalidInput, match="not an option of any of promise, drs; known: "):
        read({"shadow": "drs"}, "catch_up_s=9")


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ("model", "--policy-option is 'model'; write NAME=VALUE, such as window_s=30."),
        (
            "modle=mmk",
            "--policy-option modle is not an option of drs; known: model, objective, ",
        ),
        (
            "model=exact",
            "--policy-option model is 'exact'; allowed: auto, mmk, gigk, microbatch, hops.",
        ),
        ("smoothing_window=0", "--policy-option smoothing_window is '0'; allowed: 1 to 1000."),
        (
            "reallocate_after_s=soon",
            "--policy-option reallocate_after_s is 'soon'; write a duration",
        ),
        ("predictive=maybe", "--policy-option predictive is 'maybe'; allowed: true or false."),
    ],
)
def test_a_bad_option_of_a_policy_is_refused(pair: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read({"policy": "drs"}, pair)
    assert str(refusal.value).startswith(sentence)


def test_every_source_names_itself_when_an_option_of_a_policy_is_wrong() -> None:
    with pytest.raises(InvalidInput, match=r"^x in PENSTOCK_POLICY_OPTIONS is not an option"):
        read(environment={"PENSTOCK_POLICY_OPTIONS": "x=1"})
    with pytest.raises(InvalidInput, match=r"^policy_options\['x'\] is not an option"):
        resolved_settings(from_keywords({"policy_options": {"x": 1}}), environment={})
    written("[penstock.policy-options]\nx = 1")
    with pytest.raises(InvalidInput, match=r"^x in \[penstock.policy-options\] of penstock.toml"):
        read()


@pytest.mark.parametrize("name", names())
def test_every_option_of_a_policy_says_what_it_is(name: str) -> None:
    for option in policy_options(name).values():
        assert option.description.endswith(".")
        assert option.allowed != "any number"


def test_the_page_of_options_is_complete_and_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "options.md"
    made = options_page()
    assert page.read_text(encoding="utf-8") == made, "docs/options.md is old: make docs"
    assert all(f"| `{option.variable}` |" in made for option in OPTIONS)
    assert all(f"### {name}\n" in made for name in names())
