"""Equality of observations where NaN equals NaN and arrays are compared by value."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def same(left: Any, right: Any) -> bool:
    """Whether two values are of one type and equal in every bit a person could see."""
    if isinstance(left, np.ndarray):
        if not isinstance(right, np.ndarray) or left.dtype.kind != right.dtype.kind:
            return False
        return bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))
    if type(left) is not type(right):
        return False
    if is_dataclass(left):
        return all(same(getattr(left, f.name), getattr(right, f.name)) for f in fields(left))
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and left != left:
        return bool(right != right)
    return bool(left == right)
