"""Files that a crash leaves whole: the steps, what is said when one fails, and two writers."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.spark.checkpoint import durable_files
from penstock.spark.checkpoint.durable_files import Step, StorageFailure
from penstock.spark.checkpoint.sealed import read_sealed


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    file, failed = tmp_path / "wanted.json", []
    both = threading.Barrier(2)

    def write(who: int) -> None:
        for number in range(60):
            both.wait()
            try:
                durable_files.write_atomically(file, {"who": who, "number": number})
            except OSError as error:
                failed.append(str(error))

    writers = [threading.Thread(target=write, args=(who,)) for who in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert json.loads(file.read_text())["number"] == 59
    assert os.listdir(tmp_path) == ["wanted.json"]


def test_a_name_that_is_taken_is_not_written_to(tmp_path: Path) -> None:
    file = tmp_path / "entry.json"
    durable_files.write_new(file, {"first": True})
    with pytest.raises(FileExistsError):
        durable_files.write_new(file, {"first": False})
    assert read_sealed(file) == {"first": True}
    assert os.listdir(tmp_path) == ["entry.json"]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "No space left on device; free some space"),
        (errno.EACCES, "Permission denied; give this user the permission"),
        (errno.EIO, "Input/output error; look at the disk"),
    ],
)
def test_a_failure_is_one_sentence_and_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    file = tmp_path / "plan.json"
    durable_files.write_atomically(file, {"plan": 1})
    with monkeypatch.context() as patched:

        def failing(step: Step) -> None:
            if (step.when, step.what) == ("before", "rename"):
                raise OSError(number, os.strerror(number))

        patched.setattr(durable_files, "on_step", failing)
        with pytest.raises(StorageFailure, match=words) as failure:
            durable_files.write_atomically(file, {"plan": 2})
    assert isinstance(failure.value, PenstockError)
    assert isinstance(failure.value, OSError)
    assert failure.value.errno == number
    assert str(file) in str(failure.value)
    assert "\n" not in str(failure.value)
    assert read_sealed(file) == {"plan": 1}
    assert os.listdir(tmp_path) == ["plan.json"]


def test_the_data_is_synced_before_it_has_a_name_and_the_name_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def note(step: Step) -> None:
        if step.when == "after":
            steps.append(f"{step.what} {'names' if step.file.is_dir() else 'file'}")

    monkeypatch.setattr(durable_files, "on_step", note)
    durable_files.write_atomically(tmp_path / "a.json", {})
    assert steps == ["create file", "sync file", "write file", "rename file", "sync names"]


def test_directories_are_private_and_only_what_is_made_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert durable_files.make_directory(tmp_path / "a/b")
    assert not durable_files.make_directory(tmp_path / "a/b")
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".plan.json.0123.new", "identity.new", "inner/.1.json.4567.new"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{")
    (tmp_path / "reader.new.json").write_text("{}")
    (tmp_path / "query.new").mkdir()
    durable_files.remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["inner", "query.new", "reader.new.json"]
    assert os.listdir(tmp_path / "inner") == []


def test_two_directories_have_each_others_names_at_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / f"was {folder.name}").touch()
    assert durable_files.exchange(one, other)
    assert os.listdir(one) == ["was other"]
    assert os.listdir(other) == ["was one"]
    with pytest.raises(FileNotFoundError):
        durable_files.exchange(one, tmp_path / "none")
