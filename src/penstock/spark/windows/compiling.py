"""From aggregates as a user names them to projected columns, kernels and results."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, DecimalType, StructType

from penstock.errors import InvalidTopology
from penstock.model.aggregates import UserAggregate
from penstock.spark.handles import distinct_count_tables
from penstock.spark.handles.messages import first_line
from penstock.spark.windows import results
from penstock.spark.windows.decimals import DecimalSum
from penstock.spark.windows.distinct import PRECISION, Estimator, Registers
from penstock.spark.windows.kernels import Extreme, FloatSum, IntSum, Kernel, Rows
from penstock.spark.windows.ranked import RankedExtreme
from penstock.spark.windows.results import Result
from penstock.spark.windows.user import UserKernel

FUNCTIONS = ("count", "sum", "avg", "min", "max", "approx_count_distinct")
_FORM = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_LONGEST_INT64_DECIMAL = 18

Aggregates = Mapping[str, str | UserAggregate]


@dataclass(frozen=True)
class Call:
    """An aggregate of Spark's by name, over an expression; None is count(*)."""

    function: str
    over: str | None

    @property
    def sql(self) -> str:
        """As Spark reads it."""
        return f"{self.function}({'*' if self.over is None else self.over})"


def parse_call(name: str, text: Any) -> Call:
    """`sum(speed)`, `count`, `max(a + b)`."""
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    function = match.group(1).lower() if match else ""
    if match is None or function not in FUNCTIONS:
        raise InvalidTopology(
            f"aggregates: {name!r} is {text!r}; allowed: {', '.join(FUNCTIONS)} of an expression, "
            "such as 'sum(speed)', or a UserAggregate."
        )
    over = (match.group(2) or "").strip()
    if function == "count" and over in ("", "*", "1"):
        return Call("count", None)
    if not over:
        raise InvalidTopology(
            f"aggregates: {name!r} is {text!r}; say of what, such as '{function}(speed)'."
        )
    return Call(function, over)


@dataclass
class Compiled:
    """Columns to project, kernels over them, and results over the kernels."""

    frame: DataFrame
    ansi: bool
    projected: dict[str, Column] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    results: list[tuple[str, Result]] = field(default_factory=list)
    types: list[tuple[str, DataType]] = field(default_factory=list)
    _named: dict[tuple[str, str], str] = field(default_factory=dict)
    _estimator: Estimator | None = None

    def add(self, name: str, call: Call, returns: DataType) -> None:
        """An aggregate of Spark's, in the type that Spark gives it."""
        self.types.append((name, returns))
        self.results.append((name, self._result(name, call, returns)))

    def add_user(self, name: str, aggregate: UserAggregate) -> None:
        """A user's own aggregate."""
        for column in aggregate.columns:
            if column not in self.frame.columns:
                raise InvalidTopology(
                    f"aggregates: {name!r}: column {column!r} is unknown; columns: "
                    f"{', '.join(self.frame.columns)}."
                )
        state = _parsed(f"aggregates: {name!r}: state", aggregate.state)
        if not isinstance(state, StructType):
            raise InvalidTopology(
                f"aggregates: {name!r}: state is {aggregate.state!r}; give names with types, such "
                "as 'n BIGINT, low DOUBLE'."
            )
        returns = _parsed(f"aggregates: {name!r}: returns", aggregate.returns)
        inputs = tuple(self._column(f"`{column}`", "") for column in aggregate.columns)
        kernel = UserKernel(name, aggregate, inputs, _arrow(state), _arrow(returns))
        self.types.append((name, returns))
        place = self._kernel(kernel, shared=False)
        self.results.append((name, partial(results.user, kernel=place, of=kernel)))

    def _result(self, name: str, call: Call, returns: DataType) -> Result:
        if call.over is None:
            return partial(results.count, rows=self._kernel(Rows()))
        if call.function == "approx_count_distinct":
            hashes = self._column(f"xxhash64({call.over})", "", valid=call.over)
            kernel = self._kernel(Registers(hashes))
            return partial(results.distinct, kernel=kernel, estimator=self._estimates())
        if call.function == "count":
            return partial(results.count, rows=self._kernel(Rows(self._column(call.over, ""))))
        if call.function in ("min", "max"):
            return self._extreme(name, call, returns)
        return self._sum(name, call, returns)

    def _sum(self, name: str, call: Call, returns: DataType) -> Result:
        over = str(call.over)
        if isinstance(returns, DecimalType):
            column = self._column(over, "")
            kind = self.frame.select(F.expr(over)).schema.fields[0].dataType
            assert isinstance(kind, DecimalType)
            given: dict[str, Any] = {
                "kernel": self._kernel(DecimalSum(column)), "rows": self._kernel(Rows(column)),
                "kind": _arrow(returns), "ansi": self.ansi,
            }  # fmt: skip
            if call.function == "sum":
                return partial(results.decimal_total, **given)
            return partial(results.decimal_mean, scale=kind.scale, **given)
        kind_name = returns.simpleString()
        if kind_name not in ("bigint", "double"):
            raise InvalidTopology(
                f"aggregates: {name!r}: {call.sql} is of type {kind_name}; allowed: sums and means "
                "of numbers."
            )
        column = self._column(over, kind_name)
        rows = self._kernel(Rows(column))
        if call.function == "avg":
            return partial(results.mean, kernel=self._kernel(FloatSum(column)), rows=rows)
        exact = IntSum(column, self.ansi) if kind_name == "bigint" else FloatSum(column)
        return self._number(exact, rows, _arrow(returns))

    def _extreme(self, name: str, call: Call, returns: DataType) -> Result:
        column, kind = self._column(str(call.over), ""), _arrow(returns)
        greatest = call.function == "max"
        wide = pa.types.is_decimal(kind) and kind.precision > _LONGEST_INT64_DECIMAL
        if wide or pa.types.is_string(kind) or pa.types.is_binary(kind):
            return partial(results.ranked, kernel=self._kernel(RankedExtreme(column, greatest)))
        if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)):
            raise InvalidTopology(
                f"aggregates: {name!r}: {call.sql} is of type {returns.simpleString()}; allowed: "
                "numbers, text, binary, booleans, dates and times."
            )
        extreme = Extreme(column, greatest, _numpy_name(kind))
        return self._number(extreme, self._kernel(Rows(column)), kind)

    def _number(self, kernel: Kernel, rows: int, kind: Any) -> Result:
        return partial(results.number, kernel=self._kernel(kernel), rows=rows, kind=kind)

    def _column(self, sql: str, cast: str, valid: str | None = None) -> str:
        """The projected column of an expression; equal ones are projected once."""
        if (sql, cast) not in self._named:
            column = F.expr(sql)
            if cast:
                column = column.cast(cast)
            if valid is not None:  # a hash of null is a number
                column = F.when(F.expr(valid).isNotNull(), column)
            name = f"v{len(self.projected)}"
            self._named[sql, cast] = name
            self.projected[name] = column
        return self._named[sql, cast]

    def _kernel(self, kernel: Kernel, shared: bool = True) -> int:
        if shared and kernel in self.kernels:
            return self.kernels.index(kernel)
        self.kernels.append(kernel)
        return len(self.kernels) - 1

    def _estimates(self) -> Estimator:
        """Tables of the running Spark."""
        if self._estimator is None:
            tables = distinct_count_tables(self.frame.sparkSession, PRECISION)
            raw, bias = np.array(tables.raw_estimates), np.array(tables.biases)
            self._estimator = Estimator(tables.threshold, raw, bias)
        return self._estimator


def _numpy_name(kind: Any) -> str:
    if pa.types.is_floating(kind):
        return "float32" if kind.bit_width == 32 else "float64"
    if pa.types.is_boolean(kind):
        return "int8"
    if pa.types.is_decimal(kind):
        return "int64"
    return f"int{kind.bit_width}"


def _parsed(where: str, text: str) -> DataType:
    try:
        kind = DataType.fromDDL(text)
    except PySparkException as error:
        raise InvalidTopology(f"{where}: {first_line(error)}") from error
    return kind


def _arrow(kind: DataType) -> Any:
    return to_arrow_type(kind, timezone="UTC")
