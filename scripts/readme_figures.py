"""Renew the figures of README.md, and its pictures, by runs of this version.

Run: make readme-figures (30 minutes on two otherwise idle cores). A part alone: PARTS="demo" (4
minutes: the demo's words, its plot, the pictures of the page), "elastic" (20: three sizes under
three loads) or "flink" (7: the ramp on Flink; it makes an environment with apache-flink first).
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

README = Path("README.md")
DEMO = Path("runs/demo")
LONGEST = 150  # characters of a line that the README shows
LOADS = {"ramp": "ramp", "burst": "bursts", "curve": "a real curve"}
OURS = "attached, promise"
PROMISED = 0.99
BY_RULE = "executors that come and go"

# By the name in the benchmark: what people use instead, what it goes by, what a change is.
INSTEAD = {
    "static-4": ("always four executors", "the peak, if it is known", "a restart"),
    "dynamic allocation": (
        "Spark's dynamic allocation, 1 to 4",
        "tasks that wait; neither rates nor latency",
        BY_RULE,
    ),
    "flink autoscaler": (
        "Flink's autoscaler, by its documentation",
        "busy time of each vertex, towards a utilisation",
        "a restart from a checkpoint, after minutes of watching",
    ),
    "flink, ds2": (
        "[DS2 on Flink](docs/peers.md), 1 to 4 task managers' slots, all standing by",
        "the same idea: our `ds2` over Flink's REST interface",
        "a restart from a checkpoint",
    ),
    "flink, reactive": (
        "the same, with task managers started and ended",
        "the same",
        "a restart from a checkpoint",
    ),
    OURS: (
        "Penstock, 1 to 4",
        "a latency bound and the share of results that must keep it",
        f"{BY_RULE}; state moves between batches",
    ),
}
Cells = dict[tuple[str, str], str]  # by way and load


def main() -> None:
    """Run what is asked for, and put what came of it between the README's marks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}")
    wanted = parser.parse_args().parts or list(PARTS)
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"{unknown[0]!r} is unknown; known: {', '.join(PARTS)}.")
    for part in wanted:
        sys.stderr.write(f"readme figures: {part} ...\n")
        mark, made = PARTS[part]
        renew(mark, made)


def renew(mark: str, made: Callable[[str], str], readme: Path = README) -> None:
    """Replace what stands between two marks by what is made of it."""
    place = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- end of {mark} -->)", re.DOTALL)
    found = place.findall(readme.read_text(encoding="utf-8"))
    if len(found) != 1:
        raise SystemExit(f"{readme} has {len(found)} places for {mark!r}; it must have one.")
    text = made(found[0])
    now = readme.read_text(encoding="utf-8")  # read again: a run takes long, and people write
    readme.write_text(place.sub(lambda _: text, now), encoding="utf-8")


def demo(_old: str) -> str:
    """The demo's own words; its plot and its page become pictures."""
    said = _printed("penstock", "demo", "--out", str(DEMO))
    report = (DEMO / "report.html").read_text(encoding="utf-8")
    plot = re.search(r"<svg.*</svg>", report, re.DOTALL)
    if plot is None:
        raise SystemExit("the demo's report has no plot; matplotlib is needed for it.")
    Path("docs/demo.svg").write_text(plot[0] + "\n", encoding="utf-8")
    _printed("scripts.page_pictures", str(DEMO / "history.sqlite"), "docs")
    lines = [line for line in said.splitlines() if not line.startswith(("report:", "why:"))]
    return "```text\n" + "".join(f"{cut(line)}\n" for line in lines) + "```\n"


def elastic(old: str) -> str:
    """Ours, four executors and dynamic allocation under the three loads."""
    printed = _printed("benchmarks", "elastic:instead")
    return table(cells_of(old) | elastic_cells(json.loads(row) for row in printed.splitlines()))


def flink(old: str) -> str:
    """DS2 on Flink under the ramp; an executor has as many slots as a task manager."""
    from benchmarks._flink_cluster import SLOTS
    from benchmarks._flink_elastic import LOAD, on_flink

    made = ["scripts/flink-env.sh", sys.executable]
    python = subprocess.run(made, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="penstock-flink-") as folder:
        found = on_flink(python, Path(folder))
    return table(
        cells_of(old)
        | {
            (f"flink, {way}", LOAD): _cell(one.published_share, one.slot_s / SLOTS)
            for way, one in found.items()
        }
    )


def elastic_cells(rows: Iterable[Mapping[str, Any]]) -> Cells:
    """Share in time and executor-seconds of each mode under each load, by the benchmark's rows."""
    in_time, cost = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    into = {"attach_in_time": in_time, "attach_cost": cost}
    for row in rows:
        what, load, mode = row["name"].split("/")
        if what in into:
            into[what][mode, load], into[what][OURS, load] = row["baseline"], row["ours"]
    return {place: _cell(share, cost[place]) for place, share in in_time.items()}


def table(cells: Cells) -> str:
    """All ways side by side, and a sentence on which loads the promise was kept under."""
    lines = [f"| | goes by | a change is | {' | '.join(LOADS.values())} |", "|---" * 6 + "|"]
    for way, words in INSTEAD.items():
        figures = (cells.get((way, load), "-") for load in LOADS)
        lines.append(f"| {' | '.join((*words, *figures))} |")
    ours = {LOADS[load]: cell for (way, load), cell in cells.items() if way == OURS}
    kept = [load for load, cell in ours.items() if float(cell.split("%")[0]) >= 100 * PROMISED]
    missed = [load for load in ours if load not in kept]
    verdict = [f"{word} under {' and '.join(loads)}"
               for word, loads in (("kept", kept), ("missed", missed)) if loads]  # fmt: skip
    promise = f"{PROMISED:.0%} in time is what Penstock was to keep: {', '.join(verdict)}."
    return "\n".join(lines) + f"\n\n{promise}\n"


def cells_of(old: str) -> Cells:
    """The figures of a table that was made before; those of a part that is not renewed stay."""
    ways = {words[0]: way for way, words in INSTEAD.items()}
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in old.splitlines()]
    return {
        (ways[row[0]], load): cell
        for row in rows
        if row[0] in ways
        for load, cell in zip(LOADS, row[3:], strict=True)
        if cell != "-"
    }


def _cell(share: float, executor_s: float) -> str:
    return f"{share:.1%}, {executor_s:.0f}"


def cut(line: str) -> str:
    """A long line without its end, but with what else changed in that period."""
    if len(line) <= LONGEST:
        return line
    _, *others = line.split(" | ")
    more = "".join(f" | {one.partition(' (')[0]}" for one in others)
    return f"{line[: LONGEST - 3 - len(more)]}...{more}"


def _printed(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


PARTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "demo": ("demo", demo),
    "elastic": ("instead", elastic),
    "flink": ("instead", flink),
}

if __name__ == "__main__":
    main()
