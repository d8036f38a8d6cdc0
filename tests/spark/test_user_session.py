"""Scripts on the cluster of `penstock cluster up`, as docs/attach.md shows them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import penstock
from penstock.cli.cluster import cluster as cluster_command
from penstock.errors import InvalidInput, Unavailable
from penstock.spark.cluster import java_classes, launch, standing

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/attach.md").read_text()
SLOTS = 2
LIMIT_S = 180

# Says what the driver's command line gives away, from within the script's own process tree.
WATCHED = """
import atexit, glob
def command_lines():
    for file in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            yield open(file, "rb").read()
        except OSError:
            pass
def tell():
    print("LISTED", sum(SECRET in line for line in command_lines()))
    from pyspark.sql import SparkSession
    spark = SparkSession.getActiveSession()
    if spark is not None:
        print("MASTER", spark.sparkContext.master)
        spark.stop()
atexit.register(tell)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A standing cluster; the variables under which commands find it."""
    state = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(state))
        standing.cluster_up(SLOTS)
        try:
            yield {"XDG_RUNTIME_DIR": str(state)}
        finally:
            standing.cluster_down()


def block_of(page: str, containing: str) -> str:
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (found,) = [block for block in blocks if containing in block]
    return found


def run(command: list[str], cluster: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, env={**os.environ, **cluster}, cwd=folder, capture_output=True, text=True,
        timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.spark
def test_the_script_of_the_page_runs_on_the_cluster(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    found = standing.user_cluster()
    secret = found.settings["spark.authenticate.secret"]
    script = tmp_path / "page.py"
    script.write_text(
        f"SECRET = {secret!r}.encode()\n{WATCHED}\n{block_of(PAGE, 'penstock.session(')}"
    )
    said = run([sys.executable, str(script)], cluster, tmp_path)
    assert f"MASTER {found.settings['spark.master']}" in said
    assert "LISTED 0" in said, "the secret is on a command line"
    results = re.search(r"s, ([\d,]+) rows", said)
    assert results is not None
    assert int(results[1].replace(",", "")) > 0, said
    assert "executors it may have at once" not in said, "no more came than were asked for"


# A session that was not built to begin with fewer: the master gives it all at once.
SURPLUS = """
import time
import penstock
at_once = {"spark.dynamicAllocation.enabled": "false"}
spark = penstock.session("all", executors=(1, 2), settings=at_once)
query = (
    spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    .writeStream.format("noop").start()
)
controller = penstock.attach(
    query, max_latency="20s", executors=(1, 2), period_s=1.0, cooldown_in_s="1s", allocation="off"
)
def executors():
    seen = [step.observation for step in controller.steps if step.observation is not None]
    return [len([node for node in one.nodes if not node.draining]) for one in seen]
deadline = time.monotonic() + 120
while not (2 in executors() and executors()[-1] == 1) and time.monotonic() < deadline:
    time.sleep(0.2)
print("EXECUTORS", max(executors()), executors()[-1])
controller.detach()
query.stop()
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.long
def test_executors_that_came_unasked_are_told_and_given_back(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "surplus.py"
    script.write_text(SURPLUS)
    said = run([sys.executable, str(script)], cluster, tmp_path)
    assert "the cluster gave this session all 2 executors" in said
    assert "penstock.session_settings(executors=(1, 2))" in said
    assert "EXECUTORS 2 1" in said, said


@pytest.mark.spark
@pytest.mark.long
def test_a_plain_script_is_on_the_cluster_by_the_lines_for_the_shell(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    found = standing.user_cluster()
    command = f"{sys.executable} -m penstock cluster env --executors-max 2"
    script = tmp_path / "plain.py"
    script.write_text(
        f"SECRET = {found.settings['spark.authenticate.secret']!r}.encode()\n{WATCHED}\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.appName('plain').getOrCreate()\n"
        "print('COUNTED', spark.range(10).repartition(2).count())\n"
    )
    said = run(
        ["bash", "-c", f'set -e; eval "$({command})"; {sys.executable} {script}'],
        cluster, tmp_path,
    )  # fmt: skip
    assert "COUNTED 10" in said
    assert f"MASTER {found.settings['spark.master']}" in said
    assert "LISTED 0" in said, "the secret is on a command line"


@pytest.mark.spark
@pytest.mark.long
def test_a_script_may_have_a_class_path_of_its_own(cluster: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "builder = SparkSession.builder.appName('plain')\n"
        "for of in ('driver', 'executor'):\n"
        f"    builder = builder.config(f'spark.{{of}}.extraClassPath', {str(tmp_path)!r})\n"
        "spark = builder.getOrCreate()\n"
        "print('PLUGINS', spark.conf.get('spark.plugins', 'none'))\n"
        "print('COUNTED', spark.range(10).repartition(2).count())\n"
    )
    command = f'set -e; eval "$({sys.executable} -m penstock cluster env)"'
    said = run(["bash", "-c", f"{command}; {sys.executable} {script}"], cluster, tmp_path)
    assert "COUNTED 10" in said
    prepared = launch.behind_class_path(standing.user_cluster().directory)
    assert f"PLUGINS {java_classes.WARM_START if prepared else 'none'}" in said


@pytest.mark.spark
def test_the_lines_for_the_shell_hold_no_secret_and_its_file_is_private(
    cluster: dict[str, str],
) -> None:
    secret = standing.user_cluster().settings["spark.authenticate.secret"]
    said = CliRunner().invoke(cluster_command, ["env"])
    assert said.exit_code == 0
    lines = dict(line.removeprefix("export ").split("=", 1) for line in said.stdout.splitlines())
    assert list(lines) == ["SPARK_CONF_DIR", "SPARK_LOCAL_IP", "PYSPARK_PYTHON"]
    assert secret not in said.stdout
    file = Path(lines["SPARK_CONF_DIR"], "spark-defaults.conf")
    assert secret in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.spark
def test_executors_that_never_fit_are_refused(cluster: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=r"3 executors of 1 slots.*allowed: 1 to 2"):
        penstock.session(executors=(1, 3))
    with pytest.raises(InvalidInput, match="slots is 3"):
        penstock.session(slots=3)


def test_without_a_cluster_it_says_what_to_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(Unavailable, match="penstock cluster up"):
        penstock.session("plain")


@pytest.mark.parametrize("folder", ["docs", "examples"])
def test_pages_and_examples_use_no_room_of_spark(folder: str) -> None:
    named = re.compile(r"(from|import) penstock\.(spark|control)\b|`penstock\.(spark|control)\.")
    texts = [*(ROOT / folder).rglob("*.md"), *(ROOT / folder).rglob("*.py"), ROOT / "README.md"]
    for_contributors = {ROOT / "docs" / "architecture.md", ROOT / "docs" / "extending.md"}
    found = [path for path in texts if named.search(path.read_text(encoding="utf-8"))]
    assert set(found) <= for_contributors
