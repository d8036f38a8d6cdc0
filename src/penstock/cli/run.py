"""`penstock run`: a topology from a file, on Spark, under the loop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.dashboard import (
    DEFAULT_PORT,
    Controls,
    PageFlag,
    PortOption,
    PrivateFlag,
    TokenOption,
    beside,
)
from penstock.cli.exit_codes import INTERRUPTED
from penstock.cli.output import JsonFlag, print_json, tell
from penstock.cli.settings import with_settings
from penstock.config import Settings
from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.control.summary import RunSummary
    from penstock.model.topology import Topology
    from penstock.spark.run.place import Place


@with_settings(needs={"channel-rows": "apart"})
def run(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:NAME]", help="A Python file with a topology, and its name there."
        ),
    ],
    master: Annotated[
        str,
        typer.Option(
            "--master",
            help="A Spark master; 'embedded' for a cluster that lives as long as the run, "
            "'cluster' for the one started by `penstock cluster up`.",
        ),
    ] = "local[2]",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Folder from which a later run can go on. Default: a temporary one.",
        ),
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="Stop after this time.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Process what is there now, then stop.")
    ] = False,
    apart: Annotated[
        bool,
        typer.Option(
            "--apart",
            help="Run each component as its own query, joined by channels; needed for loops.",
        ),
    ] = False,
    processors: Annotated[
        str | None,
        typer.Option(
            "--processors",
            metavar="NAME=N,...",
            help="With --apart: processors each component starts with. Default: 1 each.",
        ),
    ] = None,
    explained: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show queries, components and keys without running anything; with a "
            "--checkpoint, as it was started.",
        ),
    ] = False,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="none|auto|FILE.json",
            help="Operators that share a shuffle: none, those the history proposes (auto), or "
            "those of a file. Default: as the checkpoint was started.",
        ),
    ] = None,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="If --plan differs from the checkpoint's, carry its state over."
        ),
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            help="Go on with a checkpoint although windows, aggregates, joins or state functions "
            "are others than it was begun with.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse a source that has no stream yet (no such folder, no file, key or topic "
            "that fits, a broker that is away) instead of waiting for one.",
        ),
    ] = False,
    page: Annotated[bool, PageFlag] = False,
    port: Annotated[int, PortOption] = DEFAULT_PORT,
    token: Annotated[str | None, TokenOption] = None,
    private: Annotated[bool, PrivateFlag] = False,
    as_json: Annotated[bool, JsonFlag] = False,
    *,
    settings: Settings,
) -> None:
    """Run a topology until its streams end, the time is up, or Ctrl-C."""
    from penstock.model.durations import parse_duration_s
    from penstock.spark.compile.topology_file import load_topology

    limit_s = None if duration is None else parse_duration_s(duration, "--for")
    given = _processors(processors, apart)
    if checkpoint == Path():
        raise InvalidInput(
            "--checkpoint names the folder you are in; give the checkpoint a folder of its own."
        )
    topology = load_topology(spec)
    if explained:
        _explain(topology, settings, as_json, apart, plan, checkpoint)
        return
    from penstock.spark.run.place import Place

    place = Place(
        master, checkpoint, once=once, apart=apart, processors=given, plan=plan, apply=apply,
        accept_changes=accept_changes, strict=strict,
    )  # fmt: skip
    with beside(page, settings.history, port, token, private) as controls:
        summary, interrupted = run_watched(topology, settings, place, limit_s, controls)
    if as_json:
        print_json(summary)
    else:
        print(summary)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _processors(text: str | None, apart: bool) -> dict[str, int] | None:
    from penstock.spark.run.apart import parse_processors

    if text is None:
        return None
    if not apart:
        raise InvalidInput(
            "--processors is given without --apart; only components that run apart have their own."
        )
    return parse_processors(text)


def _explain(
    topology: Topology, settings: Settings, as_json: bool, apart: bool, plan: str | None,
    checkpoint: Path | None,
) -> None:  # fmt: skip
    import tempfile

    from penstock.spark.run.explain import explain

    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        explanation = explain(
            topology, settings.key_groups, Path(folder) / "spark.log", apart, plan,
            settings.history, checkpoint,
        )  # fmt: skip
    if as_json:
        print_json(explanation)
    else:
        print("\n".join(explanation.lines()))


def run_watched(
    topology: Topology,
    settings: Settings,
    place: Place,
    limit_s: float | None,
    controls: Controls,
) -> tuple[RunSummary, bool]:
    """Run under a live view; Ctrl-C ends the run, not the summary. Whether it did, comes second."""
    from penstock.cli.live import LiveView
    from penstock.spark.run.elastic import ElasticRun
    from penstock.spark.sources.running.kinds import running_sources

    bounded = [source.rows_in_all for source in running_sources(topology).values()]
    total = sum(rows or 0 for rows in bounded) if bounded and all(bounded) else None
    share = topology.share if settings.share is None else settings.share
    view = LiveView(topology.name, topology.max_latency_s, total, share=share)
    with view.shown(), ElasticRun(topology, settings, place, view.step) as running:
        controls.run = running
        view.notes = running.source_notes
        for decision in running.plan:
            gain = decision.numbers.get("expected_gain")
            expected = "" if gain is None else f" (expected gain {gain:.0%})"
            tell(f"{decision.room}: {decision.what}{expected}")
        interrupted = False
        try:
            running.wait(limit_s)
        except KeyboardInterrupt:  # the usual way to end a run without end
            interrupted = True
        return running.finish(), interrupted
