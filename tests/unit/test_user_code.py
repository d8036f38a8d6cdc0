"""Which code belongs to a user's function."""

from functools import partial
from typing import Any

from penstock.model.user_code import holds_line, reachable_code


def doubled(value: int) -> int:
    return 2 * value


class Processor:
    def handle(self, value: int) -> int:
        return doubled(value)


def by_name(value: int) -> int:
    return doubled(value)


def by_object(value: int) -> int:
    return Processor().handle(value)


def with_inner() -> object:
    def inner(value: int) -> int:
        return value + 1

    return inner


def names(function: object) -> list[str]:
    return [code.co_name for code in reachable_code(function)]


def test_code_is_followed_by_name_through_objects_and_partials() -> None:
    assert names(by_name) == ["by_name", "doubled"]
    assert "handle" in names(by_object)
    assert "doubled" in names(by_object)
    assert names(partial(by_name, 1))[0] == "by_name"
    assert "inner" in names(with_inner)
    assert "handle" in names(Processor().handle)


def test_code_closed_over_is_followed() -> None:
    function = doubled

    def outer(value: int) -> int:
        return function(value)

    assert names(outer) == ["outer", "doubled"]


def test_installed_packages_are_not_entered() -> None:
    import json

    assert names(json.dumps) == []


def test_a_line_is_found_in_what_is_called() -> None:
    line = doubled.__code__.co_firstlineno + 1
    assert holds_line(by_name, __file__, line)
    assert not holds_line(with_inner, __file__, line)


def test_user_defined_functions_of_spark_lead_to_their_function() -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegerType

    wrapped: Any = F.udf(doubled, IntegerType(), useArrow=False)

    def operator(rows: object) -> object:
        return wrapped(rows)

    assert "doubled" in names(operator)
