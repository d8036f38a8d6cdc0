"""Where options are given: a TOML file, the environment, Python keywords, the command line.

Each source becomes a `Layer` of what was written and what the writer called it, so that a refusal
can name it; `merged` puts layers over each other and reads the values.
"""

import os
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.config.option import Option
from penstock.config.settings import FIELD_OF, OPTION_OF, OPTIONS, POLICY_OPTIONS, Settings
from penstock.errors import InvalidInput

DEFAULT_FILE = Path("penstock.toml")
TABLE = "penstock"  # of the TOML file, so that it can be a part of a larger one
_POLICY_TABLE = OPTION_OF[POLICY_OPTIONS].name


@dataclass(frozen=True)
class Given:
    """A value as it was written, and what the option was called there."""

    raw: object
    label: str


@dataclass(frozen=True)
class Layer:
    """What one source says: by field of Settings, and the options of the policy by their names."""

    options: Mapping[str, Given] = field(default_factory=dict)
    policy_options: Mapping[str, Given] = field(default_factory=dict)


@dataclass(frozen=True)
class Merged:
    """Values by field of Settings; `labels` says what those that were given were called.

    The options of the policy are not read yet: only the policy knows their kinds.
    """

    values: Mapping[str, Any]
    labels: Mapping[str, str]
    policy_options: Mapping[str, Given]

    def called(self, field: str) -> str:
        """The name of a field as the user wrote it; else the option's own."""
        return self.labels.get(field, OPTION_OF[field].name)


def merged(
    layers: Iterable[Layer],
    options: Iterable[Option] = OPTIONS,
    defaults: Mapping[str, Any] | None = None,
    only: Collection[str] | None = None,
) -> Merged:
    """The later layer over the earlier, each value read and checked by its option.

    `only` names the options that are read at all; the others keep their defaults. Options of a
    policy do not outlive it: a layer that names another policy drops those given below it.
    """
    known = {FIELD_OF[option.name]: option for option in options}
    values = vars(Settings()) | dict(defaults or {})
    labels: dict[str, str] = {}
    policy_options: dict[str, Given] = {}
    for layer in layers:
        before = values["policy"]
        for name, given in layer.options.items():
            if only is None or known[name].name in only:
                values[name] = known[name].read(given.raw, given.label)
                labels[name] = given.label
        if values["policy"] != before:
            policy_options = {}
        if only is None or _POLICY_TABLE in only:
            policy_options |= layer.policy_options
    return Merged(values, labels, policy_options)


def from_keywords(options: Mapping[str, object]) -> Layer:
    """Python keywords: fields of Settings, such as `period_s=5` or `period_s="5s"`."""
    for name in options:
        if name not in OPTION_OF:
            raise InvalidInput(f"option {name!r} is unknown; known: {', '.join(OPTION_OF)}.")
    table = options.get(POLICY_OPTIONS, {})
    if not isinstance(table, Mapping):
        raise InvalidInput(
            f"{POLICY_OPTIONS} is {table!r}; give a mapping of names to values, such as "
            "{'window_s': 30}."
        )
    return Layer(
        {name: Given(raw, name) for name, raw in options.items() if name != POLICY_OPTIONS},
        {str(name): Given(raw, f"{POLICY_OPTIONS}[{name!r}]") for name, raw in table.items()},
    )


def from_command_line(options: Mapping[str, object], policy_options: Sequence[str] = ()) -> Layer:
    """Options by their names, those that were given; and the NAME=VALUE of each --policy-option."""
    return Layer(
        {FIELD_OF[name]: Given(raw, f"--{name}") for name, raw in options.items()},
        _pairs(policy_options, "--policy-option", "--policy-option {}"),
    )


def from_environment(environment: Mapping[str, str] | None = None) -> Layer:
    """Variables such as PENSTOCK_PERIOD; PENSTOCK_POLICY_OPTIONS holds name=value,name=value."""
    environment = os.environ if environment is None else environment
    found = {
        name: Given(environment[option.variable], option.variable)
        for name, option in OPTION_OF.items()
        if option.variable in environment
    }
    table = found.pop(POLICY_OPTIONS, None)
    if table is None or not str(table.raw).strip():
        return Layer(found)
    pairs = str(table.raw).split(",")
    return Layer(found, _pairs(pairs, table.label, f"{{}} in {table.label}"))


def _pairs(pairs: Iterable[str], where: str, label: str) -> dict[str, Given]:
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise InvalidInput(f"{where} is {pair!r}; write NAME=VALUE, such as window_s=30.")
        found[name.strip()] = Given(value.strip(), label.format(name.strip()))
    return found


def from_file(file: Path | None = None) -> Layer:
    """The table of a TOML file: the one named, else `penstock.toml` here if there is one."""
    if file is None and not DEFAULT_FILE.is_file():
        return Layer()
    path = file or DEFAULT_FILE
    table = dict(_table(_document(path), TABLE, path))
    policy_table = _table(table, _POLICY_TABLE, path)
    table.pop(_POLICY_TABLE, None)
    unknown = sorted(set(table) - set(FIELD_OF))
    if unknown:
        raise InvalidInput(f"{path}: unknown option {unknown[0]!r}; known: {', '.join(FIELD_OF)}.")
    return Layer(
        {FIELD_OF[name]: Given(raw, f"{name} in {path}") for name, raw in table.items()},
        {
            name: Given(raw, f"{name} in [{TABLE}.{_POLICY_TABLE}] of {path}")
            for name, raw in policy_table.items()
        },
    )


def _table(document: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise InvalidInput(f"{path}: {name} must be a table of options, not {table!r}.")
    return table


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}.") from error
    except ValueError as error:
        raise InvalidInput(f"{path} holds a number that is too long to be read.") from error
