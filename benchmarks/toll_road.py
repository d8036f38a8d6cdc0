"""The toll road of the demo under every policy and fixed sizes, side by side.

Each run has a cluster of its own in a process of its own. What it published is compared with a
batch recomputation of the same rows, so a policy cannot be quick by being wrong. Policies have the
options that the demo gives them; `rlearn` was trained by `penstock train` on the simulated ramp.

Run: python -m benchmarks toll_road, or python -m benchmarks.toll_road drs for one of them, and
python -m benchmarks.toll_road drs 10 with a bound of 10 s.
"""

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.cli.demo_road import BOUND_S, demo_gantries, demo_settings, directed, road
from penstock.config import Settings
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.scaling.policies.registry import has_option, names
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place

POLICIES = tuple(name for name in names() if name != "static")
FIXED = "static-"
LIMIT_S = 600
RAMP = Path(__file__).parents[1] / "examples" / "scenarios" / "ramp.toml"


def run() -> Iterator[dict[str, Any]]:
    """Two rows for each policy: results in time, and executor-seconds."""
    least, most = _alone(f"{FIXED}1"), _alone(f"{FIXED}4")
    for policy in POLICIES:
        ours = _alone(policy)
        conditions = (
            f"in time {ours['in_time_share']:.3f}, static 1 {least['in_time_share']:.3f}, static 4 "
            f"{most['in_time_share']:.3f}; executor-seconds {ours['executor_seconds']:.0f}, static "
            f"1 {least['executor_seconds']:.0f}, static 4 {most['executor_seconds']:.0f}; mean "
            f"latency {ours['latency_mean_s']:.2f} s, largest {ours['latency_max_s']:.1f} s; "
            f"{ours['reconfigurations']} reconfigurations; {ours['compared']} results equal a "
            f"batch recomputation; options: {ours['options'] or 'defaults'}"
        )
        yield {
            "name": f"toll_road_in_time/{policy}",
            "baseline": least["in_time_share"],
            "ours": ours["in_time_share"],
            "unit": "share of results",
            "ratio": ours["in_time_share"] / max(least["in_time_share"], 1e-9),
            "conditions": f"baseline: one executor, never changed; {conditions}",
        }
        yield {
            "name": f"toll_road_cost/{policy}",
            "baseline": most["executor_seconds"],
            "ours": ours["executor_seconds"],
            "unit": "executor-seconds",
            "ratio": most["executor_seconds"] / ours["executor_seconds"],
            "conditions": f"baseline: four executors, never changed; {conditions}",
        }


def _alone(policy: str) -> dict[str, Any]:
    print(f"benchmarks: toll road under {policy} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks.toll_road", policy]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True)
    answer: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return answer


def one(policy: str, bound_s: float = BOUND_S) -> dict[str, Any]:
    """A run of the demo's road under a policy, or with `static-N` executors."""
    fixed = policy.removeprefix(FIXED)
    name = policy if fixed == policy else "static"
    with tempfile.TemporaryDirectory(prefix="penstock-toll-road-") as folder:
        out = Path(folder)
        gantries = demo_gantries()
        topology = road(gantries, out, bound_s=bound_s)
        settings = demo_settings(name, out)
        if fixed != policy:
            settings = replace(settings, executors_min=int(fixed), executors_max=int(fixed))
        if has_option(name, "knowledge"):
            trained(topology.name, settings)
        place = Place("embedded", out / "checkpoint", warm_up=True, plan="auto")
        with (
            ElasticRun(topology, settings, place) as running,
            directed(running, gantries),
        ):
            running.wait(gantries.rush.end_s + 120)
            summary = running.finish()
            epoch_s = running.running.epoch_s
            rows = [g.batch(0, g.rows or 0, epoch_s) for g in gantries.all.values()]
            at_once = road(gantries, out, lookup_wait_s=0.0)  # the same rows, without the waits
            compared = compare(at_once, running.session, pa.Table.from_batches(rows))
    options = ", ".join(f"{key}={value:g}" for key, value in settings.policy_options.items())
    return {**asdict(summary), "compared": compared, "options": options}


def trained(topology: str, settings: Settings) -> None:
    """Let a policy that learns begin with what the simulated rush hour teaches."""
    command = ["-m", "penstock", "train", str(RAMP), "--for", topology]
    subprocess.run(
        [sys.executable, *command, "--history", settings.history],
        stdout=subprocess.DEVNULL,
        check=True,
    )


def compare(topology: Topology, session: SparkSession, reports: pa.Table) -> int:
    """How many published rows equal a batch recomputation; a difference ends the benchmark."""
    source = topology.sources[0]
    frames: dict[str, DataFrame] = {source.name: session.createDataFrame(reports)}
    for operator in topology.ordered():
        if operator.sql is not None:
            for upstream in operator.upstreams:
                frames[upstream].createOrReplaceTempView(upstream)
            frames[operator.name] = session.sql(operator.sql)
        else:
            assert operator.function is not None
            frames[operator.name] = operator.function(*(frames[u] for u in operator.upstreams))
    return sum(
        _compared(binding.name, frames[binding.upstream], session.read.parquet(binding.sink.path))
        for binding in topology.sinks
        if isinstance(binding.sink, Files)
    )


def _compared(sink: str, expected: DataFrame, published: DataFrame) -> int:
    """Every published row is expected, and up to the last window published none is missing."""
    columns = sorted(expected.columns)

    def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
        found = frame.select(*columns).collect()
        return sorted(
            tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in found
        )

    when = columns.index("since")
    ours, theirs = rows(published), rows(expected)
    last = max((row[when] for row in ours), default=None)
    due = [row for row in theirs if last is not None and row[when] <= last]
    if ours != due:
        raise RuntimeError(f"{sink}: {len(ours)} rows published, {len(due)} expected, not equal")
    return len(ours)


if __name__ == "__main__":
    found = one(sys.argv[1], *map(float, sys.argv[2:3]))
    print(json.dumps({k: None if v != v or v in (math.inf,) else v for k, v in found.items()}))
