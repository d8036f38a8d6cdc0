"""The doctor finds what is missing and says what to do about it."""

import json
import socket
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from penstock.cli.doctor import doctor as doctor_command
from penstock.cli.exit_codes import ExitCodeGroup
from penstock.spark.cluster import doctor
from penstock.spark.cluster.doctor import Check
from penstock.spark.handles import Family
from penstock.spark.run.actuators import ACTUATORS, examine_master, examined
from penstock.spark.run.shared_folder import hosts_without

ALL = ["python", "java", "pyspark", "import", "ports", "memory", "disk"]


def test_every_check_has_an_answer_and_every_failure_a_remedy() -> None:
    checks = doctor.examine()
    assert [check.name for check in checks] == ALL
    assert all(check.found for check in checks)
    assert all(bool(check.remedy) != check.ok for check in checks)


def fake_java(directory: Path, version: str) -> None:
    java = directory / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "ok"),
    [("17.0.15", True), ("21", True), ("1.8.0_402", False), ("11.0.2", False), ("none", False)],
)
def test_java_must_be_17_or_21(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, ok: bool
) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check = doctor.check_java()
    assert check.ok is ok
    assert ok or "17" in check.remedy


def test_missing_java_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    check = doctor.check_java()
    assert not check.ok
    assert "no java" in check.found
    assert "apt install" in check.remedy


def test_another_pyspark_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", lambda _name: "3.5.0")
    check = doctor.check_pyspark()
    assert not check.ok
    assert check.found == "3.5.0"
    assert "pip install pyspark==" in check.remedy


def test_a_package_only_this_process_can_import_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "penstock.py").write_text("raise ImportError('broken on purpose')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    check = doctor.check_import()
    assert not check.ok
    assert "broken on purpose" in check.found


def test_no_ports_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr(socket, "create_server", refuse)
    check = doctor.check_ports()
    assert not check.ok
    assert "Address already in use" in check.found


def test_little_memory_and_disk_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "available_memory_mb", lambda: 100)
    monkeypatch.setattr(doctor, "LEAST_DISK_MB", 2**50)
    assert "100 MB" in doctor.check_memory().found
    assert not doctor.check_memory().ok
    assert not doctor.check_disk().ok


@pytest.mark.spark
def test_a_session_answers_or_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    session, *handles = doctor.check_session()
    assert session.ok, session.found
    assert [check.name for check in handles] == [f"spark: {family}" for family in Family]
    assert [check for check in handles if not check.ok] == []
    unasked = {check.name for check in handles if check.found != "works"}
    assert unasked == {"spark: request executors", "spark: drain executors"}
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (failed,) = doctor.check_session()
    assert not failed.ok


def test_a_session_that_does_not_come_is_not_put_down_to_checks_that_are_fine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(doctor, "_PROBE_LIMIT_S", 0.05)
    (slow,) = doctor.check_session()
    assert (slow.ok, slow.found) == (False, "no answer within 0.05 s")
    assert "Try again when the machine has less to do." in slow.remedy


@pytest.mark.spark
@pytest.mark.long
def test_a_master_answers_for_each_actuator() -> None:
    assert_each_actuator_answers(examine_master("local[1]"))


@pytest.mark.spark
def test_a_session_answers_for_each_actuator(session: SparkSession) -> None:
    assert_each_actuator_answers(examined(session))


def assert_each_actuator_answers(checks: Iterable[Check]) -> None:
    found = {check.name: check for check in checks}
    assert all(check.ok for check in found.values()), found
    assert "with penstock" in found["python of executors"].found
    assert "no executors of its own" in found["act: the number of executors"].found
    assert "one executor only" in found["act: where state lives"].found
    assert "works in topologies" in found["act: rows that are dropped"].found
    names = [name for name in found if name.startswith("act: ")]
    assert len(names) == len(ACTUATORS)


def test_a_master_that_is_misspelt_is_refused_at_once() -> None:
    result = CliRunner().invoke(command(), ["doctor", "--master", "yarrn"])
    assert result.exit_code == 2
    assert "did you mean yarn?" in result.stderr


def command() -> typer.Typer:
    """The command with the error contract, beside another so that it has a name."""
    made = typer.Typer(cls=ExitCodeGroup, pretty_exceptions_enable=False)
    made.command("doctor")(doctor_command)
    made.command("other")(lambda: None)
    return made


def test_the_command_fails_with_the_remedy_when_something_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    result = CliRunner().invoke(command(), ["doctor"])
    assert result.exit_code == 1
    assert "FAIL  java" in result.stdout
    assert "-> Install Java 17 or 21" in result.stdout
    answer = CliRunner().invoke(command(), ["doctor", "--json"])
    assert {check["name"]: check["ok"] for check in json.loads(answer.stdout)}["java"] is False
    assert answer.exit_code == 1


@pytest.mark.spark
def test_executors_say_whether_they_see_a_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    files = [tmp_path / "there", tmp_path / "elsewhere"]
    assert hosts_without(spark, files, 2) == [[], [socket.gethostname()]]
