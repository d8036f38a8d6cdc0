"""Scenarios from TOML files; docs/simulator.md describes the form."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.documents import Schema, check_document
from penstock.errors import InvalidInput, documented
from penstock.model.durations import parse_duration_s
from penstock.sim.feasible import check_bound
from penstock.sim.network import Network
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import USUAL_SCV, ServiceTime
from penstock.workloads.csv_load import csv_load, positive
from penstock.workloads.profiles import PROFILES, RateProfile, named

_TEXT = {"type": "string", "minLength": 1}
_DURATION = {"type": ["string", "number"]}
_NUMBER = {"type": "number", "minimum": -1e300, "maximum": 1e300}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 100_000}
_LEAST_STEP_S = 0.001
PEAK = "peak_processors"  # of a load from a file: what its highest rate keeps busy


def _table(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }


SCHEMA: Schema = _table(
    ["scenario", "source", "operator"],
    scenario=_table(
        ["name", "max_latency"],
        name=_TEXT,
        duration=_DURATION,
        max_latency=_DURATION,
        share=_NUMBER,
        weight=_NUMBER,
        sharing={"enum": ["time", "space"]},
        period=_DURATION,
        step=_DURATION,
        day=_DURATION,
        jobs_per_step=_COUNT,
        seed={"type": "integer", "minimum": 0},
    ),
    cluster=_table(
        [],
        executors=_COUNT,
        min_executors=_COUNT,
        max_executors=_COUNT,
        slots=_COUNT,
        startup=_DURATION,
        pause=_DURATION,
        key_groups=_COUNT,
        key_skew={"type": "number", "minimum": 0, "maximum": 10},
        migration=_DURATION,
        cores=_COUNT,
    ),
    batch=_table(
        [],
        fixed=_DURATION,
        per_processor=_DURATION,
        table={
            "type": "array",
            "items": {
                "type": "array",
                "prefixItems": [_COUNT, _DURATION],
                "minItems": 2,
                "maxItems": 2,
            },
        },
        trigger=_DURATION,
    ),
    source={
        "type": "array",
        "minItems": 1,
        "items": _table(
            ["name", "rate"],
            name=_TEXT,
            rate={"type": "object"},
            arrivals={"enum": ["poisson", "regular"]},
            earlier=_TEXT,
        ),
    },
    operator={
        "type": "array",
        "minItems": 1,
        "items": _table(
            ["name", "from", "service"],
            name=_TEXT,
            **{
                "from": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": ["string", "object"],
                        "required": ["name"],
                        "additionalProperties": False,
                        "properties": {"name": _TEXT, "share": _NUMBER},
                    },
                }
            },
            service=_table(
                ["mean"],
                kind={"enum": list(USUAL_SCV)},
                mean=_DURATION,
                scv=_NUMBER,
            ),
            selectivity=_NUMBER,
            processors=_COUNT,
            component={"type": "string"},
            sink={"type": "boolean"},
            dispatch={"enum": ["shared", "round-robin"]},
            cheaper=_NUMBER,
            forms={"type": "object", "additionalProperties": _NUMBER},
        ),
    },
)


def load_scenario(path: Path, share: float | None = None) -> Scenario:
    """The scenario in a TOML file, or one sentence that names the field that is wrong.

    `share` is promised instead of its own.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}.") from error
    except ValueError as error:
        raise InvalidInput(f"{path} holds a number that is too long to be read.") from error
    with documented("simulator"):
        try:
            return scenario_of(document, path.parent, share)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from error


def scenario_of(
    document: Mapping[str, Any], folder: Path = Path(), share: float | None = None
) -> Scenario:
    """The scenario of a document in the form of the TOML file; files it names are in a folder."""
    check_document(document, SCHEMA)
    head = document["scenario"]
    optional: dict[str, Any] = {
        "period_s": _duration_s(head, "period", "scenario", 5.0),
        "step_s": _duration_s(head, "step", "scenario", 0.1),
        "day_s": _duration_s(head, "day", "scenario", 86_400.0),
    }
    if optional["step_s"] < _LEAST_STEP_S:
        raise InvalidInput(f"scenario.step is {head['step']!r}; it must be at least 1 ms.")
    for name in ("share", "weight", "sharing", "jobs_per_step", "seed"):
        if name in head:
            optional[name] = head[name]
    if share is not None:
        optional["share"] = share
    if head.get("sharing") == "space" and "batch" in document:
        raise InvalidInput("batch is given, but sharing is 'space'; only 'time' has batches.")
    sources = tuple(_source(entry, folder) for entry in document["source"])
    if len({source.earlier is None for source in sources}) > 1:
        raise InvalidInput(
            "some sources have 'earlier' and some have not; give it for all or none."
        )
    scenario = Scenario(
        name=head["name"],
        duration_s=_duration_s(head, "duration", "scenario", _length_s(document, sources)),
        max_latency_s=_duration_s(head, "max_latency", "scenario"),
        sources=sources,
        operators=tuple(_operator(entry) for entry in document["operator"]),
        cluster=_cluster(document.get("cluster", {})),
        batch=_batch(document.get("batch", {})),
        **optional,
    )
    if scenario.sharing == "space" and any(operator.component for operator in scenario.operators):
        raise InvalidInput("an operator has a component, but sharing is 'space'; leave it out.")
    network = Network(scenario)  # refuses what only the whole graph shows
    in_rows = tuple(
        source.scaled(1.0 / network.work_s(source.name)) if PEAK in entry["rate"] else source
        for source, entry in zip(sources, document["source"], strict=True)
    )
    if in_rows != sources:
        scenario = replace(scenario, sources=in_rows)
        Network(scenario)
    check_bound(scenario)
    return scenario


def _length_s(document: Mapping[str, Any], sources: Sequence[SourceSpec]) -> float:
    """How long the loads from files are: the duration, where it is left out."""
    ends_s = [
        source.profile.duration_s
        for source, entry in zip(sources, document["source"], strict=True)
        if entry["rate"].get("profile") == "csv"
    ]
    if not ends_s and "duration" not in document["scenario"]:
        raise InvalidInput(
            "scenario lacks 'duration'; only a load from a CSV file has an end of its own."
        )
    return max(ends_s, default=0.0)


def _duration_s(
    table: Mapping[str, Any], name: str, where: str, default: float | None = None
) -> float:
    if name not in table and default is not None:
        return default
    return parse_duration_s(table[name], f"{where}.{name}")


def _duration_or_zero_s(table: Mapping[str, Any], name: str, where: str, default: float) -> float:
    value = table.get(name, default)
    if not isinstance(value, bool) and value in (0, "0", "0s"):
        return 0.0
    return parse_duration_s(value, f"{where}.{name}")


def _cluster(table: Mapping[str, Any]) -> ClusterSpec:
    least = table.get("min_executors", 1)
    return ClusterSpec(
        executors=table.get("executors", least),
        min_executors=least,
        max_executors=table.get("max_executors", max(4, least)),
        slots=table.get("slots", 1),
        startup_s=_duration_or_zero_s(table, "startup", "cluster", 0.0),
        pause_s=_duration_or_zero_s(table, "pause", "cluster", 0.0),
        key_groups=table.get("key_groups", 0),
        key_skew=table.get("key_skew", 0.0),
        migration_s=_duration_or_zero_s(table, "migration", "cluster", 0.0),
        cores=table.get("cores", 0),
    )


def _batch(table: Mapping[str, Any]) -> BatchCost:
    if "table" in table and ("fixed" in table or "per_processor" in table):
        raise InvalidInput("batch has a table and also fixed or per_processor; give one of them.")
    return BatchCost(
        fixed_s=_duration_or_zero_s(table, "fixed", "batch", 0.25),
        per_processor_s=_duration_or_zero_s(table, "per_processor", "batch", 0.0),
        table=tuple(
            (entry[0], parse_duration_s(entry[1], f"batch.table[{number}][1]"))
            for number, entry in enumerate(table.get("table", []))
        ),
        trigger_s=_duration_or_zero_s(table, "trigger", "batch", 0.0),
    )


def _source(entry: Mapping[str, Any], folder: Path) -> SourceSpec:
    try:
        profile = _profile(entry["rate"], folder)
    except InvalidInput as error:
        raise InvalidInput(f"source {entry['name']!r}: rate: {error}") from error
    arrivals, earlier = entry.get("arrivals", "poisson"), _earlier(entry, profile, folder)
    return SourceSpec(entry["name"], profile, arrivals, earlier)


def _earlier(entry: Mapping[str, Any], profile: RateProfile, folder: Path) -> RateProfile | None:
    """The load of a second file of the same form, on the scale of the first."""
    if "earlier" not in entry:
        return None
    where, rate = f"source {entry['name']!r}: earlier", entry["rate"]
    if rate.get("profile") != "csv":
        raise InvalidInput(f"{where} is a CSV file, so rate has to be of profile 'csv' as well.")
    same = {key: rate[key] for key in ("profile", "time", "value", "step_s") if key in rate}
    try:
        now, before = (
            _profile({**same, "file": file}, folder) for file in (rate["file"], entry["earlier"])
        )
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error
    return before.scaled(profile.peak_rate_per_s / now.peak_rate_per_s)


def _profile(rate: Mapping[str, Any], folder: Path) -> RateProfile:
    """A profile; one with its peak in processors is in processors until rows are known to cost."""
    spec = dict(rate)
    if spec.get("profile") == "csv":
        if isinstance(spec.get("file"), str):
            spec["file"] = str(folder / spec["file"])
        if PEAK in spec and "peak_per_s" in spec:
            raise InvalidInput(f"peak_per_s and {PEAK} are both given; give one of them.")
        if PEAK in spec:
            spec["peak_per_s"] = positive(spec.pop(PEAK), PEAK)
    return named(spec, {**PROFILES, "csv": csv_load})


def _operator(entry: Mapping[str, Any]) -> OperatorSpec:
    service, what = entry["service"], f"operator {entry['name']!r}"
    mean_s = parse_duration_s(service["mean"], f"{what}: service.mean")
    try:
        law = ServiceTime(service.get("kind", "exponential"), mean_s, service.get("scv"))
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error}") from error
    upstreams = tuple(
        Upstream(up) if isinstance(up, str) else Upstream(up["name"], float(up.get("share", 1.0)))
        for up in entry["from"]
    )
    return OperatorSpec(
        entry["name"], upstreams, law, float(entry.get("selectivity", 1.0)),
        entry.get("processors", 1), entry.get("component", ""), entry.get("sink", False),
        entry.get("dispatch", "shared"), float(entry.get("cheaper", 1.0)),
        tuple(entry.get("forms", {}).items()),
    )  # fmt: skip
