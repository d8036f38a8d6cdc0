"""Options: their sources and precedence, what is refused, and that their page is current."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from penstock import config
from penstock.config import OPTIONS, Settings, options_page, read_settings
from penstock.errors import InvalidInput
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.registry import POLICIES


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str, path: Path = config.DEFAULT_FILE) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_without_any_source_the_defaults_hold() -> None:
    assert read_settings(environment={}) == Settings()


def test_the_command_line_beats_the_environment_beats_the_file() -> None:
    written('[penstock]\nperiod = "1s"\nstep-out = 3\nwindow = 7')
    environment = {"PENSTOCK_PERIOD": "2s", "PENSTOCK_STEP_OUT": "4", "UNRELATED": "x"}
    found = read_settings(None, environment, {"period": "250ms", "window": None})
    assert (found.period_s, found.step_out, found.window) == (0.25, 4, 7)


def test_a_named_file_is_read_instead_of_the_default_one() -> None:
    written("[penstock]\nwindow = 7")
    other = written("[penstock]\nwindow = 8\n[other]\nx = 1", Path("other.toml"))
    assert read_settings(other, {}).window == 8


def test_every_default_is_what_its_page_says() -> None:
    for option, field in zip(OPTIONS, fields(Settings), strict=True):
        assert option.read(option.default, "default") == field.default
        assert isinstance(field.default, {"integer": int, "switch": bool, "text": str}.get(
            option.kind, float))  # fmt: skip
        assert option.description.endswith(".")


def test_defaults_agree_with_the_policies() -> None:
    assert Settings().policy in POLICIES
    assert Incremental() == Incremental(Settings().threshold_min, Settings().threshold_max)


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        ("period", "soon", "write a duration"),
        ("period", "0", "above zero"),
        ("period", "2h", "0.1 s to 3600 s"),
        ("period", True, "write a duration"),
        ("window", "3.5", "a whole number"),
        ("window", "nan", "a whole number"),
        ("window", "inf", "a whole number"),
        ("window", [1], "a whole number"),
        ("window", 0, "1 to 100000"),
        ("window", "9" * 5000, "1 to 100000|a whole number"),
        ("executors-min", True, "a whole number"),
        ("threshold-max", "much", "a number"),
        ("threshold-max", -0.1, "0 to 10"),
        ("threshold-max", "inf", "0 to 10"),
        ("dry-run", "perhaps", "true or false"),
        ("policy", " ", "not empty"),
        ("history", 3, "not empty"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_its_place_and_what_is_allowed(
    name: str, raw: Any, told: str
) -> None:
    with pytest.raises(InvalidInput, match=told) as refusal:
        read_settings(environment={}, command_line={name: raw})
    assert str(refusal.value).startswith(f"{name} (--{name})")


def test_the_environment_and_the_file_name_themselves_in_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"window \(PENSTOCK_WINDOW\) is 'x'"):
        read_settings(environment={"PENSTOCK_WINDOW": "x"})
    written("[penstock]\nwindow = 'x'")
    with pytest.raises(InvalidInput, match=r"window \(penstock.toml\) is 'x'"):
        read_settings(environment={})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[penstock]\nperiods = 1", "unknown option 'periods'; known: period, "),
        ("penstock = 1", "must be a table"),
        ("[penstock", "is not TOML"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(text: str, told: str) -> None:
    written(text)
    with pytest.raises(InvalidInput, match=told) as refusal:
        read_settings(environment={})
    assert "\n" not in str(refusal.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_settings(tmp_path / "absent.toml", {})
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_settings(tmp_path, {})
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_settings(tmp_path / "binary", {})


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidInput, match="executors-min is 5; it must be at most executors-max"):
        read_settings(environment={}, command_line={"executors-min": 5})
    with pytest.raises(InvalidInput, match=r"threshold-min is 0\.9"):
        read_settings(environment={}, command_line={"threshold-min": 0.9})


def test_the_page_of_options_is_complete_and_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "options.md"
    assert page.read_text(encoding="utf-8") == options_page(), (
        "docs/options.md is old: python -m penstock.config > docs/options.md"
    )
    assert all(f"| `{option.name}` | `{option.variable}` |" in options_page() for option in OPTIONS)
