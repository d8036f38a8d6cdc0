"""What Spark's streams cannot do, in our words: why, and what to do instead.

Many of Spark's refusals share one error class, so they are told apart by what they say.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """One limit: `text` is how Spark's refusal is known."""

    text: str
    why: str
    instead: str


LIMITS = (
    Limit(
        r"not supported for streaming aggregations without watermark",
        "groups rows (or takes distinct ones), and mode 'append' sends a group only once a "
        "watermark has passed it",
        "call withWatermark(column, delay) before and group by that column or a window of it, or "
        "give the sink mode 'update'",
    ),
    Limit(
        r"not supported for session window",
        "groups rows by sessions, which may still be merged and so have no changes to send",
        "give the sink mode 'append'",
    ),
    Limit(
        r"not supported for no streaming aggregations",
        "groups nothing, and mode 'complete' sends all groups again in each batch",
        "give the sink mode 'append', or 'update'",
    ),
    Limit(
        r"NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
        "ranks or compares rows by OVER (...), for which Spark would have to keep all of them",
        "group by key and window and take max_by, min_by or max_by(row, value, n) for the first n, "
        "or rank the rows of a batch in ForeachBatch",
    ),
    Limit(
        r"Detected pattern of possible .correctness",
        "keeps state behind other state in a mode in which rows come again or late",
        "give the sink mode 'append', run components apart (--apart, or run(apart=True)), or end "
        "the topology before it with ToChannel and read that channel in another one",
    ),
    Limit(
        r"join between two streaming DataFrames?/Datasets is not supported in \w+ output mode",
        "joins two streams in a mode in which that join has no results to send",
        "give the sink mode 'append'",
    ),
    Limit(
        r"Stream-stream \w+ join .* not supported without a watermark",
        "joins two streams so that rows without a match come too, and nothing says when a row will "
        "find none any more",
        "call withWatermark(column, delay) on both and join by that column, or by a range of it",
    ),
    Limit(
        r"joins? with (a )?streaming DataFrames?/Datasets? on the (left|right)",
        "joins a stream with a table so that rows of the table without a match come too, and a "
        "stream never ends to say which those are",
        "make the stream the side that is kept whole (its left join with the table), or an inner "
        "join",
    ),
    Limit(
        r"Distinct aggregations are not supported",
        "counts distinct values, which a group cannot do as rows come",
        "use approx_count_distinct(column), or size(collect_set(column))",
    ),
    Limit(
        r"Sorting is not supported",
        "sorts rows, of which a stream never has the last",
        "leave the order to whoever reads the results, or sort each batch in ForeachBatch",
    ),
    Limit(
        r"(Limits|Offset|Sampling|Grouping ?Sets) (is|are) not supported",
        "takes a part of all rows (limit, offset, sample or grouping sets), of which a stream "
        "never has the last",
        "use where(...), or do it with each batch in ForeachBatch",
    ),
    Limit(
        r"Watermark must be specified in the query|"
        r"dropDuplicatesWithinWatermark is not supported on streaming .* without watermark",
        "waits for a time of its events, which it only knows by a watermark",
        "call withWatermark(column, delay) before",
    ),
    Limit(
        r"Union between streaming and batch",
        "unites a stream with a table",
        "read the table as a stream too (a source of files), or join with it",
    ),
    Limit(
        r"pivot is not supported",
        "makes columns of values (pivot), and a stream never has the last of these",
        "name the values: sum(CASE WHEN column = value THEN ... END)",
    ),
    Limit(
        r"Queries with streaming sources must be executed with writeStream|"
        r"CALL_ON_STREAMING_DATASET_UNSUPPORTED",
        "asks for rows while it is declared, or is to keep them (count(), collect(), show(), "
        "cache(), checkpoint() or the like), and there are none yet",
        "return a DataFrame, and look at rows in a sink (Console, Memory or ForeachBatch)",
    ),
)


def limit_of(refusal: str) -> Limit | None:
    """The limit that a refusal of Spark's is about; None where it is not a common one."""
    return next((limit for limit in LIMITS if re.search(limit.text, refusal)), None)


def in_our_words(refusal: str) -> str:
    """A refusal as it is told of one operator; Spark's own text where it is not a common one."""
    limit = limit_of(refusal)
    return refusal if limit is None else f"{limit.why}; {limit.instead}."


def why_refused(refusal: str) -> str:
    """A refusal of several operators together, as a reason."""
    limit = limit_of(refusal)
    return refusal if limit is None else f"one of them {limit.why}"
