"""`penstock dashboard`: from a history to a page and back to the prompt."""

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.histories import make
from penstock.cli import app
from penstock.cli.dashboard import beside
from penstock.control.history.store import HistoryStore
from penstock.dashboard.server import Dashboard

PENSTOCK = Path(sys.executable).with_name("penstock")


def test_a_history_is_served_until_ctrl_c(tmp_path: Path) -> None:
    make(tmp_path)[0].close()
    serving = subprocess.Popen(
        [PENSTOCK, "dashboard", "--history", tmp_path / "h.sqlite", "--port", "0"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert serving.stderr is not None
        line = serving.stderr.readline()
        found = re.fullmatch(r"page: http://127\.0\.0\.1:(\d+)/\n", line)
        assert found, line
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        connection.request("GET", "/api/runs")
        answer = json.loads(connection.getresponse().read())
        connection.close()
        assert [run["topology"] for run in answer["runs"]] == ["road"]
        assert answer["acts"] == []  # what only reads cannot act
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=60) == 130
        assert serving.stderr.read() == ""
    finally:
        serving.kill()
        serving.communicate()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--history", "none.sqlite"), "there is no history at none.sqlite"),
        (("--history", "."), "history is '.', a directory"),
        (("--port", "70000"), "--port"),
        (("--token", "short"), "--token must be at least 8 letters"),
        (("--token", "has a space in it"), "--token must be at least 8 letters"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    HistoryStore("penstock.sqlite").close()
    result = CliRunner().invoke(app, ["dashboard", *words])
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    where = str(tmp_path / "h.sqlite")
    with store, Dashboard(store) as page:
        words = ["dashboard", "--history", where, "--port", str(page.port)]
        result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert f"port {page.port} of 127.0.0.1 cannot be used" in result.stderr


@pytest.mark.parametrize("private", [False, True])
def test_the_page_beside_a_run_can_be_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], private: bool
) -> None:
    where = str(tmp_path / "h.sqlite")
    with beside(True, where, 0, "a-long-token", private):
        found = re.match(
            r"page: http://127\.0\.0\.1:(\d+)/#token=a-long-token", capsys.readouterr().err
        )
        assert found
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        connection.request("GET", "/api/runs")
        assert connection.getresponse().status == (401 if private else 200)
        connection.close()


@pytest.mark.parametrize("command", ["run", "demo"])
def test_commands_that_show_a_page_can_make_it_private(command: str) -> None:
    assert (
        "--private" in CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    )
