"""Loads from CSV files: what they mean, and what is refused."""

from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.workloads.csv_load import csv_load


def written(folder: Path, text: str) -> Path:
    path = folder / "load.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_hold_until_the_next_time_and_the_last_as_long_as_the_one_before(tmp_path):
    load = csv_load(written(tmp_path, "time,value\n100,4\n110,8\n130,2\n"))
    assert load.duration_s == 50.0
    assert load.rate_per_s([0, 9, 10, 29, 30, 49]).tolist() == [4, 4, 8, 8, 2, 2]
    assert load.rows == 10 * 4 + 20 * 8 + 20 * 2


def test_dates_are_times(tmp_path):
    text = "time,value\n2013-01-31T23:59:00,1\n2013-02-01T00:00:00+00:00,3\n"
    assert csv_load(written(tmp_path, text)).rate_per_s([59, 60]).tolist() == [1, 3]


def test_a_step_stretches_and_a_peak_scales(tmp_path):
    path = written(tmp_path, "time,value\n2013-01-31,5\n2013-02-28,10\n")
    load = csv_load(path, peak_per_s=300, step_s="20s")
    assert (load.duration_s, load.peak_rate_per_s, load.rows) == (40.0, 300.0, 20 * 150 + 20 * 300)


def test_columns_are_found_by_name_or_else_by_place(tmp_path):
    path = written(tmp_path, "value,when,flights\n1,0,7\n2,5,9\n")
    assert csv_load(path, step_s=1).rates_per_s == (1, 1, 2, 2)
    assert csv_load(path, time="when", value="flights").rates_per_s == (7, 7, 9, 9)
    assert csv_load(written(tmp_path, "at,rows\n0,7\n5,9\n")).rates_per_s == (7, 7, 9, 9)
    assert csv_load(written(tmp_path, "rows\n7\n9\n"), step_s=1).rates_per_s == (7, 7, 9, 9)


@pytest.mark.parametrize(
    ("text", "fields", "word"),
    [
        ("", {}, "no CSV table"),
        ("time,value\n", {}, "no values"),
        ("time,value\n0,1\n1,2\n", {"value": "rows"}, "value is 'rows'; the file has the columns"),
        ("time,value\n0,1\n1,2\n", {"time": "at"}, "time is 'at'; the file has the columns"),
        ("time,value\n0,1\n1,\n", {}, "'value' is '' in line 3"),
        ("time,value\n0,1\n1,nan\n", {}, "'value' is 'nan' in line 3"),
        ("time,value\n0,-1\n1,2\n", {}, "'value' is '-1' in line 2"),
        ("time,value\n0,inf\n1,2\n", {}, "'value' is 'inf' in line 2"),
        ("time,value\n0,many\n1,2\n", {}, "'value' is 'many' in line 2"),
        ("time,value\n0,1\n0,2\n", {}, "'time' is '0' in line 3"),
        ("time,value\n0,1\nlater,2\n", {}, "'time' is 'later' in line 3"),
        ("time,value\n0,1\n", {}, "step_s"),
        ("value\n1\n2\n", {}, "only the column 'value'"),
        ("time,value\n0,0\n1,0\n", {"peak_per_s": 5}, "scaled to a peak"),
        ("time,value\n0,1\n1,2\n", {"peak_per_s": 0}, "peak_per_s is 0"),
        ("time,value\n0,1\n1,2\n", {"peak_per_s": "5"}, "peak_per_s is '5'"),
        ("time,value\n0,1\n1,2\n", {"step_s": "soon"}, "step_s is 'soon'"),
        ("time,value\n0,1\n1,2\n", {"value": 3}, "value is 3"),
        ("time,value\n0,1,2\n1,2,3,4\n", {}, "no CSV table"),
        ("time,value\n0,1,2\n1,2,3\n", {}, "more values than names"),
        ("time,value\n\n0,1\n\n  \n1,x\n", {}, "'value' is 'x' in line 6"),
        ("\n\ntime,value\n0,1\nx,2\n", {}, "'time' is 'x' in line 5"),
        ("time,value\r\n\r\n0,1\r\n1,x\r\n", {}, "'value' is 'x' in line 4"),
        ('time,value\n"0\n",1\n\n1,x\n', {}, "'value' is 'x' in line 5"),
        ("time,value\n0,1\n\n1,2,3,4\n", {}, "line 4"),
        ("time,value\n0,1\n1," + 200_000 * "x" + "\n", {}, "in line 3"),
        ("time,value\n0,1\n" + 20_000 * "x" + ",3\n", {}, "xxx...' in line 3"),
        ("time," + 20_000 * "v" + "\n0,1\n1,x\n", {}, "vvv...' is 'x' in line 3"),
        ("time,value\n0,1\n1,2\n", {"value": 20_000 * "v"}, "vvv...'; the file has the columns"),
        ("time,value\n0,1\n1e308,2\n", {}, "'time' is '1e308' in line 3"),
        ("time,value\n-1e308,1\n1e308,2\n", {}, "'time' is '-1e308' in line 2"),
        ("time,value\n0,1e308\n1,1\n", {}, "'value' is '1e308' in line 2"),
        ("time,value\n0,1e-320\n1,0\n", {"peak_per_s": 5}, "cannot be scaled"),
        ("time,value\n0,1\n1,2\n", {"peak_per_s": 10**400}, "peak_per_s is"),
        ("time,value\n0,1\n1,2\n", {"step_s": 10**400}, "step_s is"),
        ("time,value\n0,1\n1,2\n", {"step_s": 1e308}, "step_s is"),
        ("time,value\n0,1\n1,1\x002\n", {}, "NUL byte in line 3"),
        ("time,value\n\x00,1\n1,12\n", {}, "NUL byte in line 2"),
        ("time,va\x00lue\n0,1\n1,12\n", {}, "NUL byte in line 1"),
    ],
    ids=lambda value: repr(value)[:40],
)
@pytest.mark.filterwarnings("error")
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, text, fields, word):
    with pytest.raises(InvalidInput) as refusal:
        csv_load(written(tmp_path, text), **fields)
    assert word in str(refusal.value)
    assert str(refusal.value).endswith(".")
    assert len(str(refusal.value)) < 300


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        csv_load(tmp_path / "missing.csv")
    (tmp_path / "image.csv").write_bytes(b"\x89PNG\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="no CSV table"):
        csv_load(tmp_path / "image.csv")
