"""`penstock.connect`: submit topologies to the host that runs, and see how they are."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput, documented
from penstock.model.durations import parse_duration_s
from penstock.spark.host.messages import Address, ask, host_and_port, read_address
from penstock.spark.host.submission import Submission, packaged, read_submission


@dataclass(frozen=True)
class Host:
    """A host, as one of its users sees it."""

    address: Address = field(repr=False)

    def submit(
        self,
        spec: str | Sequence[str],
        *,
        name: str | None = None,
        max_latency: str | float | None = None,
        share: float | None = None,
        weight: float = 1.0,
        community: str = "",
        strict: bool = False,
    ) -> str | None:
        """Send `FILE.py:NAME` with what it imports from its folder; a warning, if there is one.

        Several run as one query under one name, and do once what they have in common.

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

    def explain(self) -> list[dict[str, Any]]:
        """What topologies have in common, and whether it is done once or by each."""
        return list(ask(self.address, {"do": "explain"})["common"])

    def stop(self, name: str, *, forget: bool = False) -> str:
        """Stop one between two batches; forgotten, its name is free again."""
        return str(ask(self.address, {"do": "stop", "name": name, "forget": forget})["detail"])

    def restart(self, name: str) -> str:
        """Start one again, from its checkpoint."""
        return str(ask(self.address, {"do": "restart", "name": name})["detail"])

    def logs(self, name: str) -> list[str]:
        """What it said."""
        return [str(line) for line in ask(self.address, {"do": "logs", "name": name})["lines"]]

    def results(self, name: str, sink: str | None = None, rows: int = 20) -> dict[str, Any]:
        """The newest rows that one of its sinks holds; the sink may be left out if it is alone."""
        return ask(self.address, {"do": "results", "name": name, "sink": sink, "rows": rows})

    def communities(self) -> list[dict[str, Any]]:
        """Every community that one may see: its quota, its members, its topologies."""
        return list(ask(self.address, {"do": "communities"})["communities"])

    def community(
        self,
        name: str,
        *,
        least: int | None = None,
        most: int | None = None,
        weight: float | None = None,
        add: tuple[str, ...] = (),
        remove: tuple[str, ...] = (),
    ) -> dict[str, str]:
        """Make or change a community; the tokens of members that are added, each shown once."""
        given = {"least": least, "most": most, "weight": weight}
        quota = {key: value for key, value in given.items() if value is not None}
        asked = {"do": "community", "name": name, "quota": quota}
        answer = ask(self.address, asked | {"add": list(add), "remove": list(remove)})
        return dict(answer["tokens"])

    def forget_community(self, name: str) -> None:
        """Remove a community that has no topologies; its tokens hold no more."""
        ask(self.address, {"do": "forget-community", "name": name})


@documented("host")
def connect(
    address: str | None = None, token: str | None = None, certificate: str | None = None
) -> Host:
    """The host of this user on this machine, or one at an address, with a member's token.

    What is not given is taken from PENSTOCK_HOST, PENSTOCK_TOKEN and PENSTOCK_CERTIFICATE. The
    certificate is that of whoever signed the host's, where this machine does not know it.
    """
    given = address or os.environ.get("PENSTOCK_HOST")
    if not given:
        return Host(read_address())
    token = token or os.environ.get("PENSTOCK_TOKEN")
    if not token:
        raise InvalidInput(f"the host at {given} needs a token; give it in PENSTOCK_TOKEN.")
    host, port = host_and_port(given, "PENSTOCK_HOST")
    signed = certificate or os.environ.get("PENSTOCK_CERTIFICATE")
    return Host(Address(port, 0, 0, "", token, host, signed))


@documented("host")
def submission_of(
    specs: str | Sequence[str],
    name: str | None = None,
    max_latency: str | float | None = None,
    share: float | None = None,
    weight: float = 1.0,
    community: str = "",
) -> Submission:
    """What is sent, checked as far as that is possible without running it."""
    first, *others = [_part(spec) for spec in ([specs] if isinstance(specs, str) else specs)]
    document = {
        **first,
        "name": name or first["name"],
        "others": others,
        "max_latency_s": (
            None if max_latency is None else parse_duration_s(max_latency, "max-latency")
        ),
        "share": share,
        "weight": weight,
        "community": community,
    }
    return read_submission(document)


def _part(spec: str) -> dict[str, Any]:
    path, colon, wanted = spec.rpartition(":") if ":" in spec else (spec, "", "")
    if not path or (colon and not wanted.isidentifier()):
        raise InvalidInput(f"{spec!r} names no topology; write FILE.py:NAME, as in road.py:road.")
    file = Path(path).absolute()
    named = {"name": wanted or file.stem, "file": file.name, "topology": wanted}
    return named | {"files": packaged(file)}
