"""`penstock advise` and `penstock schema`, with good documents and every kind of bad one."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from penstock.cli import advise, app
from penstock.cli.advise import KINDS
from penstock.config import Settings

DOCUMENT = {
    "policy": "incremental",
    "operators": [
        {"name": "reports", "arrival_rate": 410, "service_rate": 380, "parallelism": 1},
        {"name": "tolls", "arrival_rate": 10, "service_rate": 100, "parallelism": 1},
    ],
    "thresholds": {"min": 0.5, "max": 0.9},
}


def invoke(*arguments: str, stdin: bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["advise", *arguments], input=stdin)


def given(folder: Path, document: object) -> str:
    path = folder / "document.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_the_answer_is_json_on_stdout(tmp_path: Path) -> None:
    result = invoke("scaling", given(tmp_path, DOCUMENT))
    assert (result.exit_code, result.stderr) == (0, "")
    answer = json.loads(result.stdout)
    assert invoke("scaling", given(tmp_path, DOCUMENT), "--json").stdout == result.stdout
    assert answer["parallelism"] == {"reports": 2, "tolls": 1}
    assert answer["reasons"][0].startswith("too busy: reports 1 -> 2 (")


def test_a_dash_reads_stdin(tmp_path: Path) -> None:
    result = invoke("scaling", "-", stdin=json.dumps(DOCUMENT).encode())
    assert json.loads(result.stdout)["parallelism"] == {"reports": 2, "tolls": 1}


@pytest.mark.parametrize(("bound_s", "code"), [(5, 0), (0.5, 3)])
def test_the_policy_of_a_run_decides(tmp_path: Path, bound_s: float, code: int) -> None:
    document = {
        "policy": Settings().policy, "period_s": 5, "max_latency_s": bound_s, "processors": 2,
        "max_processors": 8, "external_rate": [40] * 20 + [70] * 4,
        "operators": [{"name": "reports", "service_rate": 30}], "batch_overhead_s": 0.3,
    }  # fmt: skip
    result = invoke("scaling", given(tmp_path, document))
    assert (result.exit_code, result.stderr) == (code, "")
    answer = json.loads(result.stdout)
    assert answer["processors"] > 2
    assert ("cannot be kept" in answer.get("infeasible", "")) == bool(code)


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "advise", "scaling"]
    good = subprocess.run(
        [*command, "-"], input=json.dumps(DOCUMENT), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["parallelism"]["reports"] == 2
    bad = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == f"penstock: {tmp_path} cannot be read: Is a directory.\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "stdin is not JSON"),
        (b'{"policy": ', "stdin is not JSON: Expecting value at line 1, column 12."),
        (b"\xff\xfe\x00\x01", "stdin is not UTF-8 text (byte 0)."),
        (bytes(range(256)), "stdin is not UTF-8 text"),
        (b"\x00" * 100, "stdin is not JSON"),
        (b"[1, 2]", "stdin must hold a JSON object, not array."),
        (b"null", "stdin must hold a JSON object, not null."),
        (b'{"policy": NaN}', "NaN is not a JSON number"),
        (b'{"policy": 1e999}', "1e999 is too large; give a finite number."),
        (b'{"policy": ' + b"9" * 5000 + b"}", "stdin holds a number that is too long to be read."),
        (b"[" * 100_000, "stdin is nested too deeply to be read."),
        (b'{"policy": ' + b'{"a": ' * 900 + b"1" + b"}" * 901, "policy is {"),
        (b"{}", "the document lacks 'policy'"),
        (b'{"policy": "clever"}', 'policy is "clever"; allowed: '),
        (b'{"policy": 7}', "policy is 7; allowed: "),
        (b'{"policy": "\\ud800"}', 'policy is "\\ud800"; allowed: '),
    ],
)
def test_what_is_no_document_is_refused_in_one_line(content: bytes, message: str) -> None:
    result = invoke("scaling", "-", stdin=content)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"penstock: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operators": "many"}, "operators must be of type array, not string."),
        ({"operators": []}, "operators "),
        ({"thresholds": {"min": "low", "max": 1}}, "thresholds.min must be of type number"),
        ({"thresholds": {"min": 1}}, "thresholds lacks 'max'"),
        ({"thresholds": {"min": 0.9, "max": 0.5}}, "thresholds are min 0.9 and max 0.5"),
        ({"extra": 1}, "the document has unknown 'extra'"),
    ],
)
def test_wrong_fields_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    result = invoke("scaling", given(tmp_path, DOCUMENT | changes))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"penstock: {message}")
    assert result.stderr.count("\n") == 1


def test_a_missing_file_and_an_unknown_kind_are_refused(tmp_path: Path) -> None:
    absent = invoke("scaling", str(tmp_path / "absent.json"))
    assert absent.exit_code == 2
    assert absent.stderr.endswith("absent.json cannot be read: No such file or directory.\n")
    unknown = invoke("weather", str(tmp_path / "absent.json"))
    assert unknown.exit_code == 2
    assert unknown.stderr == f"penstock: KIND is 'weather'; allowed: {', '.join(KINDS)}.\n"


@pytest.mark.parametrize(("infeasible", "code"), [("too much", 3), (None, 0)])
def test_an_infeasible_answer_is_printed_and_exits_3(
    monkeypatch: pytest.MonkeyPatch, infeasible: str | None, code: int
) -> None:
    room = SimpleNamespace(SCHEMA={}, advise=lambda document: {"infeasible": infeasible})
    monkeypatch.setattr(advise, "_room", lambda kind: room)
    result = invoke("scaling", "-", stdin=b"{}")
    assert result.exit_code == code
    assert json.loads(result.stdout) == {"infeasible": infeasible}
    assert result.stderr == ""


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_json_schemas(kind: str) -> None:
    result = CliRunner().invoke(app, ["schema", kind])
    assert result.exit_code == 0
    Draft202012Validator.check_schema(json.loads(result.stdout))


def test_a_kind_is_offered_as_soon_as_its_room_can_advise() -> None:
    rooms = Path(sys.modules["penstock"].__path__[0])
    there = {path.parent.name for path in rooms.glob("*/advice.py")}
    assert set(KINDS) == there
    assert "scaling" in KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_document_names_the_page_and_the_schema(kind: str, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("{}", encoding="utf-8")
    result = CliRunner().invoke(app, ["advise", kind, str(tmp_path / "empty.json")])
    assert result.exit_code == 2
    assert result.stderr.endswith(f" See penstock docs {kind} and penstock schema {kind}.\n")
    assert (Path(__file__).parents[2] / "docs" / f"{kind}.md").is_file()
