"""What a soak came to: one row for each kind of fault, for people, for docs and as JSON."""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from soak.faults import FAULTS

Document = dict[str, Any]
ASKED_S = (15.0, 30.0)  # of 99% of recoveries, and of all of them


def table(legs: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Of each kind: how it was injected, how often, and how long recovery took."""
    took: dict[str, list[float]] = defaultdict(list)
    restarted: dict[str, int] = defaultdict(int)
    for leg in legs:
        for fault in leg["faults"]:
            took[fault["kind"]].append(fault["recovery_s"])
            restarted[fault["kind"]] += fault["restarted"]
    kinds = [kind for kind in FAULTS if kind in took]
    return [_row(kind, FAULTS[kind].how, took[kind], restarted[kind]) for kind in kinds] + [
        _row("all", "", [one for kind in kinds for one in took[kind]], sum(restarted.values()))
    ]


def _row(kind: str, how: str, took_s: list[float], restarted: int) -> Document:
    median, most = np.percentile(took_s or [np.nan], [50, 99]).round(1).tolist()
    slowest = max(took_s, default=float("nan"))
    return {
        "fault": kind, "how": how, "count": len(took_s), "median_s": median,
        "99%_s": most, "slowest_s": round(slowest, 1), "restarted": restarted,
    }  # fmt: skip


def as_markdown(rows: list[Document]) -> str:
    """As docs/reliability.md has it."""
    lines = [
        "| fault | how it is injected | how many | recovery: median, 99%, slowest (s) |",
        "|---|---|---|---|",
    ]
    for row in rows:
        again = f" ({row['restarted']} times the run was started again)" if row["restarted"] else ""
        times = f"{row['median_s']}, {row['99%_s']}, {row['slowest_s']}"
        lines.append(f"| {row['fault']} | {row['how']}{again} | {row['count']} | {times} |")
    return "\n".join(lines)


def as_text(rows: list[Document]) -> str:
    """For a terminal."""
    lines = [f"{'fault':32} {'count':>5} {'median':>7} {'99%':>7} {'slowest':>8}  recovery in s"]
    lines += [
        f"{row['fault']:32} {row['count']:5} {row['median_s']:7} {row['99%_s']:7} "
        f"{row['slowest_s']:8}"
        for row in rows
    ]
    return "\n".join(lines)


def summary(legs: Sequence[Mapping[str, Any]]) -> str:
    """What the whole of it comes to, beside what was asked for."""
    took_s = [fault["recovery_s"] for leg in legs for fault in leg["faults"]]
    within = {limit_s: sum(one < limit_s for one in took_s) for limit_s in ASKED_S}
    met = sum((Counter(leg["met"]) for leg in legs), Counter[str]())
    minutes, rows = sum(leg["seconds"] for leg in legs) / 60, sum(leg["rows"] for leg in legs)
    wrong = sum(bool(leg["wrong"]) for leg in legs)
    lines = [
        f"{len(took_s)} faults in {len(legs)} legs and {minutes:.0f} minutes; {rows:,} rows; "
        f"{wrong} legs with something wrong",
        "; ".join(
            f"recovered within {limit_s:g} s: {count / max(1, len(took_s)):.1%}"
            for limit_s, count in within.items()
        ),
        f"forms: {', '.join(sorted({leg['form'] for leg in legs}))}",
    ]
    if met:
        lines.append("; ".join(f"{what}: {count}" for what, count in sorted(met.items())))
    return "\n".join(lines)


if __name__ == "__main__":  # files of `make soak`: the table of all their legs
    kept = [leg for file in sys.argv[1:] for leg in json.loads(Path(file).read_text())["legs"]]
    print(as_markdown(table(kept)), summary(kept), sep="\n\n")
