"""One option: its name, kind, default and range, and how a value of it is read and refused."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from penstock.errors import InvalidInput, shown
from penstock.model.day_spans import read_spans
from penstock.model.durations import parse_duration_s
from penstock.model.schedule import EXAMPLE, read_schedule

Kind = Literal[
    "integer",
    "number",
    "duration",
    "switch",
    "text",
    "choice",
    "names",
    "times",
    "schedule",
    "table",
]
Value = int | float | bool | str | None

OFF = "off"
ALL = "all"  # of the names that an option of kind "names" may list
OLD_OFF = "none"  # refused with a hint, as people know it from other tools
WORDS = {
    "true": True, "1": True, "yes": True, "on": True,
    "false": False, "0": False, "no": False, "off": False,
}  # fmt: skip


class ByPolicy(Enum):
    """The value of an option that nobody gave, and that some policies have a use for."""

    USUAL = "usual"


@dataclass(frozen=True)
class Option:
    """What a person needs to know of an option, and what is done with what they write.

    One that `can_be_off` takes the word "off" (in Python also None), which reads as `off_value`.

    >>> Option("period", "duration", "5s", "Time.", least=1, greatest=60).read("1m", "--period")
    60.0
    """

    name: str  # as on the command line and in the file: words joined by "-"
    kind: Kind
    default: str  # as a person would write it
    description: str
    least: float = -math.inf
    greatest: float = math.inf
    choices: tuple[str, ...] = ()  # of the kinds "choice" and "names"; empty: checked elsewhere
    can_be_off: bool = False
    off_value: float | None = None

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return "PENSTOCK_" + self.name.upper().replace("-", "_")

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        return self._allowed_on() + (f", or {OFF}" if self.can_be_off else "")

    def _allowed_on(self) -> str:
        names = ", ".join(self.choices)
        words = {
            "switch": "true or false",
            "text": "any text",
            "choice": names,
            "names": f"any of {names} (joined by commas), or {ALL}",
            "times": "spans such as 22:00-06:00,12:00-12:30",
            "schedule": f"rules such as {EXAMPLE.strip(chr(39))}",
            "table": "NAME=VALUE, joined by commas",
        }
        if self.kind in words:
            return words[self.kind]
        unit = " s" if self.kind == "duration" else ""
        least, greatest = (f"{bound:.15g}{unit}" for bound in (self.least, self.greatest))
        if math.isinf(self.greatest):
            return "any number" if math.isinf(self.least) else f"at least {least}"
        return f"{least} to {greatest}"

    def read(self, raw: object, label: str) -> Value:
        """The value in its own type, or a sentence that says what is allowed.

        `label` is what the user called the option where they wrote it.
        """
        word = raw.strip().lower() if isinstance(raw, str) else raw
        if self.can_be_off:
            if word is None or word == OFF or (_is_number(raw) and raw == self.off_value):
                return self.off_value
            if word == OLD_OFF:
                raise InvalidInput(f"{label} is {shown(raw)}; write {OFF} to turn it off.")
        if self.kind == "switch":
            return self._switch(raw, label)
        if self.kind in ("integer", "number", "duration"):
            return self._in_range(raw, label)
        return self._text(raw, label)

    def _text(self, raw: object, label: str) -> str:
        if not isinstance(raw, str) or not raw.strip():
            wanted = f"allowed: {self.allowed}" if self.choices else "give a text that is not empty"
            raise InvalidInput(f"{label} is {shown(raw)}; {wanted}.")
        if self.kind == "times":
            read_spans(raw, label)
        if self.kind == "schedule":
            read_schedule(raw, label)
        if self.kind == "choice" and self.choices and raw not in self.choices:
            raise InvalidInput(f"{label} is {shown(raw)}; allowed: {self.allowed}.")
        if self.kind == "names":
            self._check_names(raw, label)
        return raw

    def _check_names(self, raw: str, label: str) -> None:
        names = split_names(raw)
        for name in names:
            if self.choices and name not in self.choices and names != (ALL,):
                raise InvalidInput(f"{label} names {name!r}; allowed: {self.allowed}.")
        if len(set(names)) < len(names):
            raise InvalidInput(f"{label} is {shown(raw)}; name each one once.")

    def _switch(self, raw: object, label: str) -> bool:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, str) and raw.strip().lower() in WORDS:
            return WORDS[raw.strip().lower()]
        raise InvalidInput(f"{label} is {shown(raw)}; allowed: {self.allowed}.")

    def _in_range(self, raw: object, label: str) -> int | float:
        value = self._number(raw, label)
        if not self.least <= value <= self.greatest:
            raise InvalidInput(f"{label} is {shown(raw)}; allowed: {self.allowed}.")
        return int(value) if self.kind == "integer" else value

    def _number(self, raw: object, label: str) -> float:
        whole = self.kind == "integer"
        try:
            if isinstance(raw, str) and self.kind == "duration":
                value = parse_duration_s(raw, label)
            else:
                value = math.nan if isinstance(raw, bool) else float(raw)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError, InvalidInput):
            value = math.nan
        if math.isnan(value) or (whole and not value.is_integer()):
            wanted = {
                "integer": "give a whole number",
                "number": "give a number",
                "duration": "write a duration such as '5s' or '250ms'",
            }[self.kind]
            raise InvalidInput(f"{label} is {shown(raw)}; {wanted}, {self.allowed}.")
        return value


def split_names(text: str) -> tuple[str, ...]:
    """The names of a list that is joined by commas.

    >>> split_names("drs, ds2")
    ('drs', 'ds2')
    """
    return tuple(name.strip() for name in text.split(","))


def _is_number(raw: object) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool)
