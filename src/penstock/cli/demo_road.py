"""What `penstock demo` runs: a toll road with every decision at work, and the director of its load.

The look-up waits and does not compute, so more executors help even where there are two cores. A
batch of this road costs a second and more there whatever is in it: back to back, batches would
spend more on themselves than on rows, so one begins every two seconds at most. A row waits for up
to two seconds and then for its batch, so a bound of 5 s leaves three for the batch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.workloads.gantries import Gantries

if TYPE_CHECKING:
    from penstock.config import Settings
    from penstock.model.topology import Topology
    from penstock.spark.run.elastic import ElasticRun

BASE_RATE_PER_S = 120.0
LOOKUP_WAIT_S = 0.005
BOUND_S = 5.0
AIM = 0.48
BATCH_INTERVAL_S = 2.0
DECLARED = "gantries.toml"


def demo_gantries() -> Gantries:
    """The streams of the demo: 1 -> 4 -> 1 in little more than two minutes."""
    return Gantries(BASE_RATE_PER_S)


def road(
    gantries: Gantries, out: Path, lookup_wait_s: float = LOOKUP_WAIT_S, bound_s: float = BOUND_S
) -> Topology:
    """The demo's topology, reading and writing below a directory."""
    from penstock.model.route import Route
    from penstock.model.sinks import Files
    from penstock.model.sources import Admission
    from penstock.workloads.toll_road import toll_road

    declared = out / DECLARED
    declared.write_text(gantries.declaration(), encoding="utf-8")
    # Small lanes, so that a small load shows how streams are divided among them. No limit for a
    # batch: it would hold some streams back longer than others, and the watermark does not wait.
    admission = Admission(
        lane_capacity=1.25 * gantries.base_rate_per_s,
        lanes_max=6,
        period="4s",
        latency_bound=bound_s / 2,
    )
    return toll_road(
        gantries.streams(str(declared), admission),
        Files(str(out / "tolls")),
        Files(str(out / "accidents")),
        max_latency=f"{bound_s:g}s",
        route=Route("frequency-aware", key="key", partitions=8, top_k=20, period="8s", follow=True),
        lookup_wait_s=lookup_wait_s,
    )


POLICY_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "incremental": {"min_ratio": 0.35, "max_ratio": 0.7},
    "autoscale": {"window_s": 20.0, "theta_min": 0.2, "theta_max": 0.6},
    "autoscale_plus": {"window_s": 20.0},
    "rlearn": {"window_s": 20.0},
}


def demo_settings(
    policy: str, out: Path, policy_options: Mapping[str, Any] | None = None
) -> Settings:
    """Quicker to react than the defaults: the demo has no hour to wait for."""
    from penstock.config import Settings

    return Settings(
        period_s=3.0, policy=policy, aim=1.0 if policy == "promise" else AIM,
        executors_min=1, executors_max=4, slots=2,
        key_groups=2, executor_memory_mb=768, cooldown_out_s=6.0, cooldown_in_s=9.0,
        step_in=1, step_out=1, foresight_s=15.0, scale_down_window_s=9.0,
        policy_options={**POLICY_OPTIONS.get(policy, {}), **(policy_options or {})},
        batch_interval_s=BATCH_INTERVAL_S, allocation="milp", allocation_migrations=2,
        allocation_tolerance=2.0,  # two small key groups: at most 6 percent of a processor apart
        history=str(out / "history.sqlite"),
    )  # fmt: skip


@contextmanager
def directed(run: ElasticRun, gantries: Gantries) -> Iterator[None]:
    """Open the gantries of the rush hour when their time has come, for the time of a block."""
    ended = threading.Event()
    director = threading.Thread(
        target=_open, args=(run, gantries, ended), name="penstock-director", daemon=True
    )
    director.start()
    try:
        yield
    finally:
        ended.set()
        director.join(timeout=10)


def _open(run: ElasticRun, gantries: Gantries, ended: threading.Event) -> None:
    import time

    for gantry, at_s in gantries.openings().items():
        if ended.wait(max(0.0, run.running.epoch_s + at_s - time.time())):
            return
        run.streams.add(gantry, **gantries.known(gantry))
