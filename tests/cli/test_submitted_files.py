"""What a submitted file does as it is read, it does in a process of its own."""

from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.spark.host.common_work import common_work
from penstock.spark.host.loading import Promise, check_apart, load_whole
from penstock.spark.host.submission import Part


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import nothing_of_this_name", "flow.py failed: ModuleNotFoundError: No module named"),
        ("x = 1", "flow.py holds no topology; it needs one, as in road = Topology(...)."),
        ("import os; os._exit(7)", "flow.py ended the process that read it (exit code 7)."),
    ],
)
def test_files_are_read_apart_before_the_host_reads_them(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_apart(tmp_path, [written(tmp_path, text)])
    assert str(refused.value).startswith(sentence)


def test_a_file_that_never_ends_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="was not read to its end within"):
        check_apart(tmp_path, [written(tmp_path, "while True: pass")], limit_s=0.5)


def written(folder: Path, text: str, name: str = "flow") -> Part:
    (folder / name).mkdir()
    (folder / name / "flow.py").write_text(text, encoding="utf-8")
    return Part(name, "flow.py", "", {"flow.py": text})


ROAD = """
from penstock import Files, Generator, Topology, constant

road = Topology("road", max_latency="{bound}s")
road.source("rows", Generator(constant(3.0), keys=1, seed=1))
road.add("parsed", "SELECT row FROM rows", "rows")
road.sink("out", "parsed", Files("/tmp/{out}"))
"""


def test_files_that_run_as_one_are_checked_as_one(tmp_path: Path) -> None:
    parts = [written(tmp_path, ROAD.format(bound=n, out=f"out-{n}"), f"p{n}") for n in (3, 2)]
    assert check_apart(tmp_path, parts) == Promise(2.0, 0.99)
    whole = load_whole(tmp_path, parts, "both", Promise(5.0, None))
    assert [step.name for step in whole.topology.operators] == ["parsed"]
    assert whole.topology.sink_bounds_s == {"out": 5.0, "p2_out": 5.0}
    [common] = common_work({"both": whole, "alone": load_whole(tmp_path, parts[:1], "alone", None)})
    assert common == {
        "topologies": ["both/p3", "both/p2", "alone"], "steps": ["rows", "parsed"], "once": False
    }  # fmt: skip
    assert common_work({"both": whole})[0]["once"]
