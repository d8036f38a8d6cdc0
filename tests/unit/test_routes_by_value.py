"""The table by which rows are routed where Spark computes their key: the one their batch names."""

import json
from pathlib import Path

import pytest

from penstock.errors import InvalidTopology
from penstock.model.route import Route
from penstock.model.sources import Streams
from penstock.model.topology import Topology
from penstock.spark.routes.by_value import table_of_batch


def checkpoint(folder: Path) -> str:
    """Two queries, of which one has logged two batches of two sources."""
    for name in ("other", "mine"):
        offsets = folder / "queries" / name / "offsets"
        offsets.mkdir(parents=True)
        (folder / "queries" / name / "metadata").write_text(json.dumps({"id": f"id of {name}"}))
    for batch, version in enumerate(("00000000-a", "00000001-b")):
        lines = [
            "v1", json.dumps({"batchWatermarkMs": 0}),
            json.dumps({"source": "other", "routes": "00000009-x", "seq": 1}),
            json.dumps({"source": "cabs", "routes": version, "seq": batch}),
        ]  # fmt: skip
        (offsets / str(batch)).write_text("\n".join(lines))
    return str(folder / "penstock" / "routes" / "cabs")


def test_a_batch_that_is_repeated_has_the_table_its_offset_names(tmp_path: Path) -> None:
    routes = checkpoint(tmp_path)
    assert [table_of_batch(routes, "id of mine", str(n)) for n in (0, 1, 0)] == [
        "00000000-a", "00000001-b", "00000000-a",
    ]  # fmt: skip


def test_what_is_not_logged_is_routed_by_the_first_table(tmp_path: Path) -> None:
    routes = checkpoint(tmp_path)
    for query, batch in (("id of mine", "7"), ("id of other", "0"), ("nobody", "0"), ("", "")):
        assert table_of_batch(routes, query, batch) is None


def test_lanes_write_what_they_can_see() -> None:
    assert Route(key="vehicle").in_lanes
    assert not Route(key="x DIV 100").in_lanes
    assert not Route(key="area", after="areas").in_lanes
    assert not Route("auto").in_lanes
    again = Route.from_json(Route(key="area", after="areas").to_json())
    assert again.description().startswith("frequency-aware by area of areas over 8 tasks")
    with pytest.raises(InvalidTopology, match=r"Route\(after\) is 7; name an operator"):
        Route(key="area", after=7)  # type: ignore[arg-type]


def test_auto_is_short_for_a_route_that_is_inferred() -> None:
    made = Topology("short", max_latency="5s")
    made.source("cabs", Streams(files="in", schema="seq BIGINT"), route="auto")
    assert made.sources[0].route == Route("auto")
    with pytest.raises(InvalidTopology, match=r'give a Route, as in .* or "auto"'):
        made.source("buses", Streams(files="in", schema="seq BIGINT"), route="clever")
