"""README's figures: what benchmarks print becomes its table, between marks that are there once."""

import re
from pathlib import Path

import pytest

from benchmarks.elastic import MODES, SOME_MODES
from scripts.readme_figures import (
    INSTEAD,
    LOADS,
    LONGEST,
    OURS,
    PARTS,
    README,
    cells_of,
    cut,
    elastic_cells,
    renew,
    table,
)  # fmt: skip

PAGE = (Path(__file__).parents[2] / README).read_text(encoding="utf-8")


def test_each_part_has_its_place() -> None:
    for mark, _ in PARTS.values():
        assert PAGE.count(f"<!-- {mark} -->") == PAGE.count(f"<!-- end of {mark} -->") == 1


def test_the_table_is_one_that_the_script_makes() -> None:
    (stands,) = re.findall(r"<!-- instead -->\n(.*?)<!-- end of instead -->", PAGE, re.S)
    assert stands.startswith(table(cells_of(stands)))  # a remark may follow until it is renewed


def test_no_figure_of_a_run_stands_outside_the_marks() -> None:
    outside = re.sub(r"<!-- (\w+) -->.*?<!-- end of \1 -->", "", PAGE, flags=re.S)
    assert re.findall(r"\d+(?:\.\d+)?%", outside) == []


def test_the_benchmark_measures_the_modes_of_the_table() -> None:
    assert set(SOME_MODES["instead"]) == set(INSTEAD) & set(MODES)


def row(what: str, load: str, baseline: float, ours: float) -> dict[str, object]:
    return {"name": f"{what}/{load}/static-4", "baseline": baseline, "ours": ours}


def test_rows_become_cells_and_other_figures_stay() -> None:
    rows = [
        row("attach_in_time", "ramp", 1.0, 0.984),
        row("attach_cost", "ramp", 400.0, 240.4),
        row("attach_in_time", "burst", 1.0, 0.99),
        row("attach_cost", "burst", 280.0, 191),
        row("simulated", "ramp", 1.0, 0.9),
    ]
    made = table(elastic_cells(rows))
    assert "| a restart | 100.0%, 400 | 100.0%, 280 | - |" in made
    assert "between batches | 98.4%, 240 | 99.0%, 191 | - |" in made
    assert made.endswith("to keep: kept under bursts, missed under ramp.\n")
    both = cells_of(made) | {("flink, ds2", "ramp"): "97.0%, 150"}
    assert cells_of(table(both)) == both
    assert both[OURS, "ramp"] == "98.4%, 240"
    assert len(made.splitlines()[0].split("|")) == len(LOADS) + 5


def test_a_line_that_is_cut_still_says_what_changed() -> None:
    reasons = "right for the load ahead: " + 30 * "numbers "
    stays = f"  02:45:38 executors stay 2 (promise): {reasons}"
    assert cut(stays) == stays[: LONGEST - 3] + "..."
    shown = cut(
        f"{stays} | 2 key groups move (milp): the load becomes more even | interval 2 s (x)"
    )
    assert shown.endswith("... | 2 key groups move | interval 2 s")
    assert len(shown) == LONGEST
    assert cut("short | as it is (x)") == "short | as it is (x)"


def test_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("a\n<!-- demo -->\nold\n<!-- end of demo -->\nb\n", encoding="utf-8")
    renew("demo", lambda old: f"new \\1 for {old}", page)
    renewed = "a\n<!-- demo -->\nnew \\1 for old\n<!-- end of demo -->\nb\n"
    assert page.read_text(encoding="utf-8") == renewed
    with pytest.raises(SystemExit, match="0 places for 'elastic'"):
        renew("elastic", lambda old: old, page)
