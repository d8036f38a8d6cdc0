"""When a batch's rows arrived, from Spark's offset log and through channels."""

import json
from pathlib import Path

import numpy as np
import pytest

from penstock.model.arrivals import Arrivals
from penstock.model.channels import FromChannel
from penstock.model.observation import LatencyObservation
from penstock.model.topology import Source
from penstock.spark.channels.entries import Chunk
from penstock.spark.channels.log import Channel
from penstock.spark.measure.batch_arrivals import BatchArrivals
from penstock.spark.measure.foreign_rows import ForeignRows
from penstock.spark.measure.ledger import Ledger, LedgerEntry, summarise
from penstock.spark.measure.progress import BatchReport, Reports
from penstock.spark.sources.running.kinds import running_source
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

SCHEMA = json.dumps({"type": "struct", "fields": []})
EPOCH_S = 1_000.0


def write_offsets(folder: Path, batch: int, *sources: dict[str, object]) -> None:
    """As Spark 4.3 writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["v1", json.dumps({"batchTimestampMs": 1_000_000 + batch}), *map(json.dumps, sources)]
    (folder / str(batch)).write_text("\n".join(lines))


def publish(channel: Channel, batch: int, rows: int, arrivals: Arrivals) -> None:
    staged = channel.directory / "_staged"
    staged.mkdir(exist_ok=True)
    (staged / f"{batch}.arrow").write_bytes(b"rows")
    channel.publish("w", batch, staged, [Chunk(f"{batch}.arrow", rows)], arrivals)


def test_generated_rows_arrive_when_their_number_says(tmp_path: Path) -> None:
    write_offsets(tmp_path / "q/offsets", 0, {"stream": "rows", "row": 10})
    write_offsets(tmp_path / "q/offsets", 1, {"stream": "rows", "row": 30})
    stream = Generator(constant(10.0))
    source = running_source(Source("rows", stream), EPOCH_S)
    arrivals = BatchArrivals((tmp_path / "q").as_uri(), {"rows": source})
    (second,) = arrivals.of(1)
    assert second.rows == 20
    assert second.last_s - second.first_s == pytest.approx(1.9)
    assert second.mean_s == pytest.approx((second.first_s + second.last_s) / 2)
    assert arrivals.of(7) == ()


def test_rows_of_a_channel_bring_their_arrivals(tmp_path: Path) -> None:
    channel = Channel.create(tmp_path / "c", SCHEMA)
    channel.register("reader")
    publish(channel, 0, 10, Arrivals(100.0, 1.0, 3.0, 2.0))
    publish(channel, 1, 10, Arrivals(100.0, 3.0, 5.0, 4.0))
    offsets = tmp_path / "q/offsets"
    write_offsets(offsets, 0, {"channel": "in", "row": 5})
    write_offsets(offsets, 1, {"channel": "in", "row": 20})
    write_offsets(offsets, 2, {"channel": "in", "row": 20})
    where = (tmp_path / "q").as_uri()
    source = running_source(Source("in", FromChannel(str(channel.directory), "reader")))
    arrivals = BatchArrivals(where, {"in": source})
    assert arrivals.of(0) == (Arrivals(50.0, 1.0, 3.0, 2.0),)
    assert [part.rows for part in arrivals.of(1)] == [50.0, 100.0]
    whole = arrivals.summary(1)
    assert whole == Arrivals(150.0, 1.0, 5.0, pytest.approx((50 * 2 + 100 * 4) / 150))
    # What a watermark closes in a batch without rows is told with the last that had some, though
    # these have been passed and removed meanwhile.
    channel.advance("reader", 20)
    assert arrivals.summary(2) == whole


def test_latency_counts_from_the_outer_arrivals() -> None:
    ledger = Ledger({})
    ledger.record(LedgerEntry("q", 0, (Arrivals(50.0, 1.0, 3.0, 1.5),), 10.0))
    seen = summarise(ledger.take(), max_latency_s=8.0)
    assert seen is not None
    assert (seen.count, seen.mean_s, seen.max_s) == (50, pytest.approx(8.5), pytest.approx(9.0))


class Loop:
    """A query that reads 100 rows a second and, of what it emits, a fifth once more.

    A batch starts each second, takes the rows of the second before and ends when the next starts.
    """

    def __init__(self, folder: Path) -> None:
        self.channel = Channel.create(folder / "c", SCHEMA)
        self.channel.register("q")
        self._offsets, self._returned = folder / "q/offsets", 0
        rows = running_source(Source("rows", Generator(constant(100.0))), EPOCH_S)
        back = running_source(Source("back", FromChannel(str(self.channel.directory), "q")))
        where = (folder / "q").as_uri()
        self.arrivals = BatchArrivals(where, {"rows": rows, "back": back}, looped={"back"})
        self._truth = np.empty(0)  # arrivals of the rows that come back
        self._rng = np.random.default_rng(1)

    def batch(self, number: int) -> tuple[LatencyObservation, float]:
        """One batch: what is measured, and the true mean latency of its rows."""
        read = self._returned
        write_offsets(
            self._offsets, number, {"stream": "rows", "row": 100 * (number + 1)},
            {"channel": "back", "row": read},
        )  # fmt: skip
        done_s = EPOCH_S + number + 2.0
        measured = summarise([LedgerEntry("q", number, self.arrivals.of(number), done_s)], 5.0)
        assert measured is not None
        fresh = EPOCH_S + number + np.arange(100) / 100
        inside = np.concatenate([fresh, self._truth])
        self._truth = self._rng.choice(inside, len(inside) // 5, replace=False)
        summary = self.arrivals.pass_on(number)
        assert summary is not None
        publish(self.channel, number, len(self._truth), summary)
        self._returned += len(self._truth)
        return measured, float(done_s - inside.mean())


def test_latency_in_a_loop_stays_what_it_is(tmp_path: Path) -> None:
    """Arrivals that came back whole with each round told 6.5 s at batch 10, 31.5 s at batch 60."""
    loop = Loop(tmp_path)
    seen = [loop.batch(number) for number in range(61)]
    for number in (5, 10, 30, 60):
        measured, truth_s = seen[number]
        assert measured.mean_s == pytest.approx(truth_s, rel=0.05)
        assert measured.count == pytest.approx(125, rel=0.05)
        assert measured.max_s < 8.0
        assert measured.in_time_share > 0.99


def test_a_batch_that_publishes_nothing_has_not_passed_its_arrivals_on(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    loop.batch(0)
    assert loop.arrivals.passed_on(0)
    assert not loop.arrivals.passed_on(1)


def test_rows_of_kafka_came_since_the_batch_before(tmp_path: Path) -> None:
    """Spark's own sources keep no arrival times; without any, an overload would not show."""
    folder = tmp_path / "q/offsets"
    write_offsets(folder, 0, {"road": {"0": 10, "1": 20}})
    write_offsets(folder, 1, {"road": {"0": 60, "1": 70}})
    write_offsets(folder, 2, {"road": {"0": 60, "1": 70}})
    arrivals = BatchArrivals((tmp_path / "q").as_uri(), {})
    (first,) = arrivals.of(1)
    assert (first.rows, first.first_s, first.last_s) == (100, 1000.0, 1000.001)
    assert arrivals.of(2) == ()
    assert arrivals.summary(2) == arrivals.summary(1)


def test_what_kafka_has_left_has_come() -> None:
    """A hundred rows a second came, and batches took sixty: the rest waits."""
    progress = {
        "id": "1", "timestamp": "2026-01-01T00:00:00.000Z", "durationMs": {"triggerExecution": 900},
        "observedMetrics": {},
    }  # fmt: skip

    def report(batch: int) -> BatchReport:
        source = {
            "startOffset": {"road": {"0": 60 * batch}},
            "endOffset": {"road": {"0": 60 * batch + 60}},
            "latestOffset": {"road": {"0": 100 * batch + 100}},
            "numInputRows": 60,
        }
        reports = Reports(Ledger({}))
        reports.follow("1", "q", 0.0)
        reports.receive(json.dumps({**progress, "batchId": batch, "sources": [source]}))
        (taken,) = reports.take()
        return taken

    foreign = ForeignRows()
    assert foreign.came([report(0)]) == {"q": 60}, "what waited at first came at any time"
    assert foreign.came([report(1), report(2)]) == {"q": 200}
    assert foreign.waiting == {"q": 120}
    assert foreign.came([]) == {}
