"""docs/options.md, made from the options themselves: `python -m penstock.cli.options_page`."""

import sys
from collections.abc import Iterable

from penstock.config import Option
from penstock.config.settings import FIELD_OF
from penstock.control.resolved_settings import known_options
from penstock.scaling.policies.registry import names, policy_options

INTRODUCTION = """\
# Options

Made by `make docs` from `src/penstock/config/settings.py` and the policies' own fields.

An option can be given in three places; each takes precedence over the one before:

1. a TOML file: the table `[penstock]` of `penstock.toml` in the working directory, or of the file
   named with `--config` (in Python `config=`);
2. the environment: `PENSTOCK_PERIOD=2s`;
3. explicitly: `--period 2s` on the command line, `period_s=2` as a Python keyword.

Durations are written as `5s`, `250ms`, `2 minutes` or plain seconds. Where an option can be
turned off, `off` does it; in Python `None` does too. `true`, `yes`, `on` and `1` mean the same, and
so do `false`, `no`, `off` and `0`.
"""

POLICY_OPTIONS = """\
## Options of the policies

[scaling.md](scaling.md) says what each policy is for. Its options have the same names everywhere:

```toml
[penstock]
policy = "autoscale"

[penstock.policy-options]
window_s = "30s"
```

or `--policy autoscale --policy-option window_s=30s`,
`PENSTOCK_POLICY_OPTIONS="window_s=30s,variant=local"`, and `policy_options={"window_s": 30}` in
Python. They are merged by name and belong to the policy they were given with: if a later place
names another policy, those of earlier places are dropped. Shadow policies, and the policies that
`penstock plan` tries, use the options that they know.
"""


def options_page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, _options_table(known_options()), POLICY_OPTIONS]
    for name in names():
        known = policy_options(name).values()
        parts += [f"### {name}\n", _policy_table(known) if known else "It has no options.\n"]
    return "\n".join(parts)


def _options_table(options: Iterable[Option]) -> str:
    rows = [
        f"| `{o.name}` | `{FIELD_OF[o.name]}` | `{o.variable}` | {o.kind} | {_code(o.default)} "
        f"| {o.allowed} | {o.description} |"
        for o in options
    ]
    head = [
        "| option | in Python | environment | type | default | allowed | what it does |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _policy_table(options: Iterable[Option]) -> str:
    rows = [
        f"| `{o.name}` | {o.kind} | {_code(o.default)} | {o.allowed} | {o.description} |"
        for o in options
    ]
    head = ["| option | type | default | allowed | what it does |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def _code(default: str) -> str:
    return f"`{default}`" if default else ""


if __name__ == "__main__":
    sys.stdout.write(options_page())
