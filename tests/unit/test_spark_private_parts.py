"""What is private in Spark is used in spark/handles alone, and each handle has a probe."""

import ast
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import penstock
from penstock.spark import handles
from penstock.spark.handles import messages
from penstock.spark.handles.probing import PROBES, Family

PACKAGE = Path(penstock.__file__).parent
HANDLES = PACKAGE / "spark" / "handles"
OUTSIDE = sorted(file for file in PACKAGE.rglob("*.py") if HANDLES not in file.parents)
PUBLIC = frozenset({"_replace", "_exit"})  # of named tuples and of os, in spite of their names


def is_private(name: str) -> bool:
    """Constants are left out: clients of other systems have public ones of such names."""
    return name.startswith("_") and name[1:2].islower() and name not in PUBLIC


def is_of_itself(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def is_inherited(node: ast.Attribute) -> bool:
    """A member of the object itself that another file defines; what py4j holds is never ours."""
    return is_of_itself(node) and not node.attr.startswith("_j")


def own_names(tree: ast.AST) -> set[str]:
    """Private names that a file gives to things of its own."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names |= {node.attr} if is_of_itself(node) else set()
    return names


def trespasses(text: str) -> Iterator[str]:
    """Private members of objects that are not the file's own, and imports of what is private.

    A file may use what is private in another of ours no more than what is private in Spark, so
    it is not asked whose an object is.
    """
    tree = ast.parse(text)
    own = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if node.attr not in own and not is_inherited(node):
                yield f"{node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)):
                yield f"{node.lineno}: getattr {name.value}"
        elif isinstance(node, ast.Import):
            yield from (
                f"{node.lineno}: import {one.name}"
                for one in node.names
                if _is_private_module(one.name)
            )
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for one in node.names:
                foreign = module.split(".")[0] in ("pyspark", "py4j") and is_private(one.name)
                if foreign or _is_private_module(f"{module}.{one.name}"):
                    yield f"{node.lineno}: from {module} import {one.name}"


def _is_private_module(name: str) -> bool:
    root, *parts = name.split(".")
    if name.startswith("penstock.spark.handles.gateway"):
        return True  # the way into the JVM is for the handles
    if root == "pyspark":
        return parts[:1] == ["java_gateway"] or any(map(is_private, parts))
    return root == "py4j"


def test_nothing_outside_the_handles_uses_what_is_private_in_spark() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{one}"
        for file in OUTSIDE
        for one in trespasses(file.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_every_way_to_what_is_private_is_seen() -> None:
    text = """
import py4j.protocol
from py4j import java_gateway
from pyspark.java_gateway import ensure_callback_server_started
from pyspark._globals import _NoValue
from penstock.spark.handles.gateway import java_class
frame._jdf.queryExecution()
spark.sparkContext._jvm.java
SparkContext._ensure_initialized()
self.query._jsq
self._jsparkSession
getattr(column, "_jc")
"""
    assert len(list(trespasses(text))) == 11


def test_what_a_file_calls_its_own_is_no_trespass() -> None:
    text = """
class Own:
    def __init__(self, other):
        self._jobs = other._jobs + self._join()
    def _join(self):
        return self.__class__.__name__
"""
    assert list(trespasses(text)) == []


def public_members(module: Any) -> Iterator[Callable[..., Any]]:
    """Functions that a module defines, and classes with methods."""
    for name, member in vars(module).items():
        if name.startswith("_") or getattr(member, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(member) or (inspect.isclass(member) and methods(member)):
            yield member


def methods(member: Any) -> list[Callable[..., Any]]:
    """What may be called of a class that does more than hold data."""
    if issubclass(member, str) or hasattr(member, "__dataclass_fields__"):
        return []
    return [f for n, f in vars(member).items() if inspect.isfunction(f) and not n.startswith("_")]


def passes_objects_of_the_jvm(member: Callable[..., Any]) -> bool:
    """They are of no type that Python knows; whatever passes one is for the handles alone."""
    called = methods(member) if inspect.isclass(member) else [member]
    passed = [a for one in called for a in inspect.get_annotations(inspect.unwrap(one)).values()]
    return any("typing.Any" in str(annotation) or annotation is Any for annotation in passed)


HANDLE_MODULES = [
    importlib.import_module(f"{handles.__name__}.{found.name}")
    for found in pkgutil.iter_modules(handles.__path__)
]
OF_PROBING = frozenset({"gateway", "probes", "probing"})  # are asked by the handles, or ask them
PUBLIC_HANDLES = [
    member
    for module in HANDLE_MODULES
    if module.__name__.split(".")[-1] not in OF_PROBING
    for member in public_members(module)
    if member.__module__ != messages.__name__ and not passes_objects_of_the_jvm(member)
]


@pytest.mark.parametrize("member", PUBLIC_HANDLES, ids=lambda member: member.__name__)
def test_every_handle_is_of_one_family_with_a_probe(member: Callable[..., Any]) -> None:
    assert sum(member in probe.handles for probe in PROBES.values()) == 1


def test_every_family_has_a_probe_of_its_own() -> None:
    assert set(PROBES) == set(Family)
    assert max(Counter(probe.attempt for probe in PROBES.values()).values()) == 1
    assert all(probe.handles for probe in PROBES.values())


def test_objects_of_the_jvm_stay_with_the_handles() -> None:
    inner = {
        (module.__name__, member.__name__)
        for module in HANDLE_MODULES
        for member in public_members(module)
        if passes_objects_of_the_jvm(member)
    }
    assert ("penstock.spark.handles.physical_plan", "shape_of") in inner
    taken = {
        (node.module, one.name): file.name
        for file in OUTSIDE
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }
    assert [taken[one] for one in inner & taken.keys()] == []
    offered = {name for name, what in vars(handles).items() if not isinstance(what, ModuleType)}
    assert not {name for _, name in inner} & offered
