"""Runs benchmarks and prints one JSON object a line: `python -m benchmarks [NAME ...]`.

A benchmark is a module of this package with `run()`, which yields rows of name, baseline, ours,
unit, ratio and conditions. A ratio above 1 means ours is better than the named baseline.
"""

import importlib
import json
import pkgutil
import sys

import benchmarks

KEYS = ("name", "baseline", "ours", "unit", "ratio", "conditions")


def main(wanted: list[str]) -> int:
    known = sorted(
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name[0] != "_"
    )
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"benchmarks: {unknown[0]!r} is unknown; known: {', '.join(known)}.", file=sys.stderr)
        return 2
    for name in wanted or known:
        print(f"benchmarks: {name} ...", file=sys.stderr, flush=True)
        for row in importlib.import_module(f"benchmarks.{name}").run():
            print(json.dumps({key: row[key] for key in KEYS}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
