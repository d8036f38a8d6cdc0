"""What a run refuses before Spark is started."""

import http.server
import json
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from typing import Any, ClassVar, cast

import pytest
from pyarrow import fs

from penstock import Files, Generator, Memory, Streams, Topology, constant
from penstock.config import Settings
from penstock.errors import Infeasible, InvalidInput, PenstockError, Unavailable
from penstock.spark import handles
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.cluster import master_page
from penstock.spark.cluster.embedded import ClusterStatus
from penstock.spark.cluster.master_page import Worker, workers_of
from penstock.spark.run import attached, before_start, first_executor
from penstock.spark.run.before_start import check_before_start
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.first_executor import (
    await_executor,
    refuse_what_cannot_fit,
    told_while_waiting,
)
from penstock.spark.run.place import Place, open_session
from penstock.spark.sinks import places
from penstock.spark.sinks.ownership import held_outputs


def road(out: Path | str, overwrite: bool = False) -> Topology:
    made = Topology("road", max_latency="5s")
    made.source("rows", Generator(constant(10.0)))
    made.add("kept", "SELECT * FROM rows", "rows")
    made.sink("out", "kept", Files(str(out), overwrite=overwrite))
    return made


def check(folder: Path, settings: Settings | None = None, **place: str) -> None:
    check_before_start(
        road(folder / "out"), settings or Settings(), Place(**place), folder / "state"
    )


@pytest.mark.parametrize(
    ("interval_s", "share", "longest"),
    [(5.5, None, "5.05"), (9.0, None, "5.05"), (5.1, 0.99, "5.05"), (10.0, 0.5, "10")],
)
def test_batches_that_start_too_rarely_for_the_bound_are_refused(
    tmp_path: Path, interval_s: float, share: float | None, longest: str
) -> None:
    given = Settings(batch_interval_s=interval_s, share=share)
    with pytest.raises(InvalidInput, match=f"batch-interval is .* unless it is below {longest} s"):
        check(tmp_path, given)
    check_before_start(road(tmp_path / "out"), given, Place(once=True), tmp_path / "state")


@pytest.mark.parametrize(("interval_s", "share"), [(5.0, None), (9.0, 0.5)])
def test_batches_that_start_often_enough_are_not(
    tmp_path: Path, interval_s: float, share: float | None
) -> None:
    check(tmp_path, Settings(batch_interval_s=interval_s, share=share))


def test_so_is_the_trigger_of_an_attached_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached, "_session_of", lambda _: None)
    monkeypatch.setattr(attached.Attached, "queries", lambda _: ())
    monkeypatch.setattr(attached, "trigger_of_queries", lambda _: 20.0)
    with pytest.raises(InvalidInput, match="the trigger of the query is 20 s; rows wait up to"):
        attached.Attached(cast(Any, None), 5.0, Settings())


@pytest.mark.parametrize(
    ("master", "words"),
    [
        ("embeded", "master is 'embeded'; did you mean embedded? allowed: local[N], embedded"),
        ("locall[2]", "master is 'locall[2]'"),
        ("local[0]", "master is 'local[0]'"),
        ("local[two]", "master is 'local[two]'"),
        ("spark://127.0.0.1:99999", "write spark://HOST:PORT"),
        ("spark://nowhere", "write spark://HOST:PORT"),
    ],
)
def test_a_master_that_is_misspelt_is_refused(tmp_path: Path, master: str, words: str) -> None:
    with pytest.raises(InvalidInput) as error:
        check(tmp_path, master=master)
    assert words in str(error.value)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "yarn", "k8s://https://a:1"])
def test_masters_of_spark_pass(tmp_path: Path, master: str) -> None:
    check(tmp_path, master=master)


def test_a_master_where_nothing_answers_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]  # nobody listens there
        with pytest.raises(Unavailable, match=rf"spark://127.0.0.1:{port} cannot be reached: "):
            check(tmp_path, master=f"spark://127.0.0.1:{port}")
        taken.listen()
        check(tmp_path, master=f"spark://127.0.0.1:{port}")


def test_output_of_another_run_is_refused_unless_it_may_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out" / "batch=0").mkdir(parents=True)
    with pytest.raises(
        InvalidInput, match=r"batch=0 exists already and this run starts from scratch"
    ):
        check(tmp_path)
    made = road(tmp_path / "out", True)
    check_before_start(made, Settings(), Place(), tmp_path / "state")
    assert (tmp_path / "out" / "batch=0").exists(), "the run itself removes it, under its lock"
    with held_outputs(made, "one", goes_on=False):
        assert [one.name for one in (tmp_path / "out").iterdir()] == ["_penstock"]
        with pytest.raises(Unavailable, match=r"sink 'out': .*out is in use by another run"):
            check_before_start(made, Settings(), Place(), tmp_path / "state")


def test_output_is_not_overwritten_where_spark_would_go_on(tmp_path: Path) -> None:
    (tmp_path / "out" / "batch=0").mkdir(parents=True)
    offsets = tmp_path / "state/queries/road/offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1")
    with pytest.raises(InvalidInput, match=r"identity\.json is missing; restore all of it"):
        check_before_start(road(tmp_path / "out", True), Settings(), Place(), tmp_path / "state")
    assert (tmp_path / "out" / "batch=0").exists()


def stored_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote store, at store://; its files are in a folder here."""
    system = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    monkeypatch.setattr(places, "_found", lambda url: (system, url.removeprefix("store://")))


def test_output_of_another_run_behind_a_url_is_refused_or_overwritten_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in (f"file://{tmp_path}/out", "store://out", "store://out/"):
        if url.startswith("store:"):
            stored_in(tmp_path, monkeypatch)
        for name in ("batch=0", "batch=1", "others"):
            (tmp_path / "out" / name).mkdir(parents=True, exist_ok=True)
        with pytest.raises(InvalidInput, match=r"out/batch=0 exists already and this run starts"):
            check_before_start(road(url), Settings(), Place(), tmp_path / "state")
        check_before_start(road(url, True), Settings(), Place(), tmp_path / "state")
        with held_outputs(road(url, True), url, goes_on=False):
            left = sorted(one.name for one in (tmp_path / "out").iterdir())
        assert left == ["_penstock", "others"]


def test_a_store_without_the_folder_of_a_sink_is_ready_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_in(tmp_path, monkeypatch)
    check_before_start(road("store://new/out", True), Settings(), Place(), tmp_path / "state")


@pytest.mark.parametrize("url", ["nowhere://bucket/out", "file:out", "file://far/out"])
def test_a_url_that_no_sink_can_write_to_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^sink 'out': .*{url}.*\.\nSee penstock docs"):
        check_before_start(road(url), Settings(), Place(), tmp_path / "state")


def test_a_store_that_does_not_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(url: str) -> None:
        raise OSError("no name node\nthere")

    monkeypatch.setattr(places, "_found", away)
    with pytest.raises(Unavailable, match=r"sink 'out': hdfs://far/out cannot be .*: no name node"):
        check_before_start(road("hdfs://far/out"), Settings(), Place(), tmp_path / "state")


def test_a_checkpoint_below_a_file_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"the checkpoint .* is in its folder"):
        check_before_start(
            road(f"file://{tmp_path}/out"), Settings(), Place(), tmp_path / "out" / "state"
        )


def test_output_stays_where_its_checkpoint_goes_on(tmp_path: Path) -> None:
    (tmp_path / "out" / "batch=0").mkdir(parents=True)
    with Checkpoint(tmp_path / "state") as checkpoint:
        checkpoint.check_identity({"topology": "road"})
    check_before_start(road(tmp_path / "out", True), Settings(), Place(), tmp_path / "state")
    assert (tmp_path / "out" / "batch=0").exists()


def test_a_checkpoint_in_use_is_refused_and_none_is_made(tmp_path: Path) -> None:
    check(tmp_path)
    assert not (tmp_path / "state").exists()
    with Checkpoint(tmp_path / "state"), pytest.raises(Unavailable, match="in use by another run"):
        check(tmp_path)


def test_folders_that_cannot_be_are_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InvalidInput, match=r"sink 'out': .*out is a file"):
        check(tmp_path)
    (tmp_path / "out").unlink()
    (tmp_path / "state").write_text("")
    with pytest.raises(InvalidInput, match=r"checkpoint: .*state is a file"):
        check(tmp_path)


def test_a_log_whose_folder_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """Some file systems take no folders, whoever asks."""
    nowhere = Path("/proc/nothing")
    place = Place("local[1]", log_file=nowhere / "spark.log")
    with (
        ExitStack() as resources,
        pytest.raises(InvalidInput, match=r"/proc/nothing cannot be made: No such file"),
    ):
        open_session("road", Settings(), place, tmp_path / "state", resources)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(slots=8), "1 executors of 8 slots cannot fit on the cluster, which has 4 slots"),
        (Settings(executor_memory_mb=4096), "4096 MB cannot fit on the cluster, which has 2048 MB"),
    ],
)
def test_executors_that_can_never_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings, words: str
) -> None:
    up = ClusterStatus(True, "Up.", "spark://127.0.0.1:1", slots=4, memory_mb=2048)
    monkeypatch.setattr(before_start, "cluster_status", lambda: up)
    check(tmp_path, master="cluster")
    with pytest.raises(Infeasible, match=words) as error:
        check(tmp_path, settings, master="cluster")
    assert error.value.exit_code == 3


def test_a_run_is_refused_before_it_starts_anything(tmp_path: Path) -> None:
    settings = Settings(history=str(tmp_path / "history.sqlite"))
    with pytest.raises(PenstockError, match="did you mean embedded"):
        ElasticRun(road(tmp_path / "out"), settings, Place("embeded")).__enter__()


def cabs(folder: Path, **streams: str) -> Topology:
    made = Topology("cabs", max_latency="5s")
    made.source("trips", Streams(files=str(folder), schema="cab STRING", **streams))  # type: ignore[arg-type]
    made.add("kept", "SELECT * FROM trips", "trips")
    made.sink("out", "kept", Memory())
    return made


def test_a_source_with_nothing_to_read_is_told_and_strictly_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    there = tmp_path / "trips"
    strict = Place(strict=True)

    def check(made: Topology, place: Place) -> None:
        caplog.clear()
        check_before_start(made, Settings(), place, tmp_path / "state")

    check(cabs(there), Place())
    assert "source 'trips': the folder" in caplog.text
    with pytest.raises(InvalidInput, match=r"source 'trips': the folder .*trips does not exist"):
        check(cabs(there), strict)
    there.mkdir()
    (there / "a.csv").write_text("")
    check(cabs(there), strict)
    with pytest.raises(InvalidInput, match=r"no file in .*trips fits the pattern '\*\.json'"):
        check(cabs(there, pattern="*.json"), strict)
    check(cabs(there, pattern="*.csv"), strict)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"redis": "redis://127.0.0.1:1/0"}, "Redis at redis://127.0.0.1:1/0 cannot be reached"),
        (
            {"kafka": "127.0.0.1:1", "topics": ["tolls"]},
            "Kafka at 127.0.0.1:1 cannot be reached: nothing is listening",
        ),
    ],
)
def test_a_broker_that_is_away_is_told_and_strictly_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, where: dict[str, Any], words: str
) -> None:
    pytest.importorskip("redis" if "redis" in where else "confluent_kafka")
    made = Topology("cabs", max_latency="5s")
    made.source("trips", Streams(**where, schema="cab STRING"))
    made.add("kept", "SELECT * FROM trips", "trips")
    made.sink("out", "kept", Memory())
    check_before_start(made, Settings(), Place(), tmp_path / "state")
    assert f"source 'trips': {words}" in caplog.text
    assert "the run waits for the first stream" in caplog.text
    with pytest.raises(InvalidInput, match=f"source 'trips': {words}.*; without --strict"):
        check_before_start(made, Settings(), Place(strict=True), tmp_path / "state")


def test_options_that_a_source_refuses_are_refused_before_spark_starts(tmp_path: Path) -> None:
    pytest.importorskip("redis")
    made = Topology("cabs", max_latency="5s")
    made.source("trips", Streams(redis="127", schema="cab STRING"))
    made.add("kept", "SELECT * FROM trips", "trips")
    made.sink("out", "kept", Memory())
    with pytest.raises(InvalidInput, match="source 'trips': redis is '127'"):
        check_before_start(made, Settings(), Place(), tmp_path / "state")


def workers(*sizes: tuple[int, int]) -> list[Worker]:
    return [Worker(slots, 0, memory_mb) for slots, memory_mb in sizes]


@pytest.mark.parametrize(
    ("there", "settings", "words"),
    [
        (workers((4, 8192)), Settings(slots=8), "1 executors of 8 slots and 1024 MB cannot fit"),
        (workers((4, 512)), Settings(), "the largest of its 1 workers has 4 slots and 512 MB"),
        (
            workers((4, 8192), (4, 8192)),
            Settings(slots=3, executors_min=3, executors_max=3),
            "which has room for 2",
        ),
    ],
)
def test_what_cannot_fit_on_the_workers_is_refused_at_once(
    there: list[Worker], settings: Settings, words: str
) -> None:
    with pytest.raises(Infeasible, match=words):
        refuse_what_cannot_fit(there, "spark://far:7077", settings)


def test_workers_that_are_busy_or_not_known_are_waited_for() -> None:
    refuse_what_cannot_fit(workers((2, 2048)), "spark://far:7077", Settings())
    refuse_what_cannot_fit(None, "spark://far:7077", Settings(slots=8))


def test_a_cluster_on_which_no_executor_comes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "executors", lambda session: [])
    said: list[list[Worker] | None] = [None, workers((4, 8192))]
    monkeypatch.setattr(first_executor, "workers_of", lambda master: said.pop(0))
    none = cast(Any, None)
    with pytest.raises(Infeasible, match="no executor of 8 slots and 1024 MB came within 0 s: no "):
        await_executor(none, "spark://far:7077", Settings(slots=8), limit_s=0.0)
    with pytest.raises(Infeasible, match="came within 0 s: 0 of 4 slots of spark://far:7077 are"):
        await_executor(none, "spark://far:7077", Settings(), limit_s=0.0)
    with pytest.raises(Infeasible, match="its queue or its nodes have not as much free"):
        await_executor(none, "yarn", Settings(), limit_s=0.0)
    with pytest.raises(Infeasible, match="no pod of that size could start; `kubectl get events`"):
        await_executor(none, "k8s://https://far:6443", Settings(), limit_s=0.0)
    full = handles.PodTrouble(waiting=("0/2 nodes are available",))
    monkeypatch.setattr(handles, "pod_trouble", lambda session: full)
    with pytest.raises(Infeasible, match="its scheduler says '0/2 nodes are available'; end what"):
        await_executor(cast(Any, object()), "k8s://https://far:6443", Settings(), limit_s=0.0)


def test_who_waits_for_yarn_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    said: Queue[str] = Queue()
    monkeypatch.setattr(first_executor.log, "warning", lambda *words: said.put(words[0]))
    with told_while_waiting("yarn", after_s=0.0):
        assert said.get(timeout=120).startswith("waiting for YARN to take the application")


class Page(http.server.BaseHTTPRequestHandler):
    """The page of a master as Spark 4.3 writes it, cut to what is read."""

    told: ClassVar[object] = None

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.told).encode())

    def log_message(self, *_: object) -> None:
        pass


def test_the_page_of_a_master_is_read_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = {"cores": 4, "coresfree": 1, "memory": 2048, "state": "ALIVE"}
    with (
        http.server.HTTPServer(("127.0.0.1", 0), Page) as page,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        threading.Thread(target=page.serve_forever, daemon=True).start()
        monkeypatch.setenv("SPARK_MASTER_WEBUI_PORT", str(page.server_port))
        monkeypatch.setattr(master_page, "ANSWER_LIMIT_S", 120.0)
        master = f"spark://127.0.0.1:{listening.getsockname()[1]}"
        dead = {**worker, "cores": 64, "state": "DEAD"}
        Page.told = {"url": master, "workers": [worker, dead]}
        assert workers_of(master) == (Worker(4, 1, 2048),)
        check(tmp_path, Settings(), master=master)
        with pytest.raises(Infeasible, match="the largest of its 1 workers has 4 slots and 2048"):
            check(tmp_path, Settings(slots=8), master=master)
        for other in ({"url": "spark://127.0.0.1:1", "workers": [worker]}, ["x"], {"workers": 3}):
            Page.told = other
            assert workers_of(master) is None
        page.shutdown()


def test_a_checkpoint_in_the_folder_of_a_sink_is_refused(tmp_path: Path) -> None:
    for checkpoint in (tmp_path / "out", tmp_path / "out" / "state"):
        with pytest.raises(InvalidInput, match=r"the checkpoint .* is in its folder"):
            check_before_start(road(tmp_path / "out"), Settings(), Place(), checkpoint)
