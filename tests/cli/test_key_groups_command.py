"""`penstock key-groups` refuses what it cannot do, before Spark starts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.app import app


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere", "8"), "nowhere is no checkpoint: neither one of penstock run"),
        (("nowhere", "0"), "'number': Input should be greater than or equal to 1"),
        (("nowhere", "many"), "Invalid value for 'number'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["key-groups", *words])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
