"""Whether two functions do the same: the same code, reaching the same values by the same names.

Where that cannot be told (an object of a class of the user's, a generator, an open file), they are
not the same: nothing is ever taken for equal that might not be. Names of functions, of files and
numbers of lines do not count.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.model.user_code import is_users

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


class _CannotTell(Exception):
    pass


def same_code_digest(value: Any) -> str | None:
    """Equal for what does the same; None where that cannot be told.

    >>> same_code_digest(lambda x: x + 1) == same_code_digest(lambda x: x + 1)
    True
    >>> same_code_digest(lambda x: x + 1) == same_code_digest(lambda x: x + 2)
    False
    """
    try:
        return hashlib.sha256(repr(_described(value, {})).encode()).hexdigest()
    except _CannotTell:
        return None


def _described(value: Any, seen: dict[int, int]) -> Any:
    """A value as nested tuples of text; of what comes again, where it came first."""
    if isinstance(value, _PLAIN):
        return type(value).__name__, repr(value)
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    for kinds, tell in _KINDS:
        if isinstance(value, kinds):
            return tell(value, seen)
    if callable(getattr(value, "func", None)) and hasattr(value, "returnType"):
        return _udf(value, seen)
    if is_dataclass(value) and not is_users(_file_of(type(value))):
        described = [
            (one.name, _described(getattr(value, one.name), seen)) for one in fields(value)
        ]
        return _installed(type(value)), *described
    if type(value).__module__ == "pyspark.sql.types":
        return _installed(type(value)), repr(value)
    raise _CannotTell


def _function(value: FunctionType, seen: dict[int, int]) -> Any:
    if hasattr(value, "func") and hasattr(value, "returnType"):  # a decorated one of Spark
        return _udf(value, seen)
    if not is_users(value.__code__.co_filename):
        if value.__closure__:
            raise _CannotTell  # made by an installed function, from values of the user's
        return _installed(value)
    code = value.__code__
    used = _names_of(code)
    known = {name: value.__globals__[name] for name in used if name in value.__globals__}
    return (
        "function", _code(code), _described(value.__defaults__, seen),
        _described(value.__kwdefaults__, seen), _described(_cells(value), seen),
        [(name, _global(found, used, seen)) for name, found in sorted(known.items())],
    )  # fmt: skip


def _global(found: Any, used: set[str], seen: dict[int, int]) -> Any:
    """What a name stands for; of the user's modules, those of their names that may be used."""
    if isinstance(found, ModuleType) and is_users(getattr(found, "__file__", None) or "<frozen"):
        inside = {name: one for name, one in vars(found).items() if name in used}
        return [(name, _described(one, seen)) for name, one in sorted(inside.items())]
    return _described(found, seen)


def _udf(value: Any, seen: dict[int, int]) -> Any:
    said = [str(getattr(value, name, None)) for name in ("returnType", "evalType", "deterministic")]
    return "udf", said, _described(value.func, seen)


def _cells(function: FunctionType) -> tuple[Any, ...]:
    try:
        return tuple(cell.cell_contents for cell in function.__closure__ or ())
    except ValueError as error:  # not set yet
        raise _CannotTell from error


def _names_of(code: CodeType) -> set[str]:
    inner = [_names_of(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


def _code(code: CodeType) -> Any:
    constants = [
        _code(one) if isinstance(one, CodeType) else _described(one, {}) for one in code.co_consts
    ]
    shape = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code.hex(), shape, names, code.co_exceptiontable.hex(), constants


def _mapping(value: Mapping[Any, Any], seen: dict[int, int]) -> Any:
    if type(value) is not dict:
        raise _CannotTell
    return "dict", [(_described(key, seen), _described(one, seen)) for key, one in value.items()]


def _sequence(value: Any, seen: dict[int, int]) -> Any:
    if type(value) not in (tuple, list):
        raise _CannotTell
    return type(value).__name__, [_described(one, seen) for one in value]


def _set(value: Any, seen: dict[int, int]) -> Any:
    if not all(isinstance(one, _PLAIN) for one in value):
        raise _CannotTell
    return type(value).__name__, sorted(repr((type(one).__name__, one)) for one in value)


def _partial(value: Any, seen: dict[int, int]) -> Any:
    return "partial", [_described(one, seen) for one in (value.func, value.args, value.keywords)]


def _installed(value: Any, _seen: object = None) -> Any:
    if isinstance(value, type) and is_users(_file_of(value)):
        raise _CannotTell
    return "installed", getattr(value, "__module__", ""), getattr(value, "__qualname__", "")


def _module(value: ModuleType, _seen: object) -> Any:
    if is_users(getattr(value, "__file__", None) or "<frozen"):
        raise _CannotTell
    return "module", value.__name__


def _method(value: MethodType, seen: dict[int, int]) -> Any:
    return "method", _described(value.__func__, seen), _described(value.__self__, seen)


def _file_of(kind: type) -> str:
    """Where a class was written; what is built in counts as installed."""
    import sys

    module = sys.modules.get(kind.__module__)
    if module is None:
        return "unknown"  # a module that was read and forgotten: a user's
    return getattr(module, "__file__", None) or "<frozen"


_KINDS: tuple[tuple[Any, Callable[[Any, dict[int, int]], Any]], ...] = (
    (FunctionType, _function), (BuiltinFunctionType, _installed), (MethodType, _method),
    (partial, _partial), (ModuleType, _module), (type, _installed),
    ((set, frozenset), _set), ((tuple, list), _sequence), (dict, _mapping),
)  # fmt: skip
