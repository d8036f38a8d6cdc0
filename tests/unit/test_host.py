"""A host without Spark: what is kept, what is refused, what one topology does to another."""

import dataclasses
import json
import math
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from contract.fake_runner import FakeRunner
from penstock import connections
from penstock.cli import app
from penstock.config import Settings
from penstock.control.actions import Action, Outcome
from penstock.errors import Infeasible, InvalidInput, PenstockError, Unavailable
from penstock.model.decision import Limits
from penstock.sharing.quotas import Quota
from penstock.spark.host import door, messages, on_spark
from penstock.spark.host.batch_watch import BatchWatch
from penstock.spark.host.client import Host as Client
from penstock.spark.host.client import connect, submission_of
from penstock.spark.host.communities import Caller
from penstock.spark.host.costs import Cost, Costs
from penstock.spark.host.host import Host
from penstock.spark.host.loading import Promise
from penstock.spark.host.on_spark import SparkRunner, SparkRunning
from penstock.spark.host.registry import Registry
from penstock.spark.host.submission import packaged, read_submission
from penstock.spark.run.together import STOP_LIMIT_S

LIMIT_S = 120.0
PART = {"name": "b", "file": "g.py", "topology": "", "files": {"g.py": ""}}


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry(tmp_path / "host") as registry:
        yield registry


@pytest.fixture
def host(registry: Registry, runner: FakeRunner) -> Iterator[Host]:
    made = Host(registry, runner)
    yield made
    made.end()


def submitted(name: str, text: str = "x = 1", **more: Any) -> dict[str, Any]:
    document = {"name": name, "file": "f.py", "topology": "", "files": {"f.py": text}}
    return {"do": "submit", "submission": document | more}


def state(host: Host, name: str) -> str:
    return str(next(one["state"] for one in host.list() if one["name"] == name))


def awaited(look: Callable[[], bool]) -> None:
    waits = threading.Event()
    for _ in range(int(LIMIT_S / 0.01)):
        if look():
            return
        waits.wait(0.01)
    raise AssertionError("it did not come")


def test_what_was_submitted_comes_back(host: Host, registry: Registry, runner: FakeRunner) -> None:
    host.handle({"do": "community", "name": "city"})
    host.handle(submitted("a", weight=2.0, community="city"))
    host.handle(submitted("b"))
    awaited(lambda: state(host, "a") == state(host, "b") == "running")
    host.handle({"do": "stop", "name": "b"})
    assert state(host, "b") == "stopped"
    again = FakeRunner()
    later = Host(registry, again)  # as after a kill -9: nothing was told to the registry
    later.come_back()
    awaited(lambda: state(later, "a") == "running")
    assert again.started == ["a"]  # b was stopped by its user
    assert [one["weight"] for one in later.list()] == [2.0, 1.0]
    assert later.handle({"do": "restart", "name": "b"})["detail"].startswith("started again")
    awaited(lambda: state(later, "b") == "running")
    later.end()


def test_one_that_fails_harms_no_other(host: Host) -> None:
    host.handle(submitted("good"))
    host.handle(submitted("bad", "fail = 1"))
    host.handle(submitted("worse", "exit"))
    awaited(lambda: state(host, "bad") == state(host, "worse") == "failed")
    awaited(lambda: state(host, "good") == "running")
    why = {one["name"]: one["why"] for one in host.list()}
    assert why["bad"] == "RuntimeError: the user's code raised"
    failed = "failed RuntimeError: the user's code raised"
    awaited(lambda: host.handle({"do": "logs", "name": "bad"})["lines"][-1].endswith(failed))


def test_refusals_leave_nothing_behind(host: Host, registry: Registry) -> None:
    host.handle(submitted("a"))
    for request, sentence in (
        (submitted("a"), "name is 'a', which is taken"),
        (submitted("c", "refuse"), "f.py is refused."),
        ({"do": "stop", "name": "nobody"}, "no topology is named 'nobody'; known: a."),
        ({"do": "dance"}, "do is 'dance'; allowed: submit, ps, explain, stop, restart, "),
        ({"do": "stop"}, "name must be given, as text."),
        ({"do": "submit"}, "the document must be of type object, not null."),
    ):
        with pytest.raises(InvalidInput) as refused:
            host.handle(request)
        assert str(refused.value).startswith(sentence)
    assert [one["name"] for one in host.list()] == ["a"]
    assert [one.name for one in registry.submissions()[0]] == ["a"]
    host.handle(submitted("c"))  # its name is free


def test_too_many_are_warned_of_or_refused(host: Host) -> None:
    for name in "abc":
        assert host.handle(submitted(name))["warning"] is None
    with pytest.raises(Infeasible, match="4 are too many"):
        host.handle(submitted("d") | {"strict": True})
    assert host.handle(submitted("d"))["warning"] == "4 are too many."


def test_members_see_their_own_community_alone(host: Host, runner: FakeRunner) -> None:
    quota = {"least": 1, "most": 2, "weight": 3.0}
    tokens = host.handle({"do": "community", "name": "x", "quota": quota, "add": ["ada"]})["tokens"]
    host.handle({"do": "community", "name": "y", "add": ["bob"]})
    assert runner.quotas["x"] == Quota(1, 2, 3.0)
    ada, bob = Caller("x", "ada"), Caller("y", "bob")
    assert host.caller(tokens["ada"]) == ada
    assert host.caller("guess") is None
    host.handle(submitted("of_x"), ada)
    host.handle(submitted("of_y", community="y"), bob)
    host.handle(submitted("of_owner"))
    shown = host.handle({"do": "ps"}, ada)["topologies"]
    assert [(one["name"], one["community"], one["member"]) for one in shown] == [
        ("of_x", "x", "ada")
    ]
    assert len(host.handle({"do": "ps"})["topologies"]) == 3
    assert host.handle({"do": "explain"}, ada)["common"] == []
    assert len(host.handle({"do": "explain"})["common"]) == 1
    assert [c["name"] for c in host.handle({"do": "communities"}, ada)["communities"]] == ["x"]
    awaited(lambda: state(host, "of_x") == "running")
    assert (
        host.handle({"do": "results", "name": "of_x", "rows": 2}, ada)["rows"] == [["1", "x"]] * 2
    )
    for do in ("stop", "restart", "logs", "results"):
        with pytest.raises(InvalidInput, match="no topology is named 'of_y'; known: of_x"):
            host.handle({"do": do, "name": "of_y"}, ada)
    for request, sentence in (
        (submitted("n", community="y"), "community is 'y'; this token is for 'x' alone."),
        (submitted("of_y"), "name is 'of_y', which is taken; give another --name"),
        ({"do": "community", "name": "x", "quota": {"most": 9}}, "communities are changed by"),
        ({"do": "forget-community", "name": "x"}, "communities are changed by"),
    ):
        with pytest.raises(InvalidInput) as refused:
            host.handle(request, ada)
        assert str(refused.value).startswith(sentence)


def test_communities_that_are_wrong(host: Host, registry: Registry) -> None:
    host.handle({"do": "community", "name": "x", "quota": {"least": 2}, "add": ["ada"]})
    host.handle(submitted("a", community="x"))
    made = {"do": "community", "name": "y"}
    for request, sentence in (
        (submitted("b", community="z"), "community is 'z', which is not known; known: x."),
        (made | {"name": "a b"}, "community is 'a b'; give letters"),
        (made | {"quota": {"least": 2}}, "least is 2; 1 processors of 3 are not promised"),
        (made | {"quota": {"least": 1, "most": 0}}, "most is 0; it must be at least 1."),
        (made | {"quota": {"weight": 0}}, "weight is 0; it must be at least 0.001."),
        (made | {"quota": {"members": {}}}, "quota must be an object with least, most"),
        (made | {"add": "ada"}, "add must be a list of members' names."),
        (made | {"add": ["a/b"]}, "member is 'a/b'; give letters"),
        (made | {"remove": ["bob"]}, "'bob' is no member of community 'y'."),
        ({"do": "forget-community", "name": "x"}, "community 'x' has a; stop these with"),
        ({"do": "results", "name": "a", "rows": 0}, "rows is 0; give a whole number from 1"),
    ):
        with pytest.raises(InvalidInput) as refused:
            host.handle(request)
        assert str(refused.value).startswith(sentence)
    host.handle({"do": "stop", "name": "a", "forget": True})
    later = Host(registry, FakeRunner())
    assert [one["members"] for one in later.handle({"do": "communities"})["communities"]] == [
        ["ada"]
    ]
    later.handle({"do": "community", "name": "x", "remove": ["ada"]})
    later.handle({"do": "forget-community", "name": "x"})
    assert later.handle({"do": "communities"})["communities"] == []


def test_forgotten_names_are_free(host: Host, registry: Registry) -> None:
    host.handle(submitted("a"))
    host.handle({"do": "stop", "name": "a", "forget": True})
    assert host.list() == []
    assert registry.submissions() == ([], [])
    host.handle(submitted("a"))


def test_a_damaged_record_harms_no_other(registry: Registry, runner: FakeRunner) -> None:
    first = Host(registry, runner)
    first.handle(submitted("a"))
    awaited(lambda: state(first, "a") == "running")
    first.end()
    (registry.folder / "submissions" / "b.json").write_text("{", encoding="utf-8")
    found, damaged = registry.submissions()
    assert [one.name for one in found] == ["a"]
    assert len(damaged) == 1


def test_one_host_for_a_folder(registry: Registry) -> None:
    with pytest.raises(Unavailable, match="a host runs in"), Registry(registry.folder):
        pass


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "../a"}, "name is '../a'; give letters"),
        ({"name": ""}, "name is ''; give letters"),
        ({"community": "a b"}, "community is 'a b'; give letters"),
        ({"files": {"../f.py": ""}, "file": "../f.py"}, "files has '../f.py'; give paths below"),
        ({"files": {"/f.py": ""}, "file": "/f.py"}, "files has '/f.py'; give paths below"),
        ({"file": "g.py"}, "file is 'g.py', which is not among the files sent."),
        ({"files": {"f.py": 3}}, "files.f.py must be of type string"),
        ({"share": 2}, "share is 2; it must be at most 0.9999."),
        ({"weight": 0}, "weight is 0; it must be at least 0.001."),
        ({"max_latency_s": 0}, "max_latency_s is 0; it must be greater than 0."),
        ({"topology": "../x"}, "topology is '../x' in 'f.py'; give its name there"),
        ({"file": "...py", "files": {"...py": ""}}, "topology is '' in '...py'; give its name"),
        ({"others": [PART, PART]}, "two topologies are named 'b'; those that run as one need"),
        ({"others": [PART | {"name": "b-c"}]}, "'b-c' must be an identifier, to run as one"),
        ({"others": [PART | {"file": "../g.py"}]}, "files has '../g.py'; give paths below"),
        ({"others": [{}]}, "others[0] lacks 'name', 'file', 'topology', 'files'"),
        ({"more": 1}, "the document has unknown 'more'"),
    ],
)
def test_submissions_that_are_wrong(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_submission(submitted("a")["submission"] | changes)
    assert str(refused.value).startswith(sentence)


def test_a_file_is_sent_with_what_it_imports(tmp_path: Path) -> None:
    texts = {
        "flow.py": "import os, near\nfrom pack.deep import thing\nfrom pack import other\n",
        "near.py": "from far import x",
        "far.py": "import near",  # a circle
        "pack/__init__.py": "",
        "pack/deep.py": "from . import sibling\nfrom .sibling import y",
        "pack/sibling.py": "",
        "pack/other.py": "",
        "unused.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = packaged(tmp_path / "flow.py")
    assert set(found) == set(texts) - {"unused.py"}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("{}/absent.py:made", "{}/absent.py is not a file; write FILE.py:NAME."),
        ("{}/text.txt", "{}/text.txt is not a Python file; its name must end in .py."),
        ("{}/broken.py", "{}/broken.py, line 1 is not Python: "),
        (":made", "':made' names no topology; write FILE.py:NAME, as in road.py:road."),
        ("{}/good.py:a b", "'{}/good.py:a b' names no topology"),
    ],
)
def test_specs_that_are_wrong(tmp_path: Path, spec: str, sentence: str) -> None:
    (tmp_path / "text.txt").write_text("", encoding="utf-8")
    (tmp_path / "broken.py").write_text("def (", encoding="utf-8")
    (tmp_path / "good.py").write_text("", encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        submission_of(spec.replace("{}", str(tmp_path)))
    assert str(refused.value).startswith(sentence.replace("{}", str(tmp_path)))


@pytest.fixture
def served(
    host: Host, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "state"))
    with messages.MessageServer(host.handle, registry.folder, host.caller):
        yield connect()
    with pytest.raises(Unavailable, match="No host runs"):
        connect()


def test_the_client_and_the_commands(served: Client, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("x = 1", encoding="utf-8")
    assert served.submit(f"{tmp_path}/flow.py:x", max_latency="2s", share=0.9) is None
    awaited(lambda: served.ps()[0]["state"] == "running")
    assert served.ps()[0]["max_latency_s"] == 2.0
    shown = CliRunner().invoke(app, ["ps"])
    assert shown.stdout == (
        "x: running, 1 of 2 processors wanted, 50.0% of 7 results within 2.00 s\n"
    )  # fmt: skip
    listed = CliRunner().invoke(app, ["ps", "--json"])
    assert json.loads(listed.stdout)[0]["name"] == "x"
    taken = CliRunner().invoke(app, ["submit", f"{tmp_path}/flow.py:x"])
    assert (taken.exit_code, taken.stdout) == (2, "")
    assert taken.stderr.startswith("penstock: name is 'x', which is taken (it is running)")
    stopped = CliRunner().invoke(app, ["stop", "x"])
    assert stopped.stdout.startswith("x: stopped; `penstock restart` goes on where it was")
    assert CliRunner().invoke(app, ["restart", "x"]).exit_code == 0
    assert "runs" in CliRunner().invoke(app, ["logs", "x"]).stdout
    absent = CliRunner().invoke(app, ["logs", "y"])
    assert absent.stderr.startswith("penstock: no topology is named 'y'; known: x.")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"", "the request is not JSON"),
        (b"[]", "the request must hold a JSON object"),
        (b"\xff", "the request is not UTF-8"),
        (b"{}", "the token is not this host's"),
        (b'{"token": 3}', "the token is not this host's"),
        (b'{"token": "guess", "do": "ps"}', "the token is not this host's"),
        (b'{"token": "\xc3\xa9", "do": "ps"}', "the token is not this host's"),
    ],
)
def test_strangers_are_refused(served: Client, line: bytes, sentence: str) -> None:
    with socket.create_connection((messages.LOOPBACK, served.address.port), LIMIT_S) as connection:
        connection.sendall(line + b"\n")
        with connection.makefile("rb") as stream:
            got = json.loads(stream.readline())
    assert got["refused"].startswith(sentence)
    assert "token" not in repr(served)


def test_connections_that_ask_nothing_are_few_and_end(
    served: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 8)
    before = threading.active_count()
    place = (messages.LOOPBACK, served.address.port)
    idle = [socket.create_connection(place, LIMIT_S) for _ in range(100)]
    try:
        awaited(lambda: len(select.select(idle, [], [], 0)[0]) == 92)
        assert threading.active_count() <= before + 8
        with pytest.raises(Unavailable, match=r"too many connections|does not answer"):
            served.ps()
    finally:
        for one in idle:
            one.close()
    awaited(lambda: threading.active_count() <= before)
    monkeypatch.setattr(connections, "REQUEST_LIMIT_S", 0.2)
    with socket.create_connection(place, LIMIT_S) as slow:
        slow.sendall(b'{"do"')  # and then never a whole request
        assert slow.recv(100) == b"", "it is ended, not waited for"


@pytest.mark.parametrize("begin", [b'{"token": "guess", "do": "', b'{"do": "', b"x" * 100])
def test_a_stranger_sends_no_more_than_the_first_bytes(served: Client, begin: bytes) -> None:
    with socket.create_connection((messages.LOOPBACK, served.address.port), LIMIT_S) as connection:
        connection.sendall(begin + b"x" * 2 * door.FIRST_BYTES)  # the line goes on
        with connection.makefile("rb") as stream:
            got = json.loads(stream.readline())
    assert got["refused"] == "the token is not this host's; ask its user."


def test_a_long_request_with_a_token_is_read(served: Client) -> None:
    with pytest.raises(InvalidInput, match=r"^do is 'x"):
        messages.ask(served.address, {"do": "x" * 2**20})
    guess = dataclasses.replace(served.address, token="guess")
    with pytest.raises(InvalidInput, match="the token is not this host's"):
        messages.ask(guess, {"do": "x" * 2**23})


def test_what_the_host_itself_does_wrong_is_an_answer(
    served: Client, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "list", lambda _: 1 // 0)
    with pytest.raises(PenstockError, match="the host failed: ZeroDivisionError"):
        served.ps()


def test_a_member_reaches_it_with_a_token(
    host: Host, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    listen = messages.Listen(messages.LOOPBACK, 0)
    with messages.MessageServer(host.handle, registry.folder, host.caller, listen) as server:
        made = CliRunner().invoke(app, ["community", "x", "--most", "2", "--add", "ada", "--json"])
        token = json.loads(made.stdout)["tokens"]["ada"]
        own = connect().address.token
        monkeypatch.setenv("PENSTOCK_HOST", f"127.0.0.1:{server.ports[1]}")
        without = CliRunner().invoke(app, ["ps"])
        assert (without.exit_code, without.stdout) == (2, "")
        assert "needs a token; give it in PENSTOCK_TOKEN." in without.stderr
        for guess in ("guess", own):  # the host's own token is for its own door
            with pytest.raises(InvalidInput, match="the token is not this host's"):
                connect(token=guess).ps()
        monkeypatch.setenv("PENSTOCK_TOKEN", token)
        (tmp_path / "flow.py").write_text("x = 1", encoding="utf-8")
        assert CliRunner().invoke(app, ["submit", f"{tmp_path}/flow.py:x"]).exit_code == 0
        awaited(lambda: state(host, "x") == "running")
        shown = CliRunner().invoke(app, ["ps"]).stdout
        assert shown.endswith("community x\n")
        assert CliRunner().invoke(app, ["results", "x", "--rows", "1"]).stdout == "a\tb\n1\tx\n"
        listed = CliRunner().invoke(app, ["community"]).stdout
        assert listed == "x: 0 to 2 processors, weight 1, members ada\n"
        assert CliRunner().invoke(app, ["community", "x", "--least", "1"]).exit_code == 2


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_beyond_this_machine_it_is_spoken_to_encrypted(
    host: Host, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    pem, key = tmp_path / "host.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(pem)], check=True, capture_output=True,
    )  # fmt: skip
    token = host.handle({"do": "community", "name": "x", "add": ["ada"]})["tokens"]["ada"]
    listen = messages.Listen("127.0.0.1", 0, pem, key)
    with messages.MessageServer(host.handle, registry.folder, host.caller, listen) as server:
        at = f"127.0.0.1:{server.ports[1]}"
        assert connect(at, token, str(pem)).ps() == []
        with pytest.raises(Unavailable, match="the host does not answer"):
            connect(at, token).ps()  # in the clear
        with pytest.raises(Unavailable, match="the host does not answer"):
            connect(at, token, str(tmp_path / "absent.pem")).ps()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--listen", "0.0.0.0:7700"], "--listen is 0.0.0.0:7700, which others can reach: give"),
        (["--listen", "nowhere"], "--listen is 'nowhere'; write ADDRESS:PORT"),
        (["--certificate", "a.pem"], "--certificate and --key are for --listen; give that too."),
        (["--listen", "127.0.0.1:1", "--key", "a.pem"], "--key is that of a --certificate"),
        (["--listen", "0.0.0.0:1", "--certificate", "absent.pem"], "--certificate absent.pem "),
    ],
)
def test_a_door_that_is_not_safe_is_refused(options: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["host", *options])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"penstock: {sentence}")


def test_without_a_host_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    result = CliRunner().invoke(app, ["ps"])
    assert result.exit_code == 1
    said = "penstock: No host runs; start one with `penstock host`. See penstock docs host.\n"
    assert result.stderr == said


def written(folder: Path, word: str) -> None:
    """A topology's file with a module and a package beside it, which say a word."""
    (folder / "pack").mkdir(parents=True)
    (folder / "beside.py").write_text(f"WORD = {word!r}\n", encoding="utf-8")
    (folder / "pack" / "deep.py").write_text("from beside import WORD\n", encoding="utf-8")
    (folder / "flow.py").write_text(
        "from penstock import Topology\nfrom pack.deep import WORD\n"
        "made = Topology(WORD, max_latency='2s')\n",
        encoding="utf-8",
    )


def test_modules_of_the_same_name_do_not_meet(tmp_path: Path) -> None:
    from penstock.spark.host.loading import load_submitted

    for word in ("one", "two"):
        written(tmp_path / word, word)
    names = [load_submitted(tmp_path / w, "flow.py", "made", w).name for w in ("one", "two")]
    assert names == ["one", "two"]


def test_a_topology_under_another_name_and_promise(tmp_path: Path) -> None:
    from penstock.spark.host.loading import load_submitted

    written(tmp_path / "one", "one")
    read = load_submitted(tmp_path / "one", "flow.py", "made", "one")
    other = read.promising("other", 5.0, 0.9)
    assert (other.name, other.max_latency_s, other.share) == ("other", 5.0, 0.9)
    same = read.promising("other")
    assert (same.max_latency_s, same.share) == (2.0, 0.99)


def test_a_batch_that_does_not_end_is_noticed() -> None:
    now = [0.0]
    watch = BatchWatch(lambda: now[0])
    watch.began("q", 3)
    now[0] = 10.0
    assert watch.overdue(10.0) is None
    now[0] = 11.0
    assert str(watch.overdue(10.0)).startswith("batch 3 of query 'q' has not ended within 10 s;")
    watch.ended("q", 3)
    assert watch.overdue(10.0) is None


def test_a_batch_that_had_its_time_is_not_waited_for_when_it_is_stopped() -> None:
    now = [0.0]
    watch = BatchWatch(lambda: now[0])
    queries = SimpleNamespace(stop_limit_s=STOP_LIMIT_S)
    run: Any = SimpleNamespace(topology=SimpleNamespace(name="hangs"), running=queries)
    hosted = SparkRunning(run, None, None, watch)  # type: ignore[arg-type]
    watch.began("q", 3)
    now[0] = 10.0
    hosted.end_if_overdue(10.0)
    assert queries.stop_limit_s == STOP_LIMIT_S
    now[0] = 11.0
    hosted.end_if_overdue(10.0)
    assert queries.stop_limit_s == 0.0


def test_what_code_takes_is_known_when_it_comes_again(tmp_path: Path) -> None:
    costs = Costs(tmp_path / "costs")
    before = read_submission(submitted("a")["submission"])
    assert costs.of(before) == Cost()
    costs.keep(before, Cost(2, {1: math.inf, 2: 1.5, 3: 1.0}))
    again = read_submission(submitted("b", max_latency_s=9.0)["submission"])
    found = costs.of(again)
    assert found == Cost(2, {1: math.inf, 2: 1.5, 3: 1.0})
    assert [found.wanted_for(bound_s) for bound_s in (2.0, 1.2, 0.1)] == [2, 3, 3]
    assert costs.of(read_submission(submitted("a", "x = 2")["submission"])) == Cost()
    for file in (tmp_path / "costs").iterdir():
        file.write_text("{}", encoding="utf-8")
    assert costs.of(before) == Cost(), "a record that is damaged is none"


def test_the_cluster_is_divided_while_executors_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, come = threading.Event(), threading.Event()

    class SlowExecutors:
        def __init__(self, _: object) -> None:
            """They come when the test lets them."""

        def unavailable(self) -> Mapping[str, str]:
            return {}

        def slots_per_executor(self) -> int:
            return 1

        def executors(self) -> int:
            return 1

        def act(self, action: Action) -> Outcome:
            waiting.set()
            come.wait()
            return Outcome(action, done=True, detail="")

    given: list[int] = []
    monkeypatch.setattr(on_spark, "SparkExecutors", SlowExecutors)
    monkeypatch.setattr(on_spark.handles, "set_pool", lambda _, __, number: given.append(number))
    settings = Settings(period_s=0.1, executors_min=1, executors_max=4)
    runner = SparkRunner(SimpleNamespace(), settings, tmp_path / "costs", LIMIT_S)  # type: ignore[arg-type]
    try:
        runner.shared.join("a", Limits(1, 4, 5.0), wanted=2)
        running = SimpleNamespace(send_parallelism=lambda _: None)
        runner._submissions["a"] = read_submission(submitted("a")["submission"])
        runner._runs["a"] = SimpleNamespace(  # type: ignore[assignment]
            run=SimpleNamespace(running=running), end_if_overdue=lambda _: None
        )
        assert waiting.wait(LIMIT_S)
        runner.shared.join("a", Limits(1, 4, 5.0), wanted=4)
        awaited(lambda: 4 in given)
    finally:
        come.set()
        runner.close()


def test_a_bound_that_the_host_s_interval_breaks_is_refused_before_it_joins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = SparkRunner.__new__(SparkRunner)
    runner._settings = Settings(batch_interval_s=6.0)
    monkeypatch.setattr(on_spark, "check_apart", lambda *_: Promise(5.0, 0.99))
    with pytest.raises(InvalidInput, match="batch-interval of the host is 6 s; rows wait"):
        runner.check(read_submission(submitted("a")["submission"]), tmp_path)
