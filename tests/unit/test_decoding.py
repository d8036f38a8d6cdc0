"""Records as bytes to rows: many at once, and the bad ones told apart."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.sources.backends.decoding import decode, decode_lines

SCHEMA = pa.schema([("seq", pa.int64()), ("text", pa.string()), ("at", pa.timestamp("us", "UTC"))])

BAD = (
    b"null", b" null ", b"[1]", b"7", b'"x"', b"{", b'{"seq": 1} null', b'{"seq": 1}null{"seq": 2}',
    b'{"seq": 1}{"seq": 2}', b'{"seq": "1"}', b'{"seq": 1.5}', b'{"seq": 99999999999999999999}',
    b'{"text": "\xff"}', b'{"at": "yesterday"}', b"\x00", b'{"a":' * 5_000,
)  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_row_stands_alone(bad: bytes) -> None:
    good = b'{"seq": 1, "text": "}null", "more": {"x": [1]}}'
    found = decode([good, bad, good], "json", SCHEMA)
    assert found.records.tolist() == [0, 2]
    assert [number for number, _ in found.bad] == [1]
    assert found.bad[0][1]


def test_laid_out_and_blank_records() -> None:
    found = decode([b'{\n "seq": 1\n}', b"  ", b'{"at": "2026-01-01T00:00:00Z"}'], "json", SCHEMA)
    assert found.records.tolist() == [0, 2]
    assert not found.bad


def test_csv_times_with_and_without_a_zone_are_utc() -> None:
    lines = [
        b"1,a,2026-01-01T00:00:00Z",
        b"2,b,2026-01-01 00:00:00",
        b"3,c,2026-01-01T02:00:00+02:00",
    ]
    column = decode(lines, "csv", SCHEMA).rows.column("at")
    assert len(set(column.to_pylist())) == 1


@given(st.lists(st.one_of(st.integers(0, 99), st.sampled_from(BAD)), max_size=40))
def test_every_record_is_a_row_or_bad(records: list[int | bytes]) -> None:
    data = [b'{"seq": %d}' % r if isinstance(r, int) else r for r in records]
    found = decode(data, "json", SCHEMA)
    good = [n for n, r in enumerate(records) if isinstance(r, int)]
    assert found.records.tolist() == good
    assert found.rows.column(0).to_pylist() == [records[n] for n in good]
    assert [n for n, _ in found.bad] == [n for n in range(len(records)) if n not in good]


@pytest.mark.parametrize(
    "failure",
    [
        pa.ArrowException("Unknown error: Failed to launch worker thread"),
        pa.ArrowMemoryError("malloc of size 64 failed"),
        pa.ArrowCancelled("Operation cancelled"),
        OSError("Too many open files"),
    ],
)
def test_what_a_record_is_not_to_blame_for_ends_the_task(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """A worker without memory put 1,448 good records aside as malformed: they were lost."""

    def failing(*_: object) -> pa.Table:
        raise failure

    monkeypatch.setattr(pyarrow.json, "read_json", failing)
    monkeypatch.setattr(pyarrow.csv, "read_csv", failing)
    for form, record in (("json", b'{"seq": 1}'), ("csv", b"1,a,2026-01-01T00:00:00Z")):
        with pytest.raises(type(failure), match=str(failure)):
            decode([record], form, SCHEMA)
        with pytest.raises(type(failure), match=str(failure)):
            decode_lines(record + b"\n", form, SCHEMA)
