"""The one door for settings: defaults, then a file, the environment, and what is given explicitly.

The command line and Python come in here alike; only what they call an option differs. Everything is
checked, the policy and its options too, before anything starts.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.config import OPTIONS, Option, Settings
from penstock.config.option import ALL, split_names
from penstock.config.settings import check_together
from penstock.config.sources import Given, Layer, from_environment, from_file, merged
from penstock.errors import InvalidInput, documented
from penstock.scaling.policies.registry import (
    has_option,
    names,
    policy,
    policy_options,
    read_policy_option,
)

_BY_POLICY = ("policy", "shadow")  # options whose values are names of policies


def known_options() -> tuple[Option, ...]:
    """Every option, with the names of the policies there are."""
    return tuple(replace(o, choices=names()) if o.name in _BY_POLICY else o for o in OPTIONS)


def resolved_settings(
    explicit: Layer | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    only: Collection[str] | None = None,
) -> Settings:
    """Settings from all sources, the later over the earlier, or a sentence on what is wrong.

    `explicit` comes from `config.sources.from_keywords` or `from_command_line`. `defaults` are
    the caller's own, by field, below every source. `only` names the options that are read at all.
    Without a file given, `penstock.toml` in the working directory is read if there is one.
    """
    with documented("options"):
        layers = (from_file(file), from_environment(environment), explicit or Layer())
        found = merged(layers, known_options(), defaults, only)
        check_together(found.values, found.called)
    concerned = names() if only is not None and "policy" not in only else _concerned(found.values)
    with documented("scaling"):
        options = _read_policy_options(found.policy_options, concerned)
        settings = Settings(**{**found.values, "policy_options": options})
        for name in concerned:  # refuses options that a policy cannot have together
            policy(name, **options_for(name, settings))
    return settings


def options_for(name: str, settings: Settings) -> dict[str, Any]:
    """Those of the given policy options that a policy has."""
    return {k: v for k, v in settings.policy_options.items() if has_option(name, k)}


def shadow_names(shadow: str | None, acting: str) -> tuple[str, ...]:
    """The policies that decide without acting; `all` are those that could do anything else.

    >>> shadow_names("drs, ds2", "incremental")
    ('drs', 'ds2')
    """
    if shadow is None:
        return ()
    if split_names(shadow) == (ALL,):
        return tuple(name for name in names() if name not in (acting, "static"))
    return split_names(shadow)


def _concerned(values: Mapping[str, Any]) -> tuple[str, ...]:
    return (values["policy"], *shadow_names(values["shadow"], values["policy"]))


def _read_policy_options(given: Mapping[str, Given], concerned: tuple[str, ...]) -> dict[str, Any]:
    """Each option as the first policy that has it reads it."""
    found = {}
    for option, one in given.items():
        having = [name for name in concerned if has_option(name, option)]
        if not having and len(concerned) > 1:
            known = sorted({known for name in concerned for known in policy_options(name)})
            raise InvalidInput(
                f"{one.label} is not an option of any of {', '.join(concerned)}; known: "
                f"{', '.join(known)}."
            )
        found[option] = read_policy_option((having or concerned)[0], option, one.raw, one.label)
    return found
