"""What a topology refuses before anything starts, and in what words."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import InvalidInput, InvalidTopology
from penstock.model.channels import FromChannel
from penstock.model.durations import parse_duration_s
from penstock.model.sinks import Files, Memory, Sink, ToChannel
from penstock.model.topology import Topology


def road() -> Topology:
    made = Topology("road", max_latency="5s")
    made.source("reports", object())
    made.add("fast", "SELECT * FROM reports", "reports")
    made.sink("out", "fast", Memory())
    return made


def unknown_upstream(made: Topology) -> None:
    made.add("tolls", "SELECT * FROM speeds", "speeds", key="segment")


def cycle(made: Topology) -> None:
    made.add("a", "SELECT 1", ["b", "reports"])
    made.add("b", "SELECT 1", "a")


def unknown_sink_upstream(made: Topology) -> None:
    made.sink("more", "slow", Memory())


def dead_end(made: Topology) -> None:
    made.add("lost", "SELECT 1", "reports")


def idle_source(made: Topology) -> None:
    made.source("idle", object())


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (unknown_upstream, ["operator 'tolls'", "upstream 'speeds' is unknown", "reports, fast"]),
        (cycle, ["upstream", "closes the cycle", "a", "b"]),
        (unknown_sink_upstream, ["sink 'more'", "'slow' is unknown"]),
        (dead_end, ["operator 'lost'", "feeds no sink"]),
        (idle_source, ["source 'idle'", "feeds no sink"]),
    ],
)
def test_check_refuses_with_the_name_and_the_field(
    spoil: Callable[[Topology], None], words: list[str]
) -> None:
    made = road()
    spoil(made)
    with pytest.raises(InvalidTopology) as refusal:
        made.check()
    said = str(refusal.value)
    assert all(word in said for word in words)
    assert "\n" not in said
    assert said.endswith(".")


def test_a_sound_topology_passes() -> None:
    road().check()


def test_no_source_and_no_sink_are_refused() -> None:
    empty = Topology("empty", max_latency=1.0)
    with pytest.raises(InvalidTopology, match="has no source"):
        empty.check()
    empty.source("reports", object())
    with pytest.raises(InvalidTopology, match="has no sink"):
        empty.check()


@pytest.mark.parametrize("name", ["reports", "fast", "out"])
def test_a_name_is_taken_once(name: str) -> None:
    with pytest.raises(InvalidTopology, match=f"operator '{name}': the name is taken by a"):
        road().add(name, "SELECT 1", "reports")


@pytest.mark.parametrize("bound", ["0s", "-1s", "fast", "", float("nan"), float("inf"), True, None])
def test_an_impossible_bound_is_refused(bound: object) -> None:
    with pytest.raises(InvalidInput, match="max_latency"):
        Topology("road", max_latency=bound)  # type: ignore[arg-type]


def test_a_bound_below_any_micro_batch_is_refused() -> None:
    with pytest.raises(InvalidTopology, match=r"max_latency is '10ms'; no micro-batch is faster"):
        Topology("road", max_latency="10ms")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.add("x", 7, "reports"), "step is 7"),
        (lambda t: t.add("x", "SELECT 1", []), "upstream is empty"),
        (lambda t: t.add("x", "SELECT 1", ["reports", "reports"]), "name each only once"),
        (lambda t: t.add("no good", "SELECT 1", "reports"), "must be an identifier"),
        (lambda t: t.add("x", "SELECT 1", "reports", key=[1]), "names must be text"),
        (
            lambda t: t.sink("s", "fast", "out/"),
            "give Files, ForeachBatch, Console, Memory or ToChannel",
        ),
        (lambda t: t.sink("s", "fast", Memory(), mode="upsert"), "allowed: append, update"),
        (lambda t: t.sink("s", "fast", Files("out", format="xlsx")), "Files(format) is 'xlsx'"),
        (lambda t: t.sink("s", "fast", Files("")), "Files(path) is empty"),
    ],
)
def test_wrong_declarations_are_refused_at_once(
    call: Callable[[Topology], object], words: str
) -> None:
    with pytest.raises(InvalidTopology) as refusal:
        call(road())
    assert words in str(refusal.value)


def test_operators_come_after_their_upstreams() -> None:
    made = Topology("road", max_latency=5)
    made.source("s", object())
    made.add("late", "SELECT 1", ["early", "s"])
    made.add("early", "SELECT 1", "s")
    assert [operator.name for operator in made.ordered()] == ["early", "late"]


def test_the_decorator_declares_and_returns_the_function() -> None:
    made = road()

    @made.operator("fast", key=["vehicle"])
    def speeds(fast: object) -> object:
        return fast

    assert made.operators[-1].name == "speeds"
    assert made.operators[-1].key == ("vehicle",)
    assert speeds(3) == 3


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5.0), ("250ms", 0.25), ("2 minutes", 120.0), ("1.5h", 5400.0), ("3", 3.0), (0.5, 0.5)],
)
def test_durations_as_people_write_them(text: str | float, seconds: float) -> None:
    assert parse_duration_s(text, "field") == seconds


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Files("out/a"), Files("out/a")),
        (Files("out/a"), Files("out/b/../a/")),
        (Files("out/a"), Files("./out/a")),
        (Files("/data/out"), Files("file:///data/out")),
        (Files("/data/out"), Files("file:/data/out/inner")),
        (Files("/data/some out"), Files("file:///data/some%20out")),
        (Files("out/a"), Files("out/a/inner")),
        (Files("out/a/inner"), Files("out/a")),
        (Files("s3://bucket/out"), Files("s3://bucket/out/")),
        (Files("s3://bucket/out"), Files("s3://bucket//out?region=eu")),
        (Files("gs://bucket/ab"), Files("gs://bucket/a%62")),
        (Files("gs://bucket/ab"), Files("gcs://bucket/ab")),
        (Files("abfs://c@host/ab"), Files("abfss://c@host/a%62/in")),
        (Files("hdfs://host/x"), Files("hdfs://HOST:8020/x")),
        (Files("out/a"), ToChannel("out/a")),
        (ToChannel("out/a"), ToChannel("out/a")),
    ],
)
def test_two_sinks_of_one_directory_are_refused(first: Sink, second: Sink) -> None:
    made = road()
    made.sink("one", "fast", first)
    made.sink("two", "fast", second)
    with pytest.raises(InvalidTopology, match=r"sink 'two': .* sink 'one'") as refusal:
        made.check()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("path", ["s3://bucket/tolls", "file:///data/tolls"])
def test_a_channel_behind_a_url_is_refused(path: str) -> None:
    written, read = road(), road()
    written.sink("tolls", "fast", ToChannel(path))
    with pytest.raises(InvalidTopology, match=r"sink 'tolls': .* is a URL; a channel is in a dir"):
        written.check()
    read.source("rows", FromChannel(path, "me"))
    read.sink("copy", "rows", Files("out/copy"))
    with pytest.raises(InvalidTopology, match=r"source 'rows': .* is a URL"):
        read.check()


def test_a_sink_where_a_channel_is_read_is_refused() -> None:
    made = road()
    made.source("rows", FromChannel("out/channel", "me"))
    made.sink("copy", "rows", Files("out/channel/data"))
    with pytest.raises(InvalidTopology, match=r"sink 'copy': .* source 'rows'"):
        made.check()


def test_a_sink_of_another_spelling_through_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    made = road()
    made.sink("one", "fast", Files(str(tmp_path / "real/out")))
    made.sink("two", "fast", Files(str(tmp_path / "alias/out")))
    with pytest.raises(InvalidTopology, match="sink 'two'"):
        made.check()


def test_sinks_side_by_side_are_welcome() -> None:
    made = road()
    made.source("rows", FromChannel("out/channel", "me"))
    made.sink("one", "fast", Files("out/a"))
    made.sink("two", "fast", Files("out/ab"))
    made.sink("three", "rows", ToChannel("out/other"))
    made.sink("four", "fast", Files("s3://bucket/a"))
    made.sink("five", "fast", Files("s3://other/a"))
    made.sink("six", "fast", Files("abfs://one@host/a"))
    made.sink("seven", "fast", Files("abfs://two@host/a"))
    made.sink("eight", "fast", Files("hdfs://host:9000/x"))
    made.sink("nine", "fast", Files("hdfs://host/x"))
    made.check()


def test_operators_may_reserve_a_share_of_a_cpu() -> None:
    road = Topology("road", max_latency="5s")
    road.source("rows", object())
    road.add("parse", "SELECT * FROM rows", "rows", cpu=0.2)
    road.add("match", "SELECT * FROM parse", "parse", cpu=0.9)
    road.add("plain", "SELECT * FROM parse", "parse")
    assert road.reserved_cpu(["parse", "plain"]) == 0.2
    assert road.reserved_cpu(["parse", "match"]) == 1.0
    assert math.isnan(road.reserved_cpu(["plain"]))
    for wrong in (0, 1.5, "half"):
        with pytest.raises(InvalidTopology, match=r"cpu is .*above 0 and at most 1"):
            road.add("wrong", "SELECT 1", "rows", cpu=wrong)  # type: ignore[arg-type]


def test_an_operator_that_only_a_loop_reads_needs_no_sink() -> None:
    made = Topology("loop", max_latency="5s")
    made.source("rows", object())
    made.feedback("again", "back", "a BIGINT")
    made.add("pass_on", "SELECT a FROM rows UNION ALL SELECT a FROM again", ["rows", "again"])
    made.add("back", "SELECT a FROM pass_on WHERE a > 0", "pass_on")
    made.sink("out", "pass_on", Memory())
    made.check()
    made.add("lost", "SELECT a FROM pass_on", "pass_on")
    with pytest.raises(InvalidTopology, match="operator 'lost' feeds no sink"):
        made.check()


def test_the_strictest_bound_of_the_sinks_rules() -> None:
    road = Topology("road", max_latency="5s")
    road.source("in", object())
    assert road.max_latency_s == 5.0
    road.sink("archive", "in", Memory(), max_latency="60s")
    assert road.max_latency_s == 60.0
    road.sink("page", "in", Memory())
    road.sink("alerts", "in", Memory(), max_latency=2)
    assert road.sink_bounds_s == {"archive": 60.0, "page": 5.0, "alerts": 2.0}
    assert road.max_latency_s == 2.0
    assert road.rewired(road.operators, road.sinks).sink_bounds_s == road.sink_bounds_s
    with pytest.raises(InvalidTopology, match=r"sink 'late': max_latency is '1ms'; no micro-batch"):
        road.sink("late", "in", Memory(), max_latency="1ms")
