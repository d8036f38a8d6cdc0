"""Files of a batch: only what successful tasks reported is ever published."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from penstock.errors import PenstockError
from penstock.model.sinks import Files
from penstock.spark.checkpoint.durable_files import Step
from penstock.spark.sinks import files as file_sink
from penstock.spark.sinks.files import Target, TaskWriter
from reliability.crash_points import watched

ROWS = pa.RecordBatch.from_pydict({"key": [1, 2, 3], "name": ["a", None, "c"]})
STAMPS = pa.struct([("of", pa.list_(pa.int64()))])


def written(one: Target, *batches: pa.RecordBatch) -> list[str]:
    (report,) = TaskWriter((one,), "tag")(iter(batches))
    return [str(file) for file in report.column("file").to_pylist()]


@pytest.mark.parametrize("form", ["parquet", "csv", "orc", "json"])
def test_a_batch_is_published_whole(tmp_path: Path, form: str) -> None:
    one = file_sink.target(Files(str(tmp_path), form), "out", None, "q", 4)
    file_sink.gather(one, written(one, ROWS, ROWS), None)
    assert not (tmp_path / "batch=4").exists()
    file_sink.publish(one.gathered, f"{tmp_path}/batch=4")
    found = ds.dataset(tmp_path / "batch=4", format=form).to_table().to_pydict()
    assert found["key"] == [1, 2, 3, 1, 2, 3]
    assert list((tmp_path / "_staged").iterdir()) == []


def test_files_of_failed_tasks_are_never_seen(tmp_path: Path) -> None:
    one = file_sink.target(Files(str(tmp_path)), "out", None, "q", 0)
    written(one, ROWS)  # its report was lost with its executor
    counted = written(one, ROWS)
    file_sink.gather(one, counted, None)
    file_sink.publish(one.gathered, f"{tmp_path}/batch=0")
    assert ds.dataset(tmp_path / "batch=0").count_rows() == 3


def test_a_straggler_that_still_writes_does_not_fail_a_batch_that_is_in_place(
    tmp_path: Path,
) -> None:
    one = file_sink.target(Files(str(tmp_path)), "out", None, "q", 0)
    file_sink.gather(one, written(one, ROWS), None)

    def straggling(step: Step) -> None:
        if (step.when, step.what, step.file) == ("before", "remove", Path(one.attempts)):
            (step.file / "part-late.parquet").touch()

    with watched(straggling):
        file_sink.publish(one.gathered, f"{tmp_path}/batch=0")
        written(one, ROWS)
        file_sink.discard(one)
    assert ds.dataset(tmp_path / "batch=0").count_rows() == 3
    file_sink.sweep(str(tmp_path))
    assert list((tmp_path / "_staged").iterdir()) == []


def test_gathering_again_after_a_crash_starts_over(tmp_path: Path) -> None:
    one = file_sink.target(Files(str(tmp_path)), "out", None, "q", 0)
    file_sink.gather(one, written(one, ROWS), None)
    file_sink.gather(one, written(one, ROWS), None)
    file_sink.publish(one.gathered, f"{tmp_path}/batch=0")
    file_sink.publish(one.gathered, f"{tmp_path}/batch=0")  # after a crash in between
    assert ds.dataset(tmp_path / "batch=0").count_rows() == 3


def test_rows_of_several_nodes_go_their_ways(tmp_path: Path) -> None:
    both = pa.RecordBatch.from_pydict(
        {
            "tag": ["a", "b", "a"],
            "a": [{"x": 1}, None, {"x": 3}],
            "b": [None, {"y": "two"}, None],
        }
    )
    targets = tuple(
        file_sink.target(Files(str(tmp_path / node)), node, node, "q", 0) for node in ("a", "b")
    )
    (report,) = TaskWriter(targets, "tag")(iter([both]))
    assert report.to_pydict()["rows"] == [2, 1]
    for one in targets:
        files = [r["file"] for r in report.to_pylist() if r["sink"] == one.sink]
        file_sink.gather(one, files, None)
        file_sink.publish(one.gathered, f"{tmp_path}/{one.node}/batch=0")
    assert ds.dataset(tmp_path / "a/batch=0").to_table().to_pydict() == {"x": [1, 3]}
    assert ds.dataset(tmp_path / "b/batch=0").to_table().to_pydict() == {"y": ["two"]}


def test_an_empty_first_batch_tells_the_schema(tmp_path: Path) -> None:
    one = file_sink.target(Files(str(tmp_path)), "out", None, "q", 0)
    assert written(one) == []
    file_sink.gather(one, [], ROWS.schema)
    file_sink.publish(one.gathered, f"{tmp_path}/batch=0")
    assert ds.dataset(tmp_path / "batch=0").schema == ROWS.schema


def test_json_keeps_large_numbers_nulls_and_nesting(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict(
        {"big": [2**60 + 1, None], "list": [[1, 2], None], "share": [0.5, float("nan")]}
    )
    one = file_sink.target(Files(str(tmp_path), "json"), "out", None, "q", 0)
    (file,) = written(one, rows)
    lines = (Path(one.attempts) / file).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"big": 2**60 + 1, "list": [1, 2], "share": 0.5},
        {"big": None, "list": None, "share": None},
    ]
    assert "NaN" not in lines[1]


def test_json_has_no_nan_at_any_depth_of_maps_either(tmp_path: Path) -> None:
    """pyarrow gives maps as lists of pairs."""
    kinds = pa.map_(pa.string(), pa.struct([("x", pa.float64()), ("of", pa.list_(pa.float32()))]))
    worst = float("inf")
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([[("a", float("nan"))], None], pa.map_(pa.string(), pa.float64())),
            pa.array([[("b", {"x": worst, "of": [worst, 1.0]})], []], kinds),
            pa.array([[(float("nan"), 1)], []], pa.map_(pa.float64(), pa.int64())),
        ],
        names=["plain", "nested", "keys"],
    )
    one = file_sink.target(Files(str(tmp_path), "json"), "out", None, "q", 0)
    (file,) = written(one, rows)
    lines = (Path(one.attempts) / file).read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail) for line in lines] == [
        {"plain": [["a", None]], "nested": [["b", {"x": None, "of": [None, 1.0]}]],
         "keys": [[None, 1]]},
        {"plain": None, "nested": [], "keys": []},
    ]  # fmt: skip


def test_json_writes_moments_that_python_has_not(tmp_path: Path) -> None:
    """Spark knows years beyond 9999, as of microseconds taken for milliseconds."""
    far, at = 253_402_300_800_000_000 * 2, pa.timestamp("us", "UTC")
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([far, 0], pa.int64()).cast(at),
            pa.array([10**7, 0], pa.int32()).cast(pa.date32()),
            pa.array([[("a", {"of": [far]})], []], pa.map_(pa.string(), STAMPS)).cast(
                pa.map_(pa.string(), pa.struct([("of", pa.list_(at))]))
            ),
            pa.array([0, 1], pa.int64()).cast(at),
        ],
        names=["at", "day", "nested", "near"],
    )
    one = file_sink.target(Files(str(tmp_path), "json"), "out", None, "q", 0)
    (file,) = written(one, rows)
    lines = [json.loads(line) for line in (Path(one.attempts) / file).read_text().splitlines()]
    assert lines[0]["at"] == "18029-12-31 00:00:00.000000Z"
    assert lines[0]["day"] == "29349-01-26"
    assert lines[0]["nested"] == [["a", {"of": ["18029-12-31 00:00:00.000000Z"]}]]
    assert [line["near"] for line in lines] == [
        "1970-01-01 00:00:00+00:00", "1970-01-01 00:00:00.000001+00:00",
    ]  # fmt: skip


def test_a_batch_that_is_neither_staged_nor_in_place_is_not_taken_for_done(tmp_path: Path) -> None:
    one = file_sink.target(Files(str(tmp_path)), "out", None, "q", 0)
    file_sink.gather(one, written(one, ROWS), None)
    shutil.rmtree(one.gathered)
    with pytest.raises(PenstockError, match="neither") as refusal:
        file_sink.publish(one.gathered, f"{tmp_path}/batch=0")
    assert "\n" not in str(refusal.value)
