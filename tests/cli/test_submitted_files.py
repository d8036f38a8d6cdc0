"""What a submitted file does as it is read, it does in a process of its own."""

from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.spark.host import loading
from penstock.spark.host.loading import check_apart


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import nothing_of_this_name", "flow.py failed: ModuleNotFoundError: No module named"),
        ("x = 1", "flow.py holds no topology; it needs one, as in road = Topology(...)."),
        ("import os; os._exit(7)", "flow.py ended the process that read it (exit code 7)."),
    ],
)
def test_files_are_read_apart_before_the_host_reads_them(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "flow.py").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        check_apart(tmp_path, "flow.py", "")
    assert str(refused.value).startswith(sentence)


def test_a_file_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "CHECK_LIMIT_S", 0.5)
    (tmp_path / "flow.py").write_text("while True: pass", encoding="utf-8")
    with pytest.raises(InvalidInput, match="was not read to its end within"):
        loading.check_apart(tmp_path, "flow.py", "")
