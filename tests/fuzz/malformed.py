"""Documents, options and bytes that are almost right, from a seed."""

import json
import random
from collections.abc import Mapping
from typing import Any

NAMES = ("a", "b", "c", "")
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, -1e-300, 2**63, 10**400, "", " ", "a", "\x00", "NaN", "é" * 300,
    "1e5", "off", "5s", "-5s", [], [[]], {}, {"": 0}, [None, "a"], {"a": {"b": []}},
    "../../etc/passwd", "'; DROP TABLE runs; --", "%s%n", "${x}", "2026-02-30T25:00:00",
)  # fmt: skip


class Malformed:
    """A source of input that is wrong here and there."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def document(self, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
        """Of the form that a JSON schema asks for, but for some of its parts."""
        root = schema if root is None else root
        if self._random.random() < 0.03:
            return self.value()
        if "$ref" in schema:
            found: Any = root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            return self.document(found, root)
        for word in ("oneOf", "anyOf"):
            if word in schema:
                return self.document(self._random.choice(schema[word]), root)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        kinds = schema.get("type", "number")
        kind = kinds if isinstance(kinds, str) else self._random.choice(kinds)
        return getattr(self, f"_{kind}")(schema, root)

    def value(self) -> Any:
        """Anything that nobody asked for."""
        return self._random.choice(HOSTILE)

    def mutated(self, value: Any) -> Any:
        """The same with a few parts replaced, left out, doubled or added."""
        if self._random.random() < 0.04:
            return self.value()
        if isinstance(value, dict):
            kept = {k: self.mutated(v) for k, v in value.items() if self._random.random() > 0.02}
            return kept | ({"unknown": self.value()} if self._random.random() < 0.02 else {})
        if isinstance(value, list):
            items = [self.mutated(item) for item in value]
            return items * 2 if self._random.random() < 0.02 else items
        return value

    def bytes_of(self, content: bytes) -> bytes:
        """The same with some bytes changed, cut off, or put in."""
        found = bytearray(content)
        for _ in range(self._random.randint(1, 8)):
            at = self._random.randrange(len(found) + 1)
            match self._random.randrange(4):
                case 0:
                    found[at : at + 1] = self._random.randbytes(1)
                case 1:
                    del found[at : at + self._random.randint(1, 40)]
                case 2:
                    found[at:at] = self._random.choice((b"\x00", b"\xff", b'"', b"{", b"]", b"\n"))
                case _:
                    found[at:at] = found[: self._random.randint(0, 30)]
        return bytes(found)

    def toml(self, value: Mapping[str, Any]) -> str:
        """A document as TOML with some of its parts changed, as far as TOML can say it."""
        lines = list[str]()
        for name, whole in value.items():
            part = self.mutated(whole)
            tables = part if isinstance(part, list) else [part]
            for table in tables:
                if isinstance(table, dict):
                    bracket = "[[{}]]" if isinstance(part, list) else "[{}]"
                    lines.append(bracket.format(json.dumps(name)))
                    lines += [f"{json.dumps(k)} = {_inline(v)}" for k, v in table.items()]
                else:
                    lines.insert(0, f"{json.dumps(name)} = {_inline(table)}")
        return "\n".join(lines)

    def choice(self, of: Any) -> Any:
        """One of several."""
        return self._random.choice(of)

    def _object(self, schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        made = {
            name: self.document(part, root)
            for name, part in schema.get("properties", {}).items()
            if self._random.random() < (0.99 if name in required else 0.4)
        }
        if isinstance(more := schema.get("additionalProperties"), dict):
            made |= {name: self.document(more, root) for name in self._random.sample(NAMES, 2)}
        return made

    def _array(self, schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
        least = int(schema.get("minItems", 0))
        items = schema.get("items", {})
        if schema.get("prefixItems"):
            return [self.document(part, root) for part in schema["prefixItems"]]
        count = self._random.randint(least, max(least, int(schema.get("maxItems", least + 3))))
        return [self.document(items, root) for _ in range(min(count, least + 5))]

    def _number(self, schema: Mapping[str, Any], _: Mapping[str, Any]) -> float:
        least = float(schema.get("minimum", schema.get("exclusiveMinimum", 0)))
        most = float(schema.get("maximum", schema.get("exclusiveMaximum", least + 10)))
        return self._random.choice((least, most, self._random.uniform(least, most)))

    def _integer(self, schema: Mapping[str, Any], root: Mapping[str, Any]) -> int:
        return int(self._number({"maximum": schema.get("minimum", 0) + 5, **schema}, root))

    def _string(self, _schema: Mapping[str, Any], _root: Mapping[str, Any]) -> str:
        return self._random.choice(NAMES[:3])

    def _boolean(self, _schema: Mapping[str, Any], _root: Mapping[str, Any]) -> bool:
        return self._random.random() < 0.5

    def _null(self, _schema: Mapping[str, Any], _root: Mapping[str, Any]) -> None:
        return None


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return '""' if value is None else json.dumps(value)
