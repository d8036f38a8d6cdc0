"""What `Streams` and `Admission` refuse, and what of them is written down."""

import pytest

from penstock.errors import InvalidInput, notes_of
from penstock.model.sources import Admission, Streams


class Inner:
    class Deep:
        pass


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "names none of files, generators, redis, kafka, backend"),
        ({"files": "a", "redis": "b"}, "names files, redis of"),
        ({"files": ""}, "Streams(files) is empty"),
        ({"files": "a"}, "Streams(schema) is not given"),
        ({"files": "a", "schema": " "}, "Streams(schema) is not given"),
        ({"files": "a", "schema": "x INT", "format": "xml"}, "allowed for files: json, csv, arrow"),
        ({"kafka": "h:1", "topics": "t"}, "give a list of at least one topic"),
        ({"backend": "tables"}, "Streams(backend) is 'tables'; write package.module:Class"),
        ({"backend": 3}, "Streams(backend) is 3; give a class"),
        ({"backend": Inner.Deep}, "put it into a module of its own, at its top level"),
    ],
)
def test_streams_are_refused_in_one_sentence(given: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Streams(**given)  # type: ignore[arg-type]
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strategy": "best"}, "allowed: drf-m, drf, ard, ari, par"),
        ({"lanes_max": 0}, "Admission(lanes_max) is 0; it must be from 1"),
        ({"drain_below": 2}, "it must be in (0, 1] or None"),
        ({"overload_by": "mood"}, "allowed: either, queue"),
        ({"period": "0s"}, "Admission(period) is '0s'"),
    ],
)
def test_admission_is_refused_in_one_sentence(given: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Admission(**given)  # type: ignore[arg-type]
    assert said in str(refusal.value)


def test_what_is_written_down_holds_no_password() -> None:
    streams = Streams(redis="redis://user:hush@host:6379/1", schema="x INT")
    assert "hush" not in streams.identity
    assert "host:6379/1" in streams.identity


def test_a_backend_of_ones_own_is_named_by_where_it_is() -> None:
    options = {"database": "shops.sqlite"}
    streams = Streams(backend=Inner, options=options)
    assert streams.kind == f"{Inner.__module__}:Inner"
    assert streams.backend_options == options
    assert Streams(backend="shop.tables:Tables").kind == "shop.tables:Tables"


def test_a_source_that_is_refused_names_the_page_that_helps() -> None:
    with pytest.raises(InvalidInput) as refused:
        Streams()
    assert notes_of(refused.value) == ("See penstock docs source.",)
