"""Sessions of Spark Connect, whose driver is elsewhere."""

import pytest

import penstock
from penstock.errors import InvalidInput


@pytest.mark.parametrize("bound", ["5s", {"orders": "5s"}])
def test_attach_says_what_to_do_in_place_of_spark_connect(bound: str | dict[str, str]) -> None:
    class SparkSession:
        streams = None

    SparkSession.__module__ = "pyspark.sql.connect.session"
    with pytest.raises(InvalidInput, match=r"call attach there, or build the session with master"):
        penstock.attach(SparkSession(), bound)
