"""JSON documents: read and checked against their JSON Schema, or made of values of ours."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Document = Mapping[str, Any]
Schema = Mapping[str, Any]


def read_document(path: Path) -> Document:
    """The JSON object in a file, or one sentence that says why there is none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    return parse_document(content, str(path))


def parse_document(content: bytes, name: str) -> Document:
    """The JSON object in the content of what is called `name`."""
    try:
        document = json.loads(
            content.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is not UTF-8 text (byte {error.start}).") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"{name} is not JSON: {error.msg} at {where}.") from error
    except RecursionError as error:
        raise InvalidInput(f"{name} is nested too deeply to be read.") from error
    except ValueError as error:  # an integer of thousands of digits
        raise InvalidInput(f"{name} holds a number that is too long to be read.") from error
    if not isinstance(document, dict):
        raise InvalidInput(f"{name} must hold a JSON object, not {_kind(document)}.")
    return document


def _refuse_constant(name: str) -> None:
    raise InvalidInput(f"{name} is not a JSON number; give a finite number.")


def _finite(digits: str) -> float:
    """A literal such as 1e999 is a JSON number, but no float holds it."""
    number = float(digits)
    if not math.isfinite(number):
        shown = digits if len(digits) <= 60 else digits[:57] + "..."
        raise InvalidInput(f"{shown} is too large; give a finite number.")
    return number


def object_schema(properties: Schema, required: list[str], description: str) -> Schema:
    """The schema of an object that has these fields and no others."""
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def check_document(document: object, schema: Schema) -> None:
    """Raise InvalidInput with one sentence if the document does not obey the schema."""
    # A process that reads a stream has documents of ours, and none that it has to check.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema).iter_errors(document))
    if error is not None:
        raise InvalidInput(_sentence(error))
    # A NaN is within every bound of a schema, and a document made in Python may hold one.
    where = _not_finite(document)
    if where is not None:
        raise InvalidInput(f"{where.lstrip('.')} is not a number; give a finite one.")


def _not_finite(value: object) -> str | None:
    """Where in a value the first NaN or infinity is."""
    if isinstance(value, float):
        return None if math.isfinite(value) else ""
    steps: Iterable[tuple[object, object]]
    if isinstance(value, Mapping):
        steps, form = value.items(), ".{}"
    elif isinstance(value, list):
        steps, form = enumerate(value), "[{}]"
    else:
        return None
    for step, item in steps:
        found = _not_finite(item)
        if found is not None:
            return form.format(step) + found
    return None


def _sentence(error: "ValidationError") -> str:
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    field = where.lstrip(".") or "the document"
    rule, allowed, found = error.validator, error.validator_value, error.instance
    if rule == "required":
        missing = [name for name in allowed if name not in found]
        return f"{field} lacks {', '.join(map(repr, missing))}; required: {', '.join(allowed)}."
    if rule == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(found) - set(known))
        return f"{field} has unknown {', '.join(map(repr, unknown))}; known: {', '.join(known)}."
    if rule == "enum":
        return f"{field} is {_shown(found)}; allowed: {', '.join(map(str, allowed))}."
    if rule == "type":
        kinds = allowed if isinstance(allowed, str) else " or ".join(allowed)
        return f"{field} must be of type {kinds}, not {_kind(found)}."
    return f"{field} is {_shown(found)}; {_limit(str(rule), allowed)}."


def _limit(rule: str, allowed: object) -> str:
    words = {
        "minimum": "it must be at least",
        "exclusiveMinimum": "it must be greater than",
        "maximum": "it must be at most",
        "exclusiveMaximum": "it must be less than",
        "minItems": "its least number of entries is",
        "maxItems": "its greatest number of entries is",
        "minLength": "its least length is",
        "pattern": "it must match",
        "const": "it must be",
    }
    if rule in ("anyOf", "oneOf"):
        return "it has none of the allowed forms (see penstock schema)"
    return f"{words.get(rule, f'it breaks the rule {rule}')} {allowed}"


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(value: object) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")


def plain(value: Any) -> Any:
    """The value in JSON's own types; NaN and infinities, which JSON has not, become null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy, without importing it
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
