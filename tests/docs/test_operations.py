"""docs/operations.md and docs/migration.md name alerts, lines and options that there are."""

import ast
import re
from collections.abc import Iterator
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


def listed() -> list[str]:
    """The log lines of both tables, `...` for what differs."""
    tables = section("Log lines worth an alert") + section("Other warnings")
    cells = re.findall(r"^\| (`.+?`) \|", tables, re.M)
    return [line for cell in cells for line in re.findall(r"`([^`]+)`", cell)]


def written() -> Iterator[str]:
    """What the code warns of, `...` for what differs."""
    for file in (ROOT / "src").rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr in ("warning", "error", "exception") and call.args:
                text = call.args[0]
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield re.sub(r"%[a-z]+", "...", text.value)


def test_every_warning_is_in_one_of_the_tables_and_no_other() -> None:
    known, lines = listed(), list(written())
    assert len(lines) > 25
    forms = [re.compile(re.escape(line).replace(r"\.\.\.", ".*")) for line in known]
    assert [line for line in lines if not any(form.fullmatch(line) for form in forms)] == []
    code = "\n".join(lines + [file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py")])
    parts = [part.strip(" :;") for line in known for part in line.split("...")]
    assert [part for part in parts if part not in code] == []


def test_our_side_of_the_migration_tables_names_only_options_there_are() -> None:
    policies = {option for name in names() for option in policy_options(name)}
    known = {option.name for option in OPTIONS} | policies | {"processors"}
    ours = " ".join(re.findall(r"^\| .*? \| (.*) \|$", MIGRATION, re.M))
    flags = re.findall(r"`--([\w-]+)", ours)
    plain = re.findall(r"`([a-z]+(?:-[a-z]+)+|[a-z]+_s|[a-z]+(?:_[a-z]+)+)`", ours)
    named = {name for name in (*flags, *plain) if not name.startswith("penstock_")}
    assert len(named) > 15
    assert sorted(named - known - {"policy-option"}) == []
