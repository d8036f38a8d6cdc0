"""What the logs of a run may take up, as docs/reliability.md tells: four files of 32 MB each."""

from pathlib import Path

from penstock.spark.cluster import session


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
