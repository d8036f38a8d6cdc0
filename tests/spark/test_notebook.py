"""The notebook of the examples, cell by cell, as Jupyter would run it."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "from_plain_to_attached.ipynb"


def script() -> str:
    """Its code cells as one program; what a cell ends with is shown as a notebook shows it."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    bodies = []
    for cell in cells:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            if isinstance(tree.body[-1], ast.Expr):
                last = ast.unparse(tree.body.pop())
                tree.body += ast.parse(f"print(({last})._repr_html_())").body
            bodies.append(ast.unparse(tree))
    return "\n".join(bodies)


def test_the_notebook_is_kept_without_outputs_and_its_code_is_python() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs")] == []
    assert script().count("_repr_html_()") == 2


@pytest.mark.long
@pytest.mark.spark
def test_the_notebook_runs_and_shows_the_controller_and_its_summary() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", script()], capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    controller, summary = (
        ran.stdout.split("</table>")[0],
        ran.stdout[ran.stdout.rindex("<table>") :],
    )
    assert "<b>attached to counts</b>" in controller
    assert "<svg" in controller
    assert "in time</th>" in summary
