"""Put what the Nexmark benchmark printed into the table of docs/nexmark.md.

Run: python -m benchmarks nexmark:longer nexmark:q5 nexmark:each | python -m scripts.nexmark_table
Rows of queries that were not run are dropped, so that a table is of one version and one machine.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from scripts.readme_figures import renew

PAGE = Path("docs/nexmark.md")
MODES = {
    "defaults": "plain, Spark's defaults",
    "tuned": "plain, tuned",
    "our-session": "plain, in a session of ours",
}
OURS = "penstock"
CPU = re.compile(r"; (\S+): [^;]*?, (\d+) s of CPU")
ROW = '{"name": "nexmark/'
GIB = 2**30


def main() -> None:
    """Read rows of the benchmark, one JSON object a line, among whatever else was printed."""
    printed = (line.partition(ROW) for line in sys.stdin)
    rows = [json.loads(row + rest) for _, row, rest in printed if row]
    if not rows:
        raise SystemExit("there is no row of the Nexmark benchmark on standard input.")
    renew("table", lambda _: table(rows) + f"\nOn {machine()}.\n", PAGE)


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """A line for each set of queries: seconds of each side, how many times ours, and likewise CPU.

    How long it takes depends on what else the machine does; how much CPU, hardly.
    """
    found = dict[str, dict[str, str]]()
    for row in rows:
        _, label, mode = row["name"].split("/")
        size, _, rest = row["conditions"].partition(", one a batch")
        line = found.setdefault(f"{label}, {size}", {})
        cpu_s = {name: float(seconds) for name, seconds in CPU.findall(row["conditions"])}
        times = f"{row['ratio']:.2f}"
        if mode in cpu_s and cpu_s.get(OURS, 0) > 0:
            times += f"; {cpu_s[mode] / cpu_s[OURS]:.2f}"
        line[mode] = f"{row['baseline']:.1f} ({times})"
        line["ours"] = f"{row['ours']:.1f}"
        line["rows"] = "; ".join(takewhile(lambda said: ": " not in said, rest.split("; ")[1:]))
    heads = ["queries", *MODES.values(), "one topology", "rows"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, cells in found.items():
        plain = [cells.get(mode, "-") for mode in MODES]
        lines.append(f"| {' | '.join([name, *plain, cells['ours'], cells['rows']])} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """What these figures are of."""
    models = [line.split(":", 1)[1].strip()
              for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
              if line.startswith("model name")]  # fmt: skip
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    return f"{os.cpu_count()} cores ({models[0] if models else 'unknown'}), {memory:.0f} GiB"


if __name__ == "__main__":
    main()
