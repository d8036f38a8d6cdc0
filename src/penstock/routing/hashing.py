"""One 64-bit hash of a key, the same in every process, over whole columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InvalidInput

Hashes = NDArray[np.uint64]
Column = Any  # a numpy array, a pyarrow Array or ChunkedArray, or a sequence of one kind of value

_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_NULL = np.uint64(0xD6E8FEB86659FD93)


def key_hashes(*columns: Column) -> Hashes:
    """The hash of each row's key; a key of several columns hashes differently in another order.

    Numbers of one kind hash alike whatever their width. Text is hashed once for each distinct
    value of the column.

    >>> [int(h) % 7 for h in key_hashes([1, 2, 3])]
    [2, 4, 2]
    """
    if not columns:
        raise InvalidInput("a key has no column; give at least one.")
    hashes = _hashes_of(columns[0])
    for column in columns[1:]:
        right = _hashes_of(column)
        if len(right) != len(hashes):
            raise InvalidInput(
                f"a key column has {len(right)} rows but the first has {len(hashes)}; "
                "give columns of one length."
            )
        hashes = mixed(hashes) ^ right
    return mixed(hashes) if len(columns) > 1 else hashes


def part_hashes(hashes: Hashes, parts: NDArray[np.int64]) -> Hashes:
    """Hashes of key#1 ... key#p for each key, one key after the other."""
    first = np.cumsum(parts) - parts
    number = np.arange(parts.sum()) - np.repeat(first, parts) + 1
    return mixed(np.repeat(hashes, parts) + number.astype(np.uint64) * _STEP)


def mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64: every input bit reaches every output bit."""
    mixing = values + _STEP
    shifted = mixing >> np.uint64(30)
    mixing ^= shifted
    mixing *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(mixing, np.uint64(27), out=shifted)
    mixing ^= shifted
    mixing *= np.uint64(0x94D049BB133111EB)
    np.right_shift(mixing, np.uint64(31), out=shifted)
    mixing ^= shifted
    return mixing


def _hashes_of(column: Column) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array):
        return _of_arrow(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iubfmM":
        return _of_numbers(column)
    return _of_arrow(_as_arrow(column))


def _as_arrow(column: Sequence[Any]) -> "pa.Array":
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        raise InvalidInput(
            "a key column mixes kinds or holds what Arrow cannot; give integers, or text, or "
            "other values of one kind."
        ) from error


def _of_arrow(column: "pa.Array") -> Hashes:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _of_dictionary(column)
    if pa.types.is_null(kind):
        return np.full(len(column), _NULL)
    if _is_text(kind):
        return _of_dictionary(column.dictionary_encode())
    if pa.types.is_decimal(kind):
        return _of_dictionary(column.cast(pa.string()).dictionary_encode())
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise InvalidInput(
            f"a key column is of type {kind}; allowed: integers, floats, booleans, decimals, text, "
            "binary, dates and times."
        )
    if column.null_count == 0:
        return _of_numbers(column.to_numpy(zero_copy_only=False))
    hashes = _of_numbers(column.fill_null(0).to_numpy(zero_copy_only=False))
    hashes[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _of_numbers(values: NDArray[Any]) -> Hashes:
    if values.dtype.kind == "f":
        wide = values.astype(np.float64) + 0.0  # -0.0 and 0.0 are one key
        wide[np.isnan(wide)] = np.nan
        return mixed(wide.view(np.uint64))
    if values.dtype.kind in "mM":
        values = values.view(np.int64)
    return mixed(values.astype(np.int64, copy=False).view(np.uint64))


def _of_dictionary(column: "pa.DictionaryArray") -> Hashes:
    values = column.dictionary
    hashes = _of_arrow(values) if not _is_text(values.type) else _of_texts(values)
    places = column.indices.cast(pa.int64()).fill_null(len(hashes))
    taken: Hashes = np.append(hashes, _NULL).take(places.to_numpy())
    return taken


def _is_text(kind: "pa.DataType") -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
    )


def _of_texts(values: "pa.Array") -> Hashes:
    # Half of what a process of a source would import, most of which never hash text.
    from pandas.util import hash_array

    hashes: Hashes = hash_array(values.to_numpy(zero_copy_only=False), categorize=False)
    return hashes
