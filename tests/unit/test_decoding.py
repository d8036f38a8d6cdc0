"""Records as bytes to rows: many at once, and the bad ones told apart."""

from collections.abc import Sequence

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
    b'{"seq": 4', b"}", b'{"more": {"x": 1}', b'"seq": 1}', b'{"seq": 1}\x00{', b'{"seq": 1},',
    b'{"seq": 1} {"seq": 2}{"seq": 3}', b'{"text": "}', b'{"}', b'{"more": [{"x": 1}', b"{}]}",
)  # fmt: skip
# As many rows as records, of other records.
PAIRS = (
    (b'{"seq": 1}{"seq": 2}', b'{"seq": 4', b"}"), (b"{", b"}", b'{"seq": 1} {"seq": 2}'),
    (b'{"more": {"x": 1}', b"}{}{}", b"{", b"}"), (b'{"seq":', b'1}{"seq":', b'2}{"seq": 3}'),
)  # fmt: skip

CSV = pa.schema([("n", pa.int64()), ("text", pa.string())])
BAD_CSV = (
    b'1,"a', b'2,b"\n3,"c', b'"', b"1", b"1,a,b", b"x,a", b"1,\xff", b"1,a\r2,b", b"1,a\n2,b",
    b"1,a\r\r2,b\r3,c", b'1,"a\r2,b', b'1,"\x01', b"1,a,\x01\n2,b", b'1,a\n2,"b',
)  # fmt: skip
PAIRS_CSV = ((b"1,a\n2,b", b'3,"c', b'd"'), (b'"', b'1"\n2,b\n3,c'), (b"1,a\r2,b", b'3,"c', b'd"'))

Records = list[int | bytes]


def some_of(bad: Sequence[bytes], pairs: Sequence[Sequence[bytes]]) -> st.SearchStrategy[Records]:
    """Good records by their number, bad ones alone, and bad ones side by side."""
    one = st.one_of(st.integers(0, 99), st.sampled_from(bad)).map(lambda record: [record])
    several = st.sampled_from(pairs).map(list[int | bytes])
    return st.lists(st.one_of(one, several), max_size=20).map(
        lambda some: [record for group in some for record in group]
    )


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


@given(some_of(BAD, PAIRS))
def test_every_record_is_a_row_or_bad(records: Records) -> None:
    data = [b'{"seq": %d}' % r if isinstance(r, int) else r for r in records]
    found = decode(data, "json", SCHEMA)
    good = [n for n, r in enumerate(records) if isinstance(r, int)]
    assert found.records.tolist() == good
    assert found.rows.column(0).to_pylist() == [records[n] for n in good]
    assert [n for n, _ in found.bad] == [n for n in range(len(records)) if n not in good]


@given(some_of(BAD_CSV, PAIRS_CSV))
def test_every_record_of_csv_is_a_row_or_bad(records: Records) -> None:
    data = [b'%d,"g\n""h"' % r if isinstance(r, int) else r for r in records]
    found = decode(data, "csv", CSV)
    good = [n for n, r in enumerate(records) if isinstance(r, int)]
    assert found.records.tolist() == good
    assert found.rows.to_pylist() == [{"n": records[n], "text": 'g\n"h'} for n in good]
    assert [n for n, _ in found.bad] == [n for n in range(len(records)) if n not in good]


PIECES = {
    "json": ("{", "}", '{"n":1}', '"n":2', '"text":', '"a"', '"', ",", " ", "\r", "\n", "\0",
             "null", "[", "]", '{"text":"}{"}'),
    "csv": ("1", "a", ",", '"', '""', "\r", "\n", " ", "\x01", "1,a", "2,b", '3,"c"'),
}  # fmt: skip
ONE = pa.schema([("text", pa.string())])


@pytest.mark.parametrize(("form", "schema"), [("json", CSV), ("csv", CSV), ("csv", ONE)])
@given(data=st.data())
def test_a_record_is_decoded_as_if_it_were_alone(
    form: str, schema: pa.Schema, data: st.DataObject
) -> None:
    record = st.lists(st.sampled_from(PIECES[form]), min_size=1, max_size=8).map("".join)
    sound = st.sampled_from(["1,a", "a", '{"n":1}'])
    records = [text.encode() for text in data.draw(st.lists(st.one_of(sound, record), max_size=6))]
    alone = [decode([one], form, schema) for one in records]
    together = decode(records, form, schema)
    assert together.rows.to_pylist() == [row for one in alone for row in one.rows.to_pylist()]
    assert together.records.tolist() == [n for n, one in enumerate(alone) if len(one.records)]
    assert [n for n, _ in together.bad] == [n for n, one in enumerate(alone) if one.bad]
    whole = [n for n, text in enumerate(records) if b"\n" not in text]
    lines = decode_lines(b"".join(records[n] + b"\n" for n in whole), form, schema)
    if lines is not None:
        assert lines.rows.to_pylist() == [row for n in whole for row in alone[n].rows.to_pylist()]
        assert all(len(alone[n].records) == 1 for n in whole)


def test_a_quote_that_swallows_the_mark_of_its_record_is_bad() -> None:
    """Found by the test above: the row before it has no mark, and nulls are left out of sums."""
    found = decode([b',\r"', b'"', b"a"], "csv", ONE)
    assert found.rows.to_pylist() == [{"text": "a"}]
    assert found.records.tolist() == [2]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", b'{"n":1}{"n":2}\n{"n":3}\n{"n":40\n}\n'),
        ("json", b'{"n":1}{"n":2}\n\n'),
        ("json", b'{"n":1} {"n":2}\n{"text":{\n}}\n'),
        ("csv", b"7,g\n\n8,h\n"),
        ("csv", b"7,g\n\r\n8,h\r\n"),
        ("csv", b'7,g\n1,"a\n'),
        ("csv", b'7,g\r8,h\n1,"a\n9,b"\n'),
        ("csv", b'7,g\n1,"a\n8,h\n9,b"\n5,c\n'),
    ],
)
def test_errors_that_make_up_for_each_other_are_not_taken_for_lines(form: str, text: bytes) -> None:
    assert decode_lines(text, form, CSV) is None


def test_records_that_make_up_for_each_other_are_bad_each_for_itself() -> None:
    """They came as four rows, and those of one stream under another's name and offset."""
    found = decode([b'{"seq":1}{"seq":2}', b'{"seq":3}', b'{"seq":40', b"}"], "json", SCHEMA)
    assert found.rows.column("seq").to_pylist() == [3]
    assert found.records.tolist() == [1]
    assert [number for number, _ in found.bad] == [0, 2, 3]


def test_blank_lines_of_csv_are_none_whatever_stands_beside_them() -> None:
    for beside in (b"8,h", b"x,y"):
        found = decode([b"7,g", b"", beside], "csv", CSV)
        assert found.rows.to_pylist()[0] == {"n": 7, "text": "g"}
        assert found.rows.num_rows + len(found.bad) == 2
    one = pa.schema([("text", pa.string())])
    assert decode_lines(b"a\n  \nb\n", "csv", one) is None
    assert decode([b"a", b"  ", b"b"], "csv", one).rows.to_pylist() == [
        {"text": "a"},
        {"text": "b"},
    ]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", b'{"n":1}\r\n {"n":2, "text": null} \n\t{"n":3}\n'),
        ("csv", b'1,"a"\r\n2,5" pipe\n3,""\n'),
    ],
)
def test_lines_that_are_sound_are_read_in_one_go(form: str, text: bytes) -> None:
    found = decode_lines(text, form, CSV)
    assert found is not None
    assert found.rows.column("n").to_pylist() == [1, 2, 3]
    assert decode(text.split(b"\n")[:-1], form, CSV).rows.equals(found.rows)


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
