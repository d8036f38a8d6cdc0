"""Communities: who may ask a host for what, and how many processors their queries have together.

A community has members, a quota and its queries. Each member has a token of its own, of which only
the digest is kept. Whoever holds it sees and changes the queries of that community, and no others.
The user who started the host may do everything.
"""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.documents import Schema, check_document
from penstock.errors import InvalidInput
from penstock.sharing.quotas import Quota
from penstock.spark.checkpoint.durable_files import write_atomically
from penstock.spark.checkpoint.sealed import read_sealed
from penstock.spark.host.submission import check_name

SCHEMA: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "least": {"type": "integer", "minimum": 0, "maximum": 1_000_000},
        "most": {"type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000},
        "weight": {"type": "number", "minimum": 0.001, "maximum": 10_000},
        "members": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


@dataclass(frozen=True)
class Caller:
    """Who asks: a member of a community, or the host's own user, who has none."""

    community: str = ""
    member: str = ""

    def sees(self, community: str) -> bool:
        """Whether queries of a community are this caller's to see and change."""
        return not self.member or community == self.community


OWNER = Caller()


@dataclass(frozen=True)
class Community:
    """A name with its quota and the digests of its members' tokens."""

    name: str
    least: int = 0
    most: int | None = None
    weight: float = 1.0
    members: Mapping[str, str] = field(default_factory=dict)

    @property
    def quota(self) -> Quota:
        """What the arbiter needs of it."""
        return Quota(self.least, self.most, self.weight)

    def document(self) -> dict[str, Any]:
        """As it is kept, below its name."""
        return {key: value for key, value in vars(self).items() if key != "name"}

    def described(self) -> dict[str, Any]:
        """As it is shown."""
        return {"name": self.name} | self.document() | {"members": sorted(self.members)}


class Communities:
    """The communities of a host, in one file that only its user can read."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        self._known = _kept(file)

    @property
    def quotas(self) -> dict[str, Quota]:
        """By name."""
        return {name: one.quota for name, one in self._known.items()}

    def shown(self, caller: Caller = OWNER) -> list[dict[str, Any]]:
        """Those that a caller may see, without tokens."""
        return [one.described() for _, one in sorted(self._known.items()) if caller.sees(one.name)]

    def check_known(self, name: str) -> None:
        """Refuse a name that no community has."""
        if name and name not in self._known:
            known = ", ".join(sorted(self._known)) or "none"
            raise InvalidInput(
                f"community is {name!r}, which is not known; known: {known}. Make it with "
                f"`penstock community {name}`."
            )

    def caller(self, token: str) -> Caller | None:
        """Whose token it is; all are compared, so that the time tells nothing."""
        digest, found = _digest(token), None
        for community in list(self._known.values()):
            for member, kept in community.members.items():
                if hmac.compare_digest(kept, digest):
                    found = Caller(community.name, member)
        return found

    def change(
        self, name: str, quota: Mapping[str, Any], add: list[str], remove: list[str], most: int
    ) -> dict[str, str]:
        """Make or change one, on a cluster of `most` processors; tokens of its new members."""
        check_name(name, "community")
        for member in add:
            check_name(member, "member")
        with self._lock:
            before = self._known.get(name, Community(name))
            for member in remove:
                if member not in before.members:
                    raise InvalidInput(f"{member!r} is no member of community {name!r}.")
            tokens = {member: secrets.token_urlsafe(32) for member in add}
            members = {key: kept for key, kept in before.members.items() if key not in remove}
            members |= {member: _digest(token) for member, token in tokens.items()}
            asked = before.document() | dict(quota) | {"members": members}
            made = _read(name, asked)
            self._check_least(made, most)
            self._keep(self._known | {name: made})
        return tokens

    def remove(self, name: str) -> None:
        """Forget one, and its tokens with it."""
        self.check_known(name)
        with self._lock:
            self._keep({key: one for key, one in self._known.items() if key != name})

    def _check_least(self, made: Community, most: int) -> None:
        others = sum(one.least for one in self._known.values() if one.name != made.name)
        if others + made.least > most:
            raise InvalidInput(
                f"least is {made.least}; {most - others} processors of {most} are not promised "
                "to other communities."
            )

    def _keep(self, known: dict[str, Community]) -> None:
        kept = {name: one.document() for name, one in known.items()}
        write_atomically(self._file, {"communities": kept})
        self._known = known


def _kept(file: Path) -> dict[str, Community]:
    try:
        found = read_sealed(file)["communities"]
        return {name: _read(name, document) for name, document in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, AttributeError) as error:
        raise InvalidInput(
            f"{file} is damaged ({error}); restore it, or remove it and name the communities anew."
        ) from error


def _read(name: str, document: object) -> Community:
    check_document(document, SCHEMA)
    assert isinstance(document, dict)
    found = replace(Community(name), **document)
    if found.most is not None and found.most < max(1, found.least):
        raise InvalidInput(f"most is {found.most}; it must be at least {max(1, found.least)}.")
    return found


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
