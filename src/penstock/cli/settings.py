"""Every option of a run as an option of a command, so that none is typed in twice."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.config import Option
from penstock.config.settings import FIELD_OF, OPTION_OF
from penstock.config.sources import from_command_line
from penstock.control.resolved_settings import known_options, resolved_settings
from penstock.errors import InvalidInput

POLICY_TABLE = "policy-options"
PANEL = "Options of the run (penstock docs options)"
# What a scenario or a recorded run says itself, or what a simulated cluster has nothing of.
NOT_SIMULATED = (
    "period", "executors-min", "executors-max", "slots", "executor-memory-mb", "key-groups",
    "batch-interval", "channel-rows", "fusion-beta", "fusion-capacity", "fusion-tolerance",
    "history",
)  # fmt: skip
# A schedule is held against the executors of each scenario instead, once that is read.
ANY_SIZE = {"executors_max": OPTION_OF["executors_max"].greatest}
HISTORY_KEEPING = ("history-age", "history-mb")  # nothing to offer where no history is written
HISTORY_HELP = "A history: a file or an SQLAlchemy URL. Default: the option history."


def with_settings(
    without: Collection[str] = (),
    only: Collection[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    needs: Mapping[str, str] | None = None,
    unlisted: Collection[str] = (),
) -> Callable[[Callable[..., None]], Any]:
    """Give a command `--config` and the options of a run; it gets them as `settings`.

    The command has a parameter `settings`, filled from the file, the environment and the command
    line, in rising precedence. It gets all options but those of `without`, or those of `only`;
    what it does not get is not read anywhere. `defaults` are the command's own, by field.
    `needs` names options that say nothing without another one of the command's own, `unlisted`
    those that the command only reads to refuse them: its help does not show them.
    """
    offered = [
        option
        for option in known_options()
        if option.name not in without and (only is None or option.name in only)
    ]
    read = [option.name for option in offered]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            file = given.pop("config")
            written = {option.name: given.pop(_parameter(option)) for option in offered}
            for option, other in (needs or {}).items():
                if written[option] is not None and not given[other]:
                    raise InvalidInput(f"--{option} says nothing without --{other}; give that too.")
            policy_options = written.pop(POLICY_TABLE, None) or ()
            explicit = from_command_line(
                {name: raw for name, raw in written.items() if raw is not None}, policy_options
            )
            found = resolved_settings(explicit, file=file, only=read, defaults=defaults)
            command(**given, settings=found)

        own = inspect.signature(command, eval_str=True).parameters.values()
        added = {"config": _CONFIG} | {
            _parameter(option): _flag(option, defaults or {}, option.name in unlisted)
            for option in offered
        }
        parameters = [p for p in own if p.name != "settings"]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in added.items()
        ]
        vars(wrapped)["__signature__"] = inspect.Signature(parameters)
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        del vars(wrapped)["__wrapped__"]  # typer would look through it at the bare command
        return wrapped

    return decorate


def history_place(given: str | None) -> str:
    """Where the history of a command is that needs no other option: as given, else as set."""
    explicit = from_command_line({} if given is None else {"history": given})
    return resolved_settings(explicit, only=("history",)).history


_CONFIG = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A TOML file with options. Default: penstock.toml, if there is one.",
        rich_help_panel=PANEL,
    ),
]
_POLICY_OPTION = Annotated[
    list[str] | None,
    typer.Option(
        "--policy-option",
        metavar="NAME=VALUE",
        help="An option of the policy itself (penstock docs scaling); may be repeated.",
        rich_help_panel=PANEL,
    ),
]


def _parameter(option: Option) -> str:
    return "option_" + option.name.replace("-", "_")


def _completing(option: Option) -> Callable[[str], list[str]]:
    return lambda incomplete: [name for name in option.choices if name.startswith(incomplete)]


def _flag(option: Option, defaults: Mapping[str, Any], hidden: bool) -> Any:
    if option.kind == "table":
        return _POLICY_OPTION
    default = defaults.get(FIELD_OF[option.name], option.default)
    listed = f" Allowed: {option.allowed}." if option.choices else ""
    text = f"{option.description}{listed} Default: {default}."
    if option.kind == "switch":
        names = f"--{option.name}/--no-{option.name}"
        return Annotated[
            bool | None, typer.Option(names, help=text, rich_help_panel=PANEL, hidden=hidden)
        ]
    metavar = {"choice": "NAME", "names": "NAME,..."}.get(option.kind, option.kind.upper())
    return Annotated[
        str | None,
        typer.Option(
            f"--{option.name}",
            metavar=f"{metavar}|off" if option.can_be_off else metavar,
            autocompletion=_completing(option) if option.choices else None,
            help=text,
            rich_help_panel=PANEL,
            hidden=hidden,
        ),
    ]
