"""docs/operations.md and docs/migration.md name alerts, lines and options that there are."""

import re
from importlib.resources import files
from pathlib import Path

from penstock.config.settings import OPTIONS
from penstock.scaling.policies.registry import names, policy_options

ROOT = Path(__file__).parents[2]
OPERATIONS = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
MIGRATION = (ROOT / "docs/migration.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next."""
    return OPERATIONS.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_alert_is_explained_and_no_other() -> None:
    rules = (files("penstock.dashboard") / "alerts.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)`", section("Alerts"), re.M) == re.findall(
        r"- alert: (\w+)", rules
    )


def test_every_log_line_is_one_that_the_code_writes() -> None:
    lines = re.findall(r"^\| `([^`]+)`", section("Log lines worth an alert"), re.M)
    assert len(lines) > 10
    code = "\n".join(file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py"))
    parts = [part.strip(" :") for line in lines for part in line.split("...")]
    assert [part for part in parts if part and part not in code] == []


def test_our_side_of_the_migration_tables_names_only_options_there_are() -> None:
    policies = {option for name in names() for option in policy_options(name)}
    known = {option.name for option in OPTIONS} | policies | {"processors"}
    ours = " ".join(re.findall(r"^\| .*? \| (.*) \|$", MIGRATION, re.M))
    flags = re.findall(r"`--([\w-]+)", ours)
    plain = re.findall(r"`([a-z]+(?:-[a-z]+)+|[a-z]+_s|[a-z]+(?:_[a-z]+)+)`", ours)
    named = {name for name in (*flags, *plain) if not name.startswith("penstock_")}
    assert len(named) > 15
    assert sorted(named - known - {"policy-option"}) == []
