"""Bytes of rows of Spark's, from their types alone."""

from pyspark.sql.types import DataType, StringType, StructType

WORD, TEXT = 8.0, 24.0  # bytes of a value in a row of Spark's, and of a text as they mostly are


def row_bytes(kind: DataType) -> float:
    """Bytes of a row of Spark's: a word for nulls, one for each value, and what lies behind it.

    A window of time counts nothing: it is one of few in a batch, and compressed away.

    >>> from pyspark.sql.types import LongType, StructField
    >>> row_bytes(StructType([StructField("a", LongType()), StructField("b", StringType())]))
    40.0
    """
    if isinstance(kind, StructType) and kind.fieldNames() == ["start", "end"]:
        return 0.0
    if isinstance(kind, StructType):
        return WORD + sum(value_bytes(field.dataType) for field in kind.fields)
    return WORD + value_bytes(kind)


def value_bytes(kind: DataType) -> float:
    """A value's word and what lies behind it."""
    if isinstance(kind, StructType):
        behind = row_bytes(kind)
        return WORD + behind if behind else 0.0
    return TEXT if isinstance(kind, StringType) else WORD
