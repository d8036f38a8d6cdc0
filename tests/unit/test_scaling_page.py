"""docs/scaling.md names every policy, every option of it, and the defaults that hold."""

import json
import re
from pathlib import Path

import pytest

from penstock.api import ATTACH_DEFAULTS
from penstock.config import OPTIONS, Settings
from penstock.documents import check_document
from penstock.scaling.advice import SCHEMA, advise
from penstock.scaling.documents.forms import FORMS
from penstock.scaling.policies.registry import names, policy_options

PAGE = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE))


def test_every_policy_has_its_part() -> None:
    assert set(SECTIONS) == set(names())
    assert all(f"\n| `{name}` | " in PAGE for name in names())


@pytest.mark.parametrize("name", names())
def test_every_option_of_a_policy_is_explained_with_it(name: str) -> None:
    assert [one for one in policy_options(name) if f"`{one}`" not in SECTIONS[name]] == []


def test_the_defaults_are_those_of_the_code() -> None:
    assert f"| `penstock run`, `Topology.run` and `start` | `{Settings().policy}` |" in PAGE
    assert f"| `penstock simulate` | `{Settings().policy}` |" in PAGE
    attached = ATTACH_DEFAULTS.get("policy", Settings().policy)
    assert f"| `penstock.attach` | `{attached}` |" in PAGE


def test_the_document_of_the_page_is_answered_as_it_says() -> None:
    (document,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (said,) = re.findall(r'answers `"processors": (\d+)`', PAGE)
    given = json.loads(document)
    check_document(given, SCHEMA)
    found = advise(given)
    assert found["processors"] == int(said) > given["processors"]
    assert all(f"`{name}`" in PAGE for name in FORMS)
    del given["share"], given["slots"], given["start_up_s"], given["batch_overhead_s"]
    check_document(given, SCHEMA)


def test_every_guard_is_named_by_options_that_there_are() -> None:
    guards = PAGE.partition("## Guards")[2]
    named = {word for row in re.findall(r"^\|.*\|(.*)\|.*\|$", guards, re.MULTILINE)
             for word in re.findall(r"`(.*?)`", row)}  # fmt: skip
    assert named <= {option.name for option in OPTIONS}
    assert {"catch-up", "cooldown-in", "quota", "excluded-times"} <= named
