"""The table of docs/nexmark.md is what the benchmark printed."""

from pathlib import Path

from scripts.nexmark_table import PAGE, table

ROOT = Path(__file__).parents[2]


def test_each_set_of_queries_is_a_line_with_all_its_sides() -> None:
    size = "1,000,000 events in 10 files"
    differ = "q5 lacks 1 of 9 rows; q7 lacks 2 of 3 rows"
    conditions = (
        f"{size}, one a batch, local[2], cold; {differ}; "
        "tuned: 16,172 events/s, 6.2 s a batch, 30 s of CPU; "
        "penstock: 20,000 events/s, 5.0 s a batch, 20 s of CPU"
    )
    rows = [
        {"name": f"nexmark/2 queries/{mode}", "baseline": baseline, "ours": 10.0,
         "ratio": baseline / 10, "conditions": conditions}
        for mode, baseline in (("tuned", 25.0), ("defaults", 40.0))
    ]  # fmt: skip
    line = table(rows).splitlines()[2]
    assert line == (
        f"| 2 queries, {size} | 40.0 (4.00) | 25.0 (2.50; 1.50) | - | 10.0 | {differ} |"
    )


def test_the_page_has_a_place_for_it() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page.count("<!-- table -->") == page.count("<!-- end of table -->") == 1
