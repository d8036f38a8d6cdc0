"""Whatever goes wrong inside a command leaves the program as one line and an exit code."""

import inspect
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from penstock.cli.output import be_quiet, one_line
from penstock.errors import PenstockError, notes_of

FAILED = 1
WRONG_USAGE = 2
INFEASIBLE = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
MEANINGS = (
    "Exit codes: 0 success, 1 failure, 2 bad input, 3 the request cannot be met, 130 interrupted. "
    "Also --quiet (the answer and errors only) and --debug (tracebacks), anywhere."
)
COMPLETE_VAR = "_PENSTOCK_COMPLETE"  # what a shell sets when it asks for completions


class ExitCodeGroup(TyperGroup):
    """The group of all commands, with the error contract around them.

    A PenstockError is its sentence and its exit code; wrong usage is one sentence and 2; Ctrl-C is
    silence and 130; a closed pipe is silence and 1; trouble of the machine (a full disk) is what
    it says and 1; anything else is an internal error and 1.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run the command and end the process with its exit code."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        be_quiet("--quiet" in given)
        given = [argument for argument in given if argument not in ("--debug", "--quiet")]
        if COMPLETE_VAR in os.environ:
            from typer.completion import completion_init  # type: ignore[attr-defined]

            completion_init()
        try:
            answer = super().main(
                given, prog_name, complete_var, False, windows_expand_args, **extra
            )
            if sys.stdout is not None:  # None when the caller closed it
                sys.stdout.flush()
            code = answer if isinstance(answer, int) else 0
        except BrokenPipeError:
            code = _reader_gone()
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001 - nothing may leave as a traceback
            code = _reported(error, debug)
        sys.exit(code)


def with_exit_codes(app: typer.Typer) -> None:
    """What exit codes mean is part of the help of every command, and of groups of commands."""
    groups = [one.typer_instance for one in app.registered_groups if one.typer_instance]
    for group in (app, *groups):
        for info in (*group.registered_commands, group.registered_callback):
            if info is not None:
                _explain_codes(info)
        if group.registered_callback is None:
            group.info.help = f"{group.info.help}\n\n{MEANINGS}"


def _explain_codes(info: Any) -> None:
    text = inspect.getdoc(info.callback) or ""
    unbroken = re.sub(r"(?<!\n)\n(?!\n)", " ", text)  # a terminal breaks lines where it ends
    info.help = f"{unbroken}\n\n{MEANINGS}"


def _reported(error: Exception, debug: bool) -> int:
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, PenstockError):
        return _say(" ".join([str(error), *notes_of(error)]), error.exit_code)
    usage = getattr(error, "format_message", None)  # typer does not export UsageError
    if usage is not None:
        said = str(usage()).rstrip(".")  # empty when the help was printed instead
        where = getattr(getattr(error, "ctx", None), "command_path", "penstock")
        return _say(f"{said}. See {where} --help.", WRONG_USAGE) if said else WRONG_USAGE
    if isinstance(error, OSError):
        return _say(f"{error}.", FAILED)
    hint = "" if debug else " (use --debug to see where)"
    return _say(f"internal error: {type(error).__name__}: {error}{hint}", FAILED)


def _say(sentence: str, code: int) -> int:
    print(f"penstock: {one_line(sentence)}", file=sys.stderr)
    return code


def _reader_gone() -> int:
    """`penstock ... | head`: what is still buffered goes nowhere, so Python ends in silence."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
