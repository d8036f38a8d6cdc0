"""The Python code that a user's function runs: its own, and that of what it calls.

Followed are functions, classes and user-defined functions of Spark that are reached by name from
the code: constants, closures, globals, and names of the user's own modules. Installed packages are
not entered: they are not the user's, and change with an upgrade.
"""

import sysconfig
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

# Which operator's function is being called, for errors that name it.
CURRENT_OPERATOR: ContextVar[str] = ContextVar("operator", default="")
# Whether another operator keeps state behind it in the same query.
STATE_FOLLOWS: ContextVar[bool] = ContextVar("state follows", default=False)
_INSTALLED = (
    "/site-packages/", "/dist-packages/", "/pyspark.zip/", "<frozen",
    str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"),
)  # fmt: skip


def operator_name() -> str:
    """The operator whose function is being called; empty outside of a topology."""
    return CURRENT_OPERATOR.get()


def is_users(file: str) -> bool:
    """Whether a file belongs to no package that is installed."""
    return not any(part in file for part in _INSTALLED)


def reachable_code(root: Any) -> Iterator[CodeType]:
    """Every code object that a function may run, each once, in the order in which it is named."""
    seen: set[int] = set()
    pending: list[Any] = [root]
    while pending:
        found = pending.pop(0)
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, CodeType):
            if is_users(found.co_filename):
                yield found
                pending += [one for one in found.co_consts if isinstance(one, CodeType)]
        else:
            pending += _named_by(found)


def _named_by(found: Any) -> list[Any]:
    """What a function, method, class or callable object leads to."""
    if isinstance(found, MethodType):
        return [found.__func__, found.__self__]
    if isinstance(found, partial):
        return [found.func, *found.args, *found.keywords.values()]
    if isinstance(found, FunctionType):
        wrapped = [getattr(found, name, None) for name in ("func", "__wrapped__")]
        own = [found.__code__, *_globals_of(found)] if is_users(_file(found)) else []
        return [*wrapped, *own, *_closed_over(found)]
    if isinstance(found, type):
        return list(vars(found).values()) if _of_users_module(found) else []
    if isinstance(found, staticmethod | classmethod):
        return [found.__func__]
    if hasattr(found, "func") and callable(found.func):  # a user-defined function of Spark
        return [found.func]
    return [type(found)] if _of_users_module(type(found)) else []


def _file(function: FunctionType) -> str:
    return function.__code__.co_filename


def _of_users_module(kind: type) -> bool:
    codes = [one.__code__ for one in vars(kind).values() if isinstance(one, FunctionType)]
    return any(is_users(code.co_filename) for code in codes)


def _closed_over(function: FunctionType) -> list[Any]:
    values = []
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not set yet
            continue
    return values


def _globals_of(function: FunctionType) -> list[Any]:
    """What the names in a function, and in functions inside it, stand for."""
    names: list[str] = []
    codes = [function.__code__]
    while codes:
        code = codes.pop(0)
        names += code.co_names
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [one for one in values if isinstance(one, ModuleType)]
    users = [one for one in modules if is_users(getattr(one, "__file__", None) or "<frozen")]
    return values + [vars(one)[name] for one in users for name in names if name in vars(one)]


def holds_line(root: Any, file: str, line: int) -> bool:
    """Whether a line of a file is among the code that a function may run."""
    where = Path(file).resolve()
    for code in reachable_code(root):
        lines = [number for _, _, number in code.co_lines() if number is not None]
        if Path(code.co_filename).resolve() == where and min(lines) <= line <= max(lines):
            return True
    return False
