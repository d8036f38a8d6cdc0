"""`penstock demo`: a toll road whose load goes 1 -> 4 -> 1, on an embedded cluster."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.dashboard import (
    DEFAULT_PORT,
    PageFlag,
    PortOption,
    PrivateFlag,
    TokenOption,
    beside,
)
from penstock.cli.output import JsonFlag, one_line, print_json, tell
from penstock.cli.settings import with_settings
from penstock.config import Settings
from penstock.errors import InvalidInput

MARK = ".penstock-demo"  # only a directory with this file is emptied for the next demo


@with_settings(only=("policy", "policy-options"), defaults={"policy": "promise"})
def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the results, the history and report.html.")
    ] = Path("runs/demo"),
    page: Annotated[bool, PageFlag] = False,
    port: Annotated[int, PortOption] = DEFAULT_PORT,
    token: Annotated[str | None, TokenOption] = None,
    private: Annotated[bool, PrivateFlag] = False,
    as_json: Annotated[bool, JsonFlag] = False,
    *,
    settings: Settings,
) -> None:
    """Watch a toll road keep its latency bound while its load goes from 1 to 4 and back to 1."""
    from penstock.cli.demo_road import demo_gantries, demo_settings, directed, road
    from penstock.cli.live import LiveView
    from penstock.cli.report import write_report
    from penstock.control.history.digest import digest
    from penstock.control.history.store import HistoryStore
    from penstock.spark.run.elastic import ElasticRun
    from penstock.spark.run.place import Place

    _empty(out)
    gantries = demo_gantries()
    topology = road(gantries, out)
    settings = demo_settings(settings.policy, out, settings.policy_options)
    low, high = gantries.base_rate_per_s, gantries.load.peak_rate_per_s
    duration_s = gantries.rush.end_s
    tell(
        f"toll road: {low:g} rows/s from {len(gantries.always)} gantries, then {high:g} from "
        f"{len(gantries.all)}, then {low:g}, for {duration_s:.0f} s; bound "
        f"{topology.max_latency_s:g} s; executors {settings.executors_min} to "
        f"{settings.executors_max}\nstarting a cluster and warming it up ..."
    )
    share = topology.share if settings.share is None else settings.share
    view = LiveView("toll road", topology.max_latency_s, gantries.rows, share=share)
    place = Place("embedded", out / "checkpoint", warm_up=True, plan="auto")
    with (
        beside(page, settings.history, port, token, private) as controls,
        ElasticRun(topology, settings, place, view.step) as running,
        view.shown(),
        directed(running, gantries),
    ):
        controls.run = running
        running.wait(duration_s + 60)
        summary, steps = running.finish(), list(running.steps)
    write_report(out / "report.html", "Penstock demo: toll road", steps, summary)
    with HistoryStore(settings.history, create=False) as store:
        rooms = digest(store, running.run_id)
    if as_json:
        print_json({"summary": summary, "rooms": rooms, "report": str(out / "report.html")})
    else:
        print(summary)
        print("\n".join(one_line(room.line()) for room in rooms))
        print(f"report: {out / 'report.html'}")
        print(f"why: penstock history --changes --history {out / 'history.sqlite'}")


def _empty(out: Path) -> None:
    """Make room; never in a directory that holds anything but an earlier demo."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not (out / MARK).is_file():
            raise InvalidInput(
                f"--out {out} exists and was not made by an earlier demo; name a new or empty "
                "directory."
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).touch()
