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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from penstock.documents import parse_document
from penstock.errors import InvalidInput
from penstock.model.merging import merged, work_of
from penstock.model.topology import Topology
from penstock.sharing.equal_work import Graph, Step, equal_steps
from penstock.spark.host.submission import Part

CHECK_LIMIT_S = 120.0
_PREFIX = "penstock: "
_FACTS = "penstock facts: "
_OWN = "penstock_user_"
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Promise:
    """What is promised of a topology; None where its own file says it."""

    max_latency_s: float | None
    share: float | None


@dataclass(frozen=True)
class Whole:
    """A submission as it runs: its topologies, and where the steps of each are in the one."""

    topology: Topology
    parts: Mapping[str, Topology]
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)


def check_apart(code: Path, parts: Sequence[Part], limit_s: float | None = None) -> Promise:
    """Refuse files that do not hold such topologies, or do not come to their end."""
    limit_s = CHECK_LIMIT_S if limit_s is None else limit_s
    named = json.dumps([[part.name, part.file, part.topology] for part in parts])
    command = [sys.executable, "-m", "penstock.spark.host.loading", str(code), named]
    file = parts[-1].file
    try:
        checked = subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise InvalidInput(
            f"{file} was not read to its end within {limit_s:g} s; put what takes long in "
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


def load_whole(code: Path, parts: Sequence[Part], name: str, promise: Promise | None) -> Whole:
    """All parts as one topology of that name, with what they have in common once.

    A `promise` that is given holds for each of them.
    """
    bound_s, share = (None, None) if promise is None else (promise.max_latency_s, promise.share)
    found = {
        part.name: load_submitted(code / part.name, part.file, part.topology, f"{name}_{part.name}")
        for part in parts
    }
    if len(parts) == 1:
        return Whole(found[parts[0].name].promising(name, bound_s, share), found)
    for one in found.values():
        one.check()
    found = {key: one.promising(key, bound_s, share) for key, one in found.items()}
    same = {
        place: group[0] for group in equal_steps(graphs_of(found)) for place in group[1:]
    }  # fmt: skip
    topology, places = merged(name, found, same)
    return Whole(topology, found, places)


def graphs_of(topologies: Mapping[str, Topology]) -> dict[str, Graph]:
    """What is compared of them."""
    return {
        name: {step: Step(*parts) for step, parts in work_of(one).items()}
        for name, one in topologies.items()
    }


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


def main(code: str, named: str) -> int:
    """Check what was submitted; the sentence goes to standard output."""
    try:
        parts = [Part(name, file, topology, {}) for name, file, topology in json.loads(named)]
        found = load_whole(Path(code), parts, "checked", None).topology
        found.check()
    except InvalidInput as error:
        said = str(error)
        for folder in [*(f"{code}/{part.name}/" for part in parts), f"{code}/"]:
            said = said.replace(folder, "")
        sys.stdout.write(f"{_PREFIX}{said}\n")
        return 2
    facts = {"max_latency_s": found.max_latency_s, "share": found.share}
    sys.stdout.write(f"\n{_FACTS}{json.dumps(facts)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
