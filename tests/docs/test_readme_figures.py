"""README's figures: rows of a benchmark become its table, between marks that are there once."""

from pathlib import Path

import pytest

from scripts.readme_figures import PARTS, README, elastic_table, renew


def test_each_part_has_its_place() -> None:
    text = (Path(__file__).parents[2] / README).read_text(encoding="utf-8")
    for part in PARTS:
        assert text.count(f"<!-- {part} -->") == text.count(f"<!-- end of {part} -->") == 1


def test_rows_become_a_table() -> None:
    def row(what: str, load: str, baseline: float, ours: float) -> dict[str, object]:
        return {"name": f"{what}/{load}/static-4", "baseline": baseline, "ours": ours}

    rows = [
        row("attach_in_time", "ramp", 1.0, 0.994),
        row("attach_cost", "ramp", 400.0, 240.4),
        row("simulated", "ramp", 1.0, 0.9),
    ]
    assert elastic_table(rows).splitlines() == [
        "| | ramp |",
        "|---|---|",
        "| with these lines, 1 to 4 executors | 99.4%, 240 |",
        "| always four executors | 100.0%, 400 |",
    ]


def test_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("a\n<!-- demo -->\nold\n<!-- end of demo -->\nb\n", encoding="utf-8")
    renew("demo", "new \\1\n", page)
    renewed = "a\n<!-- demo -->\nnew \\1\n<!-- end of demo -->\nb\n"
    assert page.read_text(encoding="utf-8") == renewed
    with pytest.raises(SystemExit, match="0 places for 'elastic'"):
        renew("elastic", "", page)
