"""The tasks of a first hour, as the documents print them, twice in a row and in order."""

import re
from pathlib import Path

import pytest

from first_hour.newcomer import ROOT, Newcomer, printed_commands

pytestmark = pytest.mark.spark

FAILING = """
from pyspark.sql import functions as F
from penstock import Generator, Memory, Topology, constant

road = Topology("road", max_latency="5s")
road.source("reports", Generator(constant(50.0), rows=500))


def looked_up(value):
    raise ValueError("no such account")


@road.operator("reports")
def accounts(reports):
    return reports.select(F.udf(looked_up, "double")("value").alias("account"))


road.sink("out", "accounts", Memory())
"""
WINDOWED = """
from penstock import Files, Generator, Topology, constant

road = Topology("road", max_latency="5s")
road.source("reports", Generator(constant(100.0), rows=300))
road.add("moving", lambda rows: rows.withWatermark("at", "1 second"), "reports")
road.add(
    "counts",
    "SELECT key, count(*) AS n FROM moving GROUP BY key, window(at, '2 seconds')",
    "moving",
)
road.sink("out", "counts", Files("counts"))
"""
WAITING = """
from penstock import Console, Streams, Topology

cabs = Topology("cabs", max_latency="5s")
cabs.source("trips", Streams(files="trips", pattern="*.json", schema="cab STRING"))
cabs.add("kept", "SELECT * FROM trips", "trips")
cabs.sink("out", "kept", Console())
"""


def readme_example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return str(code)


@pytest.mark.long
def test_the_readme_example_runs_in_both_ways_one_after_the_other(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    newcomer.writes("speeds.py", readme_example())
    for line in ("python speeds.py", "penstock run speeds.py:road"):
        done = newcomer.types(line)
        assert done.code == 0
        assert "20,000 rows" in done.out
        assert re.search(r"^in time: .* within 5 s|^in time: nothing to count", done.out, re.M)
        assert "start-up:" in done.out
        assert "nan" not in done.out + done.err
    assert newcomer.types("penstock history --changes").code == 0


@pytest.mark.long  # in every run: spark/test_user_failures
def test_a_failing_function_is_told_with_its_message_and_line(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    newcomer.writes("road.py", FAILING)
    done = newcomer.types("penstock run road.py --checkpoint state")
    assert done.code == 1
    assert done.last_line == (
        "penstock: query 'road' failed in batch 0: operator 'accounts': "
        "ValueError: no such account (road.py, line 10)"
    )
    assert "Traceback" not in done.err
    assert 'raise ValueError("no such account")' in (tmp_path / "state.spark.log").read_text()
    debugged = newcomer.types("penstock run road.py --debug")
    assert 'raise ValueError("no such account")' in debugged.err


@pytest.mark.long  # in every run: spark/test_changed_operators
def test_a_changed_window_is_refused_and_the_same_program_goes_on(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    newcomer.writes("road.py", WINDOWED)
    line = "penstock run road.py --checkpoint state"
    assert newcomer.types(line).code == 0
    assert newcomer.types(line).code == 0
    newcomer.writes("road.py", WINDOWED.replace("2 seconds", "3 seconds"))
    done = newcomer.types(line)
    assert done.code == 2
    assert "operator 'counts' computes its state differently" in done.last_line
    assert "--accept-changes" in done.last_line


def test_a_source_that_waits_says_so_and_ctrl_c_is_130(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    newcomer.writes("cabs.py", WAITING)
    done = newcomer.types(
        "penstock run cabs.py --period 1", lambda line: "no stream has come yet" in line
    )
    assert "source 'trips': the folder trips does not exist yet" in done.err
    assert done.code == 130
    assert "in time: no results" in done.out


DEMO = "runs/demo"
# In the order in which they are run; the first makes the history that others look at.
DOCUMENTS = (
    "README",
    "plan",
    "last-resort",
    "dashboard",
    "fusion",
    "allocation",
    "attach",
    "channels",
)
INSTEAD = {"README": ["penstock demo", "penstock doctor"]}  # of make, which sets up an environment
ELSEWHERE = {"penstock demo --dashboard"}  # the demo without its page is run already
WITHOUT_END = "penstock dashboard"  # until Ctrl-C


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    """Somebody who reads the documents one after the other, in one folder."""
    folder = tmp_path_factory.mktemp("first-hour")
    (folder / "examples").symlink_to(ROOT / "examples")
    return Newcomer(folder)


@pytest.mark.long
@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_of_a_document_run_as_printed_twice_in_a_row(reader: Newcomer, name: str) -> None:
    document = ROOT / "README.md" if name == "README" else ROOT / "docs" / f"{name}.md"
    lines = INSTEAD.get(name, []) + printed_commands(document)
    assert lines, "the document prints no command any more"
    if any(DEMO in line for line in lines) and not (reader.folder / DEMO).exists():
        assert reader.types("penstock demo").code == 0  # this document alone is tested
    for _ in range(2):
        for line in lines:
            if line.split(" #")[0].strip() not in ELSEWHERE:
                _works(reader, line)


def _works(reader: Newcomer, line: str) -> None:
    endless = line.startswith(WITHOUT_END)
    done = reader.types(line, (lambda said: "http://" in said) if endless else None)
    # Exit code 3 is an answer: a plan that cannot be kept, a replay that is too far off.
    allowed = (130,) if endless else (0, 3) if line.startswith("penstock plan ") else (0,)
    assert done.code in allowed, line
    assert "nan%" not in done.out
    assert "Traceback" not in done.err


# What somebody has after some minutes: a steady load, one that doubles, and one with a window.
RECORDED = """
from penstock import Generator, Memory, Topology, constant, steps


def road(name, rate):
    made = Topology(name, max_latency="5s")
    made.source("reports", Generator(rate, keys=50))
    made.add("kept", "SELECT * FROM reports WHERE value > 0.1", "reports")
    return made


steady = road("steady", constant(200))
steady.sink("out", "kept", Memory())
doubled = road("doubled", steps([(25, 150), (60, 300)]))
doubled.sink("out", "kept", Memory())
windowed = road("windowed", constant(200))
windowed.add("moving", lambda rows: rows.withWatermark("at", "1 second"), "kept")
windowed.add(
    "counts", "SELECT key, count(*) AS n FROM moving GROUP BY key, window(at, '2 seconds')",
    "moving",
)
windowed.sink("out", "counts", Memory())
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["steady", "doubled", "windowed"])
def test_a_history_of_a_minute_is_planned_from_or_told_what_it_lacks(
    tmp_path: Path, name: str
) -> None:
    newcomer = Newcomer(tmp_path)
    newcomer.writes("roads.py", RECORDED)
    assert newcomer.types(f"penstock run roads.py:{name} --for 60s --period 1s").code == 0
    done = newcomer.types("penstock plan --policy drs,ds2,incremental")
    assert "nan" not in done.out + done.err
    if done.code == 0:
        assert re.search(r"^advice: ", done.out, re.M)
    else:  # on a machine with much else on it
        assert done.code == 3
        assert re.search(
            r"--skip \d+s would bring it within that|what helps is a longer run|the nearest is"
            r"|none brings any",
            done.last_line,
        )


PLAIN = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("plain").getOrCreate()
print("master", spark.sparkContext.master)
print("counted", spark.range(10).repartition(2).count())
spark.stop()
"""


@pytest.mark.long  # in every run: spark/test_user_session
def test_a_plain_script_is_on_the_cluster_by_two_lines_of_the_shell(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    newcomer.writes("script.py", PLAIN)
    try:
        up = newcomer.types("penstock cluster up --slots 2")
        assert up.code == 0
        assert newcomer.types('eval "$(penstock cluster env)"').code == 0
        done = newcomer.types("python script.py")
        assert done.code == 0
        (master,) = re.findall(r"Up at (spark://\S+)", up.out)
        assert f"master {master}" in done.out
        assert "counted 10" in done.out
    finally:
        assert newcomer.types("penstock cluster down").code == 0
