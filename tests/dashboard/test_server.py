"""The page's server: what it answers, what it refuses, and that live means live."""

import http.client
import json
import re
import select
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from contract.fakes import wait_until
from dashboard.histories import MARKUP, START_S, decision, make, period, write
from penstock import connections
from penstock.control.history.store import HistoryStore, RunHistory
from penstock.dashboard.series import thinned
from penstock.dashboard.server import Dashboard, assets
from penstock.errors import InvalidInput, Unavailable

TOKEN = "a-token-for-tests"
LIMIT_S = 120.0  # only against what never comes


class Site:
    """A served history and a client for it."""

    def __init__(self, page: Dashboard, store: HistoryStore, run: RunHistory) -> None:
        self.page, self.store, self.run = page, store, run
        self.held: list[bool] = []
        self._connections: list[http.client.HTTPConnection] = []

    def hold(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(wanted.get("on"), bool):
            raise InvalidInput("on must be true or false.")
        self.held.append(wanted["on"])
        return {"on": wanted["on"]}

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.page.port, timeout=LIMIT_S)
        self._connections.append(connection)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        return connection.getresponse()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def get_json(self, path: str, **headers: str) -> tuple[int, Any]:
        answer = self.ask(path, **headers)
        return answer.status, json.loads(answer.read())


@contextmanager
def opened(folder: Path, acting: bool) -> Iterator[Site]:
    store, run = make(folder)
    acts: dict[str, Any] = {}
    with store, Dashboard(store, token=TOKEN if acting else None, acts=acts) as page:
        site = Site(page, store, run)
        if acting:
            page.acts["advice-only"] = site.hold
        try:
            yield site
        finally:
            site.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with opened(tmp_path, acting=True) as site:
        yield site


def test_a_run_is_told_with_the_numbers_of_the_history(site: Site) -> None:
    status, body = site.get_json(f"/api/runs/{site.run.run_id}")
    assert status == 200
    observed = site.store.read_observations(site.run.run_id)
    series = body["series"]
    assert series["at_s"] == [o.at_s for o in observed]
    assert series["arrival_rate_per_s"] == [101.5, 102.5, 103.5]
    assert series["backlog_rows"] == [10.0, 20.0, 30.0]
    assert series["latency_p95_s"] == [1.625, 1.75, 1.875]
    assert (body["run"]["share"], series["latency_share_s"]) == (0.99, [1.875, 2.0, 2.125])
    assert series["executors"] == [2, 2, 2]
    assert series["processors"] == [2, 2, 2]  # one of the two executors is leaving
    assert series["load"] == [5.0 / 20] * 3
    assert body["components"]["speeds"]["busy_processors"] == [0.7] * 3
    assert body["forecast"] == {
        "at_s": [START_S + 5 * n + 10 for n in (1, 2, 3)], "rate_per_s": [123.25] * 3,
        "upper_per_s": [None] * 3, "latency_s": [None] * 3,
    }  # fmt: skip
    newest = body["newest"]["components"][0]["key_groups"]
    assert newest == {
        "load_s": [0.5, 1.25, 0.125], "state_bytes": [100.0, 2e6, None], "node": ["1", "2", "1"],
    }  # fmt: skip
    first = body["decisions"][0]
    assert (first["processors"], first["suggested"], first["guarded"]) == (2, 6, 4)
    assert first["infeasible"] == "needs 9 processors"
    assert first["guard_reasons"] == ["step: 2 -> 6 processors cut to 2 -> 4"]
    assert {d["policy"] for d in body["decisions"]} == {"incremental"}
    assert {d["policy"] for d in body["shadows"]} == {"ds2"}
    placed = body["others"][0]
    assert (placed["what"], placed["numbers"]["load distance"]) == (
        "1 key groups move",
        [12.5, 3.25],
    )
    assert placed["reasons"] == ["speeds: group 1 is the busiest", "speeds group 1 to 2"]
    assert body["failures"][0]["message"] == f"ValueError: {MARKUP}"


def test_a_part_by_time_holds_that_part_alone(site: Site) -> None:
    at_s = START_S + 10
    _, body = site.get_json(f"/api/runs/{site.run.run_id}?since={at_s}&until={at_s}")
    assert body["series"]["at_s"] == [at_s]
    assert [d["at_s"] for d in body["decisions"]] == [at_s]
    status, body = site.get_json(f"/api/runs/{site.run.run_id}?since=soon")
    assert (status, body) == (400, {"error": "since is 'soon'; give a Unix time in seconds."})


def test_a_long_run_is_told_by_its_worst_periods_and_every_decision(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4, 40):
        site.run.observed(period(number if number != 17 else 99))
        site.run.decided(decision(number))
    site.run.flush()
    monkeypatch.setattr("penstock.dashboard.view.thinned", lambda worst: thinned(worst, most=6))
    _, body = site.get_json(f"/api/runs/{site.run.run_id}")
    assert body["periods"] == {"shown": 6, "of": 39}
    assert START_S + 5 * 99 in body["series"]["at_s"]
    assert body["series"]["at_s"][-1] == body["newest"]["at_s"] == START_S + 5 * 39
    assert len(body["decisions"]) == 39


def events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    """Server-sent events as they come, after the list of runs that comes first."""
    stream = every_event(answer)
    assert next(stream)[0] == "runs"
    return stream


def every_event(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif fields.get("data"):
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


def test_new_periods_are_pushed_and_none_is_told_twice(site: Site) -> None:
    run = site.run.run_id
    _, body = site.get_json(f"/api/runs/{run}")
    answer = site.ask(f"/api/runs/{run}/events?after={body['position']}")
    assert answer.getheader("Content-Type", "").startswith("text/event-stream")
    stream = events(answer)
    write(site.run, 4, homes=("2", "2", "1"))
    kind, where, update = next(stream)
    assert (kind, update["series"]["at_s"]) == ("period", [START_S + 20])
    assert update["moves"] == [
        {"at_s": START_S + 20, "component": "speeds", "group": 0, "from": "1", "to": "2"}
    ]
    assert len(update["decisions"]) == len(update["shadows"]) == len(update["actions"]) == 1
    write(site.run, 5)
    _, later, update = next(stream)
    assert update["series"]["at_s"] == [START_S + 25]
    answer.close()
    # A page that lost its connection goes on where it left off.
    again = events(site.ask(f"/api/runs/{run}/events", Last_Event_ID=where))
    assert next(again)[1:] == (later, update)


def test_a_page_that_slept_gets_the_newest_periods_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = site.run.run_id
    _, body = site.get_json(f"/api/runs/{run}")
    for number in range(4, 30):
        site.run.observed(period(number))
        site.run.decided(decision(number))
    site.run.flush()
    monkeypatch.setattr("penstock.dashboard.view.MOST_READ", 5)
    stream = events(site.ask(f"/api/runs/{run}/events?after={body['position']}"))
    _, _, update = next(stream)
    assert update["series"]["at_s"] == [START_S + 5 * number for number in range(25, 30)]
    assert len(update["decisions"]) == 5


def test_the_end_of_a_run_is_pushed(site: Site) -> None:
    run = site.run.run_id
    _, body = site.get_json(f"/api/runs/{run}")
    stream = events(site.ask(f"/api/runs/{run}/events?after={body['position']}"))
    write(site.run, 4)
    assert next(stream)[0] == "period"
    site.run.end(START_S + 99)
    kind, _, update = next(stream)
    assert (kind, update["runs"][0]["ended_at_s"]) == ("runs", START_S + 99)


def test_a_period_from_a_clock_that_was_set_back_is_told_too(site: Site) -> None:
    run = site.run.run_id
    _, body = site.get_json(f"/api/runs/{run}")
    site.run.observed(period(-500))
    site.run.flush()
    stream = events(site.ask(f"/api/runs/{run}/events?after={body['position']}"))
    assert next(stream)[2]["series"]["at_s"] == [START_S - 2500]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "127.0.0.1", "", "[::1]:{port}"]
)
def test_a_name_that_is_not_ours_is_refused(site: Site, host: str) -> None:
    status, body = site.get_json("/api/runs", Host=host.format(port=site.page.port))
    assert (status, body) == (403, {"error": "the Host header does not name this server."})


def test_our_own_names_are_answered(site: Site) -> None:
    for name in ("127.0.0.1", "localhost", "LocalHost"):
        origin = f"http://{name}:{site.page.port}"
        assert site.get_json("/api/runs", Host=f"{name}:{site.page.port}", Origin=origin)[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", ""])
def test_a_request_from_another_site_is_refused(site: Site, origin: str) -> None:
    given = origin.format(port=site.page.port)
    for path in ("/api/runs", "/", "/metrics"):
        assert site.get_json(path, Origin=given)[0] == 403
    answer = site.ask(
        "/api/acts/advice-only", "POST", '{"on": true}', Origin=given,
        Authorization=f"Bearer {TOKEN}",
    )  # fmt: skip
    assert answer.status == 403


def act(site: Site, body: str = '{"on": true}', **headers: str) -> int:
    return site.ask("/api/acts/advice-only", "POST", body, **headers).status


def test_acting_needs_the_token(site: Site) -> None:
    assert act(site) == 401
    assert act(site, Authorization="Bearer wrong") == 401
    assert act(site, Authorization=TOKEN) == 401
    assert act(site, Authorization="Bearer ") == 401
    assert act(site, Cookie=f"token={TOKEN}") == 401
    assert site.held == []
    assert act(site, Authorization=f"Bearer {TOKEN}") == 200
    assert site.held == [True]


def test_an_act_that_makes_no_sense_is_refused(site: Site) -> None:
    token = f"Bearer {TOKEN}"
    assert act(site, '{"on": 1}', Authorization=token) == 400
    assert act(site, "[]", Authorization=token) == 400
    assert act(site, "{", Authorization=token) == 400
    assert act(site, "[" * 4000, Authorization=token) == 400
    assert act(site, " " * 5000, Authorization=token) == 413
    assert site.ask("/api/acts/reboot", "POST", "{}", Authorization=token).status == 404


def test_without_acts_nothing_acts(tmp_path: Path) -> None:
    with opened(tmp_path, acting=False) as reader:
        assert act(reader, Authorization="Bearer ") == 401
        assert act(reader, Authorization="Bearer None") == 401
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            assert reader.ask("/api/runs", method).status == 501
        assert "#" not in reader.page.url


def test_where_reading_needs_the_token_nothing_is_read_without(tmp_path: Path) -> None:
    store, run = make(tmp_path)
    with store, Dashboard(store, token=TOKEN, private=True) as page:
        site = Site(page, store, run)
        try:
            for path in ("/api/runs", "/api/runs/1", "/api/runs/1/events", "/metrics", "/api/x"):
                assert site.get_json(path)[0] == 401
                assert site.get_json(path, Cookie=f"penstock-{page.port}=wrong")[0] == 401
            assert site.ask("/").status == site.ask("/assets/page.js").status == 200  # no data
            assert site.ask("/metrics", Authorization=f"Bearer {TOKEN}").status == 200
            answer = site.ask("/api/session", "POST", "{}", Authorization=f"Bearer {TOKEN}")
            cookie = answer.getheader("Set-Cookie", "")
            assert "HttpOnly; SameSite=Strict" in cookie
            assert site.get_json("/api/runs", Cookie=cookie.partition(";")[0])[0] == 200
            # The cookie is for reading alone.
            assert act(site, Cookie=cookie.partition(";")[0]) == 401
            assert site.ask("/api/session", "POST", "{}").status == 401
        finally:
            site.close()


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/assets/../server.py", "/assets/%2e%2e/server.py", "/assets/",
        "/assets/server.py", "/etc/passwd", "/api/runs/1/../2", "/api/runs/h.sqlite",
        "/api/runs/-1", "/api/runs/99", "/api/runs/1%00", "//evil.example/", "/api/runs/99/events",
        "/api/runs/" + "9" * 400, "/" + "a" * 60_000,
    ],
)  # fmt: skip
def test_what_is_not_listed_does_not_exist(site: Site, path: str) -> None:
    status, body = site.get_json(path)
    assert status == 404
    assert set(body) == {"error"}


def test_every_answer_carries_the_headers_that_bind_browsers(site: Site) -> None:
    asked = [site.ask(path) for path in ("/", "/assets/page.js", "/api/runs", "/metrics", "/x")]
    for answer in [*asked, site.ask("/", "PUT"), site.ask("/", Host="evil.example")]:
        policy = answer.getheader("Content-Security-Policy", "")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert answer.getheader("Referrer-Policy") == "no-referrer"
        assert answer.getheader("Cross-Origin-Resource-Policy") == "same-origin"
        assert answer.getheader("Access-Control-Allow-Origin") is None
        assert answer.getheader("Server", "").strip() == "penstock"


def test_the_page_has_no_inline_script_or_style_and_fetches_nothing_from_elsewhere() -> None:
    page = assets()
    html = page["index.html"].decode()
    assert re.findall(r"<script(?![^>]*\ssrc=)", html) == []
    assert "<style" not in html
    assert re.findall(r"\s(?:style|on\w+)=", html) == []
    for name, content in page.items():
        text = content.decode()
        outside = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert outside == set(), name
    for name in (name for name in page if name.endswith(".js")):
        text = page[name].decode()
        for danger in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert danger not in text, name
        assert re.findall(r"setInterval|setTimeout", text) == [], f"{name} must not poll"


def test_a_fault_of_ours_is_one_sentence_and_the_next_request_is_answered(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("penstock.dashboard.handler.run_list", lambda _: 1 / 0)
        status, body = site.get_json("/api/runs")
    assert (status, body) == (500, {"error": "the server failed; its log says how."})
    assert site.get_json("/api/runs")[0] == 200
    assert site.get_json("//[")[0] in (400, 404)


def test_what_is_left_of_a_refused_request_is_never_taken_for_another(site: Site) -> None:
    import socket

    smuggled = b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % site.page.port
    head = b"POST /api/acts/advice-only HTTP/1.1\r\nHost: evil\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection(("127.0.0.1", site.page.port), timeout=LIMIT_S) as raw:
        raw.sendall(head % len(smuggled) + smuggled)
        received = b""
        while part := raw.recv(65_536):
            received += part
    assert received.count(b"HTTP/1.1 ") == 1
    assert b" 403 " in received


def test_a_taken_port_is_one_sentence(site: Site) -> None:
    with pytest.raises(Unavailable, match=f"port {site.page.port} of 127.0.0.1 cannot be used"):
        Dashboard(site.store, site.page.port)


def test_a_request_of_nonsense_leaves_the_server_running(site: Site) -> None:
    import socket

    for nonsense in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", site.page.port), timeout=LIMIT_S) as raw:
            raw.sendall(nonsense)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(4096):
                pass
    assert site.get_json("/api/runs")[0] == 200


def test_connections_that_ask_nothing_are_few_and_end(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 8)
    before = threading.active_count()
    monkeypatch.setattr(connections, "REQUEST_LIMIT_S", 600.0)
    idle = [socket.create_connection(("127.0.0.1", site.page.port), LIMIT_S) for _ in range(300)]
    try:
        assert wait_until(lambda: len(select.select(idle, [], [], 0)[0]) == 292)
        assert all(said.startswith(b"HTTP/1.1 503") for said in _answered(idle))
        assert threading.active_count() <= before + 8
    finally:
        for one in idle:
            one.close()
    assert wait_until(lambda: threading.active_count() <= before), "a closed one is over"
    monkeypatch.setattr(connections, "REQUEST_LIMIT_S", 0.2)
    with socket.create_connection(("127.0.0.1", site.page.port), LIMIT_S) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")  # and then never a whole request
        assert slow.recv(100) == b"", "it is ended, not waited for"
    stream = events(_asked_in_time(site, f"/api/runs/{site.run.run_id}/events"))
    assert wait_until(lambda: threading.active_count() <= before + 1)
    threading.Event().wait(0.6)  # beyond the limit, and until it was looked at again
    write(site.run, 4)
    assert any(
        START_S + 20 in told["series"]["at_s"] for kind, _, told in stream if kind == "period"
    )


def _asked_in_time(site: Site, path: str) -> http.client.HTTPResponse:
    """The answer to the first request that a busy machine sends before its time is over."""
    for _ in range(100):
        with suppress(http.client.HTTPException, ConnectionError):
            return site.ask(path)
    pytest.fail("every request was ended")


def _answered(connections: list[socket.socket]) -> list[bytes]:
    """What was said to some that asked nothing."""
    return [one.recv(100) for one in select.select(connections, [], [], 0)[0]]


def test_a_decision_at_other_sizes_and_the_totals_of_a_run(site: Site) -> None:
    run = site.run.run_id
    status, body = site.get_json(f"/api/runs/{run}/why?at={START_S + 12}")
    assert (status, body["at_s"]) == (200, START_S + 10)  # the one that held then
    assert [one["executors"] for one in body["alternatives"]] == [1, 2, 3, 4]
    assert [one["there"] for one in body["alternatives"]] == [True, False, False, False]
    assert site.get_json(f"/api/runs/{run}/why")[1]["at_s"] == START_S + 15
    assert site.get_json(f"/api/runs/{run}/why?at=1")[0] == 400
    assert site.get_json(f"/api/runs/{run}/why?at=soon")[0] == 400
    assert site.get_json(f"/api/runs/{run + 1}/why")[0] == 404
    _, found = site.get_json(f"/api/runs/{run}/totals")
    assert (found["results"], found["in_time_share"]) == (300, 0.96)
    assert found["latency_mean_s"] == pytest.approx(0.95)
    assert (found["executors_most"], found["changes"]) == (2, 3)
    assert found["executor_hours"] == pytest.approx(3 * 5 * 2 / 3600)
