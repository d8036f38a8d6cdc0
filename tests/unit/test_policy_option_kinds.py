"""The kind of a policy's option: by its default, or by its type where the default is None."""

from dataclasses import dataclass

import pytest

from penstock.errors import InvalidInput
from penstock.scaling.policies.options import option, options_of


@dataclass(frozen=True)
class Sample:
    """A policy's fields."""

    processors: int | None = option(None, "How many.", least=1, off=None)
    wait_s: float | None = option(None, "How long.", least=0.1, off=None)
    share: float | None = option(None, "How much.", least=0, greatest=1, off=None)


def test_an_option_that_is_off_by_default_has_the_kind_of_its_type() -> None:
    found = {one.name: one for one in options_of(Sample)}
    assert {name: one.kind for name, one in found.items()} == {
        "processors": "integer", "wait_s": "duration", "share": "number"
    }  # fmt: skip
    assert found["processors"].read("4", "processors") == 4
    assert isinstance(found["processors"].read("4", "processors"), int)
    with pytest.raises(InvalidInput, match="whole number"):
        found["processors"].read("1.5", "processors")
