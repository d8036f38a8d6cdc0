"""`penstock.connect`: submit topologies to the host that runs, and see how they are."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.model.durations import parse_duration_s
from penstock.spark.host.messages import Address, ask, read_address
from penstock.spark.host.submission import Submission, packaged, read_submission


@dataclass(frozen=True)
class Host:
    """A host on this machine."""

    address: Address = field(repr=False)

    def submit(
        self,
        spec: str,
        *,
        name: str | None = None,
        max_latency: str | float | None = None,
        share: float | None = None,
        weight: float = 1.0,
        community: str = "",
        strict: bool = False,
    ) -> str | None:
        """Send `FILE.py:NAME` with what it imports from its folder; a warning, if there is one.

        It runs under its `name`, which is the topology's own or the file's unless given. Without a
        bound or a share its own hold. `strict` refuses what would only be warned of.
        """
        return self.send(submission_of(spec, name, max_latency, share, weight, community), strict)

    def send(self, submission: Submission, strict: bool = False) -> str | None:
        """Submit what was made ready before."""
        answer = ask(
            self.address,
            {"do": "submit", "submission": submission.document(), "strict": strict},
        )
        return None if answer["warning"] is None else str(answer["warning"])

    def ps(self) -> list[dict[str, Any]]:
        """Every topology, and how it is."""
        return list(ask(self.address, {"do": "ps"})["topologies"])

    def stop(self, name: str, *, forget: bool = False) -> str:
        """Stop one between two batches; forgotten, its name is free again."""
        return str(ask(self.address, {"do": "stop", "name": name, "forget": forget})["detail"])

    def restart(self, name: str) -> str:
        """Start one again, from its checkpoint."""
        return str(ask(self.address, {"do": "restart", "name": name})["detail"])

    def logs(self, name: str) -> list[str]:
        """What it said."""
        return [str(line) for line in ask(self.address, {"do": "logs", "name": name})["lines"]]


def connect() -> Host:
    """The host of this user on this machine, as `penstock host` started it."""
    return Host(read_address())


def submission_of(
    spec: str,
    name: str | None = None,
    max_latency: str | float | None = None,
    share: float | None = None,
    weight: float = 1.0,
    community: str = "",
) -> Submission:
    """What is sent, checked as far as that is possible without running it."""
    path, colon, wanted = spec.rpartition(":") if ":" in spec else (spec, "", "")
    if not path or (colon and not wanted.isidentifier()):
        raise InvalidInput(f"{spec!r} names no topology; write FILE.py:NAME, as in road.py:road.")
    file = Path(path).absolute()
    document = {
        "name": name or wanted or file.stem,
        "file": file.name,
        "topology": wanted,
        "files": packaged(file),
        "max_latency_s": (
            None if max_latency is None else parse_duration_s(max_latency, "max-latency")
        ),
        "share": share,
        "weight": weight,
        "community": community,
    }
    return read_submission(document)
