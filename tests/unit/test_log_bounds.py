"""What the logs of a run may take up, as docs/reliability.md tells: four files of 32 MB each."""

import os
import subprocess
from pathlib import Path

import pytest

from penstock.spark.cluster import session, supervisor
from penstock.spark.host import costs as costs_module
from penstock.spark.host.costs import Cost, Costs
from penstock.spark.host.submission import read_submission


def test_logs_of_driver_and_executors_are_bounded_alike() -> None:
    text = Path(session.__file__).with_name("log4j2.properties").read_text(encoding="utf-8")
    lines = (line.partition(" = ") for line in text.splitlines() if " = " in line)
    driver = {key: value for key, _, value in lines}
    assert driver["appender.file.type"] == "RollingFile"
    assert driver["appender.file.policies.size.size"].endswith(":-32MB}")
    assert driver["appender.file.strategy.max"] == "3"  # besides the one that is written to
    executors = session.settings(key_groups=8)
    assert executors["spark.executor.logs.rolling.strategy"] == "size"
    assert executors["spark.executor.logs.rolling.maxSize"] == str(32 << 20)
    assert executors["spark.executor.logs.rolling.maxRetainedFiles"] == "4"


def test_a_log_that_grows_is_begun_anew_while_it_is_written(tmp_path: Path) -> None:
    log = tmp_path / "master.log"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # as a JVM has it
    for number in range(50):
        os.write(descriptor, b"%d: a line of a log\n" % number)
        supervisor.shorten(log, 200)
    os.close(descriptor)
    assert log.stat().st_size <= 220
    assert (tmp_path / "master.log.1").stat().st_size <= 220
    assert log.read_bytes().endswith(b"49: a line of a log\n")
    assert b"\0" not in log.read_bytes(), "no hole where it was cut"


def test_of_executors_that_ended_the_newest_are_kept(tmp_path: Path) -> None:
    """An application that lives for months has thousands of them."""
    for application, count in (("app-1", 14), ("app-2", 3)):
        for number in range(count):
            (tmp_path / application / str(number)).mkdir(parents=True)
            (tmp_path / application / str(number) / "stderr").write_text("said")
    (tmp_path / "app-1/notes").mkdir()
    alive = tmp_path / "app-1" / "2"
    (alive / "inner").mkdir()
    with (
        subprocess.Popen(["cat"], cwd=tmp_path / "app-1/0", stdin=subprocess.PIPE) as executor,
        subprocess.Popen(["cat"], cwd=alive / "inner", stdin=subprocess.PIPE) as python,
    ):
        supervisor.forget_ended(tmp_path)
        executor.kill()
        python.kill()
    left = {one.name for one in (tmp_path / "app-1").iterdir()}
    assert left == {"0", "2", "notes"} | {str(number) for number in range(6, 14)}
    assert len(list((tmp_path / "app-2").iterdir())) == 3
    supervisor.forget_ended(tmp_path)
    assert not alive.exists()
    supervisor.forget_ended(tmp_path / "nowhere")


def test_what_code_took_is_forgotten_once_there_is_much_newer_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs_module, "MOST_COSTS", 3)
    costs = Costs(tmp_path / "costs")
    made = [
        read_submission({"name": "a", "file": "f.py", "topology": "", "files": {"f.py": str(n)}})
        for n in range(6)
    ]
    for submission in made:
        costs.keep(submission, Cost(4))
    assert len(list((tmp_path / "costs").iterdir())) == 3
    assert costs.of(made[-1]).wanted == 4
    assert costs.of(made[0]) == Cost()
