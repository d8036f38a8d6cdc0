"""Limits of Spark's streams in our words: each is known by one text, others keep theirs."""

import pytest

from penstock.spark.compile.limits import LIMITS, in_our_words, limit_of, why_refused

SAID = {  # by Spark 4.3
    "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append. This "
    "output mode is not supported for streaming aggregations without watermark on streaming "
    "DataFrames/DataSets. SQLSTATE: 42KDE": "groups rows",
    "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: update. This "
    "output mode is not supported for session window streaming aggregations on streaming "
    "DataFrames/DataSets. SQLSTATE: 42KDE": "groups rows by sessions",
    "[NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING] Window function is not supported in ROW_NUMBER() "
    "(as column `r`) on streaming DataFrames/Datasets.": "ranks or compares rows",
    "Detected pattern of possible 'correctness' issue due to global watermark.": "keeps state",
    "Inner join between two streaming DataFrames/Datasets is not supported in Complete output "
    "mode, only in Append output mode": "joins two streams in a mode",
    "Stream-stream LeftOuter join between two streaming DataFrame/Datasets is not supported "
    "without a watermark in the join keys": "joins two streams so that",
    "LeftOuter join with a streaming DataFrame/Dataset on the right and a static DataFrame/Dataset "
    "on the left is not supported": "joins a stream with a table",
    "FullOuter joins with streaming DataFrames/Datasets on the left and a static DataFrame/Dataset "
    "on the right is not supported": "joins a stream with a table",
    "Sorting is not supported on streaming DataFrames/Datasets, unless it is on aggregated "
    "DataFrame/Dataset in Complete output mode": "sorts",
    "Limits are not supported on streaming DataFrames/Datasets in Update output mode": "takes",
    "Offset is not supported on streaming DataFrames/Datasets": "takes a part of all rows",
    "Union between streaming and batch DataFrames/Datasets is not supported": "unites a stream",
}


@pytest.mark.parametrize(("refusal", "why"), SAID.items())
def test_refusals_of_spark_are_told_apart(refusal: str, why: str) -> None:
    assert in_our_words(refusal).startswith(why)
    assert why_refused(refusal).startswith(f"one of them {why}")
    assert sum(limit_of(refusal) == limit for limit in LIMITS) == 1


def test_what_is_not_known_keeps_its_words() -> None:
    assert in_our_words("Something new") == why_refused("Something new") == "Something new"
