"""Every option of a run as an option of a command, so that none is typed in twice."""

import functools
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.config import OPTIONS, Option, read_settings

PANEL = "Options of the run (docs/options.md)"


def with_settings(without: Collection[str] = ()) -> Callable[[Callable[..., None]], Any]:
    """Give a command `--config` and all options but those named; it gets them as `settings`.

    The command has a parameter `settings`, filled from the file, the environment and the command
    line, in rising precedence.
    """
    offered = [option for option in OPTIONS if option.name not in without]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            file = given.pop("config")
            chosen = {option.name: given.pop(_parameter(option)) for option in offered}
            command(**given, settings=read_settings(file, command_line=chosen))

        own = inspect.signature(command, eval_str=True).parameters.values()
        added = {"config": _CONFIG} | {_parameter(option): _flag(option) for option in offered}
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


_CONFIG = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="By default penstock.toml, if any.", rich_help_panel=PANEL
    ),
]


def _parameter(option: Option) -> str:
    return "option_" + option.name.replace("-", "_")


def _flag(option: Option) -> Any:
    text = f"{option.description} Default: {option.default}."
    if option.kind == "switch":
        names = f"--{option.name}/--no-{option.name}"
        return Annotated[bool | None, typer.Option(names, help=text, rich_help_panel=PANEL)]
    return Annotated[
        str | None,
        typer.Option(
            f"--{option.name}", metavar=option.kind.upper(), help=text, rich_help_panel=PANEL
        ),
    ]
