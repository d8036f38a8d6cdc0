"""A submitted topology from its folder: checked in a process of its own, then read in the host's.

A file that hangs, ends the program or crashes does so in the process that checks it. Modules of a
submission are forgotten once they were read, so that two of the same name never meet; what is sent
to executors is then sent by value.
"""

import importlib
import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from penstock.documents import parse_document
from penstock.errors import InvalidInput
from penstock.model.topology import Topology

CHECK_LIMIT_S = 120.0
_PREFIX = "penstock: "
_FACTS = "penstock facts: "
_OWN = "penstock_user_"
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Promise:
    """What a topology's own file promises."""

    max_latency_s: float
    share: float


def check_apart(code: Path, file: str, topology: str) -> Promise:
    """Refuse a file that holds no such topology, or does not come to its end."""
    command = [sys.executable, "-m", "penstock.spark.host.loading", str(code), file, topology]
    try:
        checked = subprocess.run(
            command, capture_output=True, text=True, timeout=CHECK_LIMIT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise InvalidInput(
            f"{file} was not read to its end within {CHECK_LIMIT_S:g} s; put what takes long in "
            "an operator's function."
        ) from error
    facts = [line for line in checked.stdout.splitlines() if line.startswith(_FACTS)]
    if checked.returncode == 0 and facts:
        found = parse_document(facts[-1].removeprefix(_FACTS).encode(), file)
        return Promise(float(found["max_latency_s"]), float(found["share"]))
    said = [line for line in checked.stdout.splitlines() if line.startswith(_PREFIX)]
    if said:
        raise InvalidInput(said[-1].removeprefix(_PREFIX))
    raise InvalidInput(f"{file} ended the process that read it (exit code {checked.returncode}).")


def load_submitted(code: Path, file: str, topology: str, name: str) -> Topology:
    """The topology, in a module of its own; one submission at a time is read."""
    from penstock.spark.compile.topology_file import load_topology

    with _one_at_a_time:
        before = set(sys.modules)
        importlib.invalidate_caches()
        spec = f"{code / file}:{topology}" if topology else str(code / file)
        own = f"{_OWN}{name}"
        try:
            return load_topology(spec, module=own)
        finally:
            for module in set(sys.modules) - before - {own}:
                if _is_below(sys.modules[module], code):
                    del sys.modules[module]


def _is_below(module: ModuleType, folder: Path) -> bool:
    """Whether a module, or a package without a file, was read from a folder."""
    places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
    return any(Path(place).is_relative_to(folder) for place in places if place)


def main(code: str, file: str, topology: str) -> int:
    """Check one; the sentence goes to standard output."""
    try:
        found = load_submitted(Path(code), file, topology, "checked")
        found.check()
    except InvalidInput as error:
        said = str(error).replace(f"{code}/", "")
        sys.stdout.write(f"{_PREFIX}{said}\n")
        return 2
    facts = {"max_latency_s": found.max_latency_s, "share": found.share}
    sys.stdout.write(f"\n{_FACTS}{json.dumps(facts)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
