"""`penstock demo`: a toll road whose load goes 1 -> 4 -> 1, on an embedded cluster."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.dashboard import DEFAULT_PORT, PageFlag, PortOption, TokenOption, beside
from penstock.cli.output import JsonFlag, print_json
from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.config import Settings
    from penstock.model.topology import Topology
    from penstock.workloads.profiles import RateProfile

BASE_RATE_PER_S = 150.0
MARK = ".penstock-demo"  # only a directory with this file is emptied for the next demo


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Where results, history and report.html go.")
    ] = Path("runs/demo"),
    policy: Annotated[
        str, typer.Option("--policy", help="The scaling policy, by its name.")
    ] = "incremental",
    page: Annotated[bool, PageFlag] = False,
    port: Annotated[int, PortOption] = DEFAULT_PORT,
    token: Annotated[str | None, TokenOption] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Watch a toll road keep its latency bound while its load goes 1 -> 4 -> 1."""
    from penstock.cli.live import LiveView
    from penstock.cli.report import write_report
    from penstock.cli.run import summary_lines
    from penstock.spark.elastic import ElasticRun, Place

    _empty(out)
    rate = load_profile()
    topology = road(rate, out)
    settings = demo_settings(policy, out)
    print(
        f"toll road: {BASE_RATE_PER_S:g} rows/s, then {4 * BASE_RATE_PER_S:g}, then "
        f"{BASE_RATE_PER_S:g}, for {rate.duration_s:.0f} s; bound {topology.max_latency_s:g} s; "
        f"executors {settings.executors_min} to {settings.executors_max}\n"
        "starting a cluster and warming it up ...",
        file=sys.stderr,
        flush=True,
    )
    view = LiveView("toll road", topology.max_latency_s, int(rate.rows))
    place = Place("embedded", out / "checkpoint", warm_up=True)
    with (
        beside(page, settings.history, port, token) as controls,
        ElasticRun(topology, settings, place, view.step) as running,
        view.shown(),
    ):
        controls.run = running
        running.wait(rate.duration_s + 60)
        summary, steps = running.finish(), list(running.steps)
    write_report(out / "report.html", "Penstock demo: toll road", steps, summary)
    if as_json:
        print_json({"summary": summary, "report": str(out / "report.html")})
    else:
        print("\n".join(summary_lines(summary)))
        print(f"report: {out / 'report.html'}")
        print(f"why: penstock history --changes --db {out / 'history.sqlite'}")


def load_profile() -> RateProfile:
    """1 -> 4 -> 1 in under two minutes."""
    from penstock.workloads.profiles import knots

    low, high = BASE_RATE_PER_S, 4 * BASE_RATE_PER_S
    return knots([0, 15, 40, 65, 75, 115], [low, low, high, high, low, low])


def road(rate: RateProfile, out: Path) -> Topology:
    """The demo's topology, writing below a directory."""
    from penstock.model.sinks import Files
    from penstock.workloads.toll_road import toll_road

    tolls, accidents = Files(str(out / "tolls")), Files(str(out / "accidents"))
    # A batch takes at most one bound's worth of the highest load, or catching up were one batch.
    most = int(5 * rate.peak_rate_per_s)
    return toll_road(rate, tolls, accidents, rows=int(rate.rows), max_rows=most)


def demo_settings(policy: str, out: Path) -> Settings:
    """Quicker to react than the defaults: the demo has no hour to wait for."""
    from penstock.config import Settings

    return Settings(
        period_s=3.0, policy=policy, executors_min=1, executors_max=4, slots=2, key_groups=2,
        executor_memory_mb=768, cooldown_out_s=3.0, cooldown_in_s=9.0, step_in=1,
        threshold_min=0.35, threshold_max=0.75, trend_window_s=20.0,
        history=str(out / "history.sqlite"),
    )  # fmt: skip


def _empty(out: Path) -> None:
    """Make room; never in a directory that holds anything but an earlier demo."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not (out / MARK).is_file():
            raise InvalidInput(
                f"--out {out} exists and is not of an earlier demo; name a new or empty directory."
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).touch()
