"""Frequent patterns over a window of tweets, with a loop: it runs apart only.

penstock run examples/patterns.py:patterns --apart --master 'local[4]' --once
"""

from penstock import Files, constant
from penstock.workloads.frequent_patterns import frequent_patterns

patterns = frequent_patterns(
    constant(100), Files("out/patterns", overwrite=True), rows=2_000, max_rows=500
)
