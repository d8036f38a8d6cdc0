"""Runs benchmarks and prints one JSON object a line: `python -m benchmarks [NAME[:CASE] ...]`.

A benchmark is a module of this package with `run()`, which yields rows of name, baseline, ours,
unit, ratio and conditions. A ratio above 1 means ours is better than the named baseline. One that
has `CASES` can run one of them alone: `run(case)`.
"""

import importlib
import json
import pkgutil
import sys
from typing import Any

import benchmarks

KEYS = ("name", "baseline", "ours", "unit", "ratio", "conditions")


def main(wanted: list[str]) -> int:
    known = sorted(
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name[0] != "_"
    )
    chosen = [tuple(text.partition(":")[::2]) for text in wanted or known]
    for name, case in chosen:
        if name not in known:
            return _refused(f"{name!r} is unknown; known: {', '.join(known)}.")
        cases = getattr(_module(name), "CASES", ()) if case else ()
        if case not in ("", *cases):
            return _refused(f"{name} has no case {case!r}; it has {', '.join(cases) or 'none'}.")
    for name, case in chosen:
        print(f"benchmarks: {name} {case}...", file=sys.stderr, flush=True)
        for row in _module(name).run(*filter(None, [case])):
            print(json.dumps({key: row[key] for key in KEYS}), flush=True)
    return 0


def _module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.{name}")


def _refused(sentence: str) -> int:
    print(f"benchmarks: {sentence}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
