"""Malformed documents, options, plans, topologies, meta-data and records, by the hundred.

Each is refused in one sentence or handled; never a traceback, a hang or an internal error.
Run more of them with `make fuzz` (10,000 in all, or CASES=n); a failure prints its seed.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuzz.attempts import EACH, refused_or_done, some_of_both, soon
from fuzz.malformed import HOSTILE, Malformed
from penstock import Topology
from penstock.cli.advise import KINDS, ROOMS
from penstock.config import OPTIONS
from penstock.config.settings import FIELD_OF
from penstock.config.sources import from_keywords
from penstock.control.resolved_settings import resolved_settings
from penstock.documents import check_document, parse_document
from penstock.sim.scenario_file import load_scenario
from penstock.spark.run.place import read_plan_file
from penstock.spark.sources.backends.decoding import decode
from penstock.spark.sources.declared import read_declared

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_advise(kind: str) -> None:
    from importlib import import_module

    room = import_module(ROOMS[kind])
    refused = answered = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        document = malformed.document(room.SCHEMA)
        content = json.dumps(document).encode()
        if seed % 5 == 0:
            content = malformed.bytes_of(content)

        def attempt(content: bytes = content) -> None:
            parsed = parse_document(content, "document")
            check_document(parsed, room.SCHEMA)
            json.dumps(room.advise(parsed), default=float)

        if refused_or_done(attempt, seed, content):
            refused += 1
        else:
            answered += 1
    some_of_both(refused)


def test_options() -> None:
    refused = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        chosen = [malformed.choice(OPTIONS) for _ in range(3)]
        given = {FIELD_OF[option.name]: malformed.value() for option in chosen}
        refused += refused_or_done(
            lambda given=given: resolved_settings(from_keywords(given), environment={}), seed, given
        )
    some_of_both(refused)


def test_files_of_options(tmp_path: Path) -> None:
    written = {
        "penstock": {"policy": "promise", "period": "5s", "executors-max": 4, "share": 0.99,
                     "policy-options": {"window_s": 30}, "schedule": "mon-fri 08:00-18:00 min 2"}
    }  # fmt: skip
    refused = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        table = written["penstock"] | {malformed.choice(OPTIONS).name: malformed.value()}
        text = malformed.toml({"penstock": table})
        content = malformed.bytes_of(text.encode()) if seed % 3 == 0 else text.encode()
        file = tmp_path / "penstock.toml"
        file.write_bytes(content)
        refused += refused_or_done(
            lambda file=file: resolved_settings(file=file, environment={}), seed, content
        )
    some_of_both(refused)


PLANS: tuple[dict[str, Any], ...] = (
    {"components": [{"operators": ["speeds", "tolls"], "key": ["direction", "segment"]}]},
    {
        "queries": [{
            "name": "road", "sinks": ["out"], "output_mode": "append",
            "components": [{"name": "speeds", "operators": ["speeds"], "key": ["vehicle"]}],
        }],
        "reasons": ["one shuffle less"],
    },
)  # fmt: skip


def test_plan_files(tmp_path: Path) -> None:
    refused = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        content = json.dumps(malformed.mutated(malformed.choice(PLANS))).encode()
        if seed % 2:
            content = malformed.bytes_of(content)
        file = tmp_path / "plan.json"
        file.write_bytes(content)
        refused += refused_or_done(lambda file=file: read_plan_file(file), seed, content)
    some_of_both(refused)


def test_scenarios(tmp_path: Path) -> None:
    scenarios = sorted((ROOT / "examples/scenarios").glob("*.toml"))
    refused = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        text = malformed.choice(scenarios).read_text()
        if seed % 3 == 0:
            content = malformed.bytes_of(text.encode())
        else:
            content = malformed.toml(tomllib.loads(text)).encode()
        file = tmp_path / "scenario.toml"
        file.write_bytes(content)
        refused += refused_or_done(lambda file=file: load_scenario(file), seed, content)
    some_of_both(refused)


DECLARED = {
    "streams": {
        "cab:*": {"rate": 10, "lasts": "30m"},
        "cab:1": {"rate": 5, "active": "every day 09:00 to 17:00", "period": "24h"},
    }
}


def test_meta_data(tmp_path: Path) -> None:
    refused = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        streams = malformed.mutated(DECLARED["streams"])
        tables = streams if isinstance(streams, dict) else {}
        text = "\n".join(
            f"[streams.{json.dumps(name)}]\n"
            + "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items() if value)
            for name, table in tables.items()
            if isinstance(table, dict)
        )
        content = malformed.bytes_of(text.encode()) if seed % 2 else text.encode()
        file = tmp_path / "streams.toml"
        file.write_bytes(content)
        refused += refused_or_done(lambda file=file: read_declared(file), seed, content)
    some_of_both(refused)


def test_topologies() -> None:
    refused = 0

    def build(malformed: Malformed) -> None:
        anything = (*HOSTILE, "rows", "kept", "counted", "SELECT * FROM rows", "5s", 0.9)
        made = Topology(
            malformed.choice(("road", malformed.value())),
            max_latency=malformed.choice(("5s", malformed.value())),
            share=malformed.choice((0.99, malformed.value())),
        )
        made.source(malformed.choice(("rows", malformed.value())), lambda spark: spark.range(1))
        for name in ("kept", malformed.choice(anything)):
            made.add(name, malformed.choice(("SELECT * FROM rows", malformed.value())),
                     malformed.choice(("rows", malformed.choice(anything))))  # fmt: skip
        made.check()

    for seed in range(EACH):
        refused += refused_or_done(lambda s=seed: build(Malformed(s)), seed, "a topology")
    some_of_both(refused)


SCHEMA = pa.schema([("key", pa.string()), ("value", pa.float64()), ("at", pa.timestamp("us"))])
RECORD = {
    "json": b'{"key": "a", "value": 1.5, "at": "2026-01-02T03:04:05"}',
    "csv": b"a,1.5,2026-01-02T03:04:05",
}


@pytest.mark.parametrize("form", RECORD)
def test_records(form: str) -> None:
    """Lines that are no records are set aside one by one, and the others are read."""
    bad = 0
    for seed in range(EACH):
        malformed = Malformed(seed)
        good, wrong = RECORD[form], malformed.bytes_of(RECORD[form]).replace(b"\n", b"")
        with soon():
            found = decode([good, wrong, good], form, SCHEMA)
        lines = 3 if wrong.strip() else 2  # an empty line is none
        assert found.rows.num_rows + len(found.bad) == lines, (seed, wrong)
        assert {0, 2} <= set(found.records.tolist()), (seed, wrong)
        bad += len(found.bad)
    some_of_both(bad)
