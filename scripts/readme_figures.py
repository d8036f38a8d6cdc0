"""Renew the figures of README.md, and its pictures, by runs of this version.

Run: make readme-figures (40 minutes on two otherwise idle cores), or PARTS="demo" for a part of it.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

README = Path("README.md")
DEMO = Path("runs/demo")
LONGEST = 150  # characters of a line that the README shows
ROWS = {
    "attached, promise": "with these lines, 1 to 4 executors",
    "static-4": "always four executors",
    "static-1": "always one",
    "dynamic allocation": "Spark's dynamic allocation, 1 to 4",
}
LOADS = {"ramp": "ramp", "burst": "bursts", "curve": "a real curve"}
OURS = "attached, promise"


def main() -> None:
    """Run what is asked for, and put what it printed between the README's marks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}")
    wanted = parser.parse_args().parts or list(PARTS)
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"{unknown[0]!r} is unknown; known: {', '.join(PARTS)}.")
    for part in wanted:
        sys.stderr.write(f"readme figures: {part} ...\n")
        renew(part, PARTS[part]())


def renew(part: str, text: str, readme: Path = README) -> None:
    """Replace what stands between the marks of a part."""
    old = readme.read_text(encoding="utf-8")
    new, found = re.subn(
        rf"(<!-- {part} -->\n).*?(<!-- end of {part} -->)",
        lambda marks: f"{marks[1]}{text}{marks[2]}",
        old,
        flags=re.DOTALL,
    )
    if found != 1:
        raise SystemExit(f"{readme} has {found} places for {part!r}; it must have one.")
    readme.write_text(new, encoding="utf-8")


def demo() -> str:
    """The demo's own words; its plot and its page become pictures."""
    said = _printed("penstock", "demo", "--out", str(DEMO))
    report = (DEMO / "report.html").read_text(encoding="utf-8")
    plot = re.search(r"<svg.*</svg>", report, re.DOTALL)
    if plot is None:
        raise SystemExit("the demo's report has no plot; matplotlib is needed for it.")
    Path("docs/demo.svg").write_text(plot[0] + "\n", encoding="utf-8")
    _printed("scripts.page_pictures", str(DEMO / "history.sqlite"), "docs")
    lines = [line for line in said.splitlines() if not line.startswith(("report:", "why:"))]
    return "```text\n" + "".join(f"{_cut(line)}\n" for line in lines) + "```\n"


def elastic() -> str:
    """The loads of `make bench-elastic` as a table."""
    printed = _printed("benchmarks", "elastic")
    return elastic_table([json.loads(line) for line in printed.splitlines()])


def elastic_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Share in time and executor-seconds of each mode under each load, by the benchmark's rows."""
    in_time, cost = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    into = {"attach_in_time": in_time, "attach_cost": cost}
    for row in rows:
        what, load, mode = row["name"].split("/")
        if what in into:
            into[what][load, mode], into[what][load, OURS] = row["baseline"], row["ours"]
    loads = [load for load in LOADS if (load, OURS) in in_time]
    lines = [
        "| | " + " | ".join(LOADS[load] for load in loads) + " |",
        "|---" * (len(loads) + 1) + "|",
    ]
    for mode, words in ROWS.items():
        if all((load, mode) in in_time for load in loads):
            cells = (f"{in_time[load, mode]:.1%}, {cost[load, mode]:.0f}" for load in loads)
            lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _printed(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


PARTS: dict[str, Callable[[], str]] = {"demo": demo, "elastic": elastic}

if __name__ == "__main__":
    main()
