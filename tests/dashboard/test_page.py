"""The page in a real browser, over a history whose every figure is known."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, expect

from contract.fakes import observation
from dashboard.browser import chromium, needs_chromium, opened, values
from dashboard.histories import MARKUP, RUN, START_S, decision, make, period, write
from penstock.control.act_costs import ActCosts
from penstock.control.history.store import HistoryStore
from penstock.dashboard.server import Dashboard
from penstock.model.observation import ComponentObservation, NodeObservation

pytestmark = needs_chromium
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def test_the_page_shows_the_figures_and_text_stays_text(browser: Browser, tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        figures = {
            "rate": 103.5, "forecast": 123.25, "quantile": 2.125, "in-time": 0.96, "lag": 30.0,
            "executors": 2.0, "load": 0.25,
        }  # fmt: skip
        for name, value in figures.items():
            assert values(page, f"[data-figure={name}] data") == [value]
        assert page.inner_text("[data-figure=quantile] .name").lower() == "latency, 99%"
        assert page.inner_text("[data-figure=quantile] .value") == "2.13 s"
        assert page.inner_text("[data-figure=quantile] .more") == "bound 2 s"
        # What 95% of the results kept is within the bound; what was promised is not.
        assert page.locator("[data-figure=quantile].late").count() == 1
        assert page.locator("#chart-latency .keys .key").all_inner_texts() == [
            "mean", "99%", "worst", "bound", "99% expected",
        ]  # fmt: skip
        assert "99% 2.13 s" in page.inner_text("#chart-latency .readout")
        assert values(page, "[data-executor='1'] data") == [2.0, 0.4]
        assert "leaving" in page.inner_text("[data-executor='2']")
        assert values(page, "[data-component=speeds] data") == [4.0, 102.5, 0.0125]
        assert page.locator("#groups [data-node='1'] .cell").all_inner_texts() == ["0", "2"]
        assert page.locator("#groups [data-node='2'] .cell").all_inner_texts() == ["1"]
        decision = page.inner_text("#decisions [data-kind=decision] >> nth=0")
        for part in ("processors 2 → 4", "suggested 6", "cannot be met", "step: 2 -> 6", MARKUP):
            assert part in decision
        assert "1 key groups move" in page.inner_text("#decisions [data-kind=allocation] >> nth=0")
        for chart in ("rate", "latency", "lag", "executors", "shadows"):
            assert page.locator(f"#chart-{chart} path.line").count() >= 1
        assert "ds2 4" in page.inner_text("#chart-shadows .readout")
        assert "would: processors 2 → 4" in page.inner_text("#shadows li >> nth=0")
        assert MARKUP in page.inner_text("#topology")
        assert page.locator("main img, main b b, #decisions b").count() == 0
        assert values(page, "[data-lane=lane-0] data") == [7.0, 95.5, 12.0]
        assert MARKUP in page.inner_text("#lanes")
        routing = page.inner_text("#decisions [data-kind=routing] >> nth=0")
        assert "reports: routes by table 7" in routing
        assert "load ratio 0.25" in routing
        admission = page.inner_text("#decisions [data-kind=admission] >> nth=0")
        assert "reports: lanes 1 → 2, 3 streams redirected" in admission
        assert "lane-0 is full" in admission


def test_a_run_of_before_the_share_was_measured_shows_what_it_has(
    browser: Browser, tmp_path: Path
) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store, Dashboard(store) as site:
        run = store.begin(replace(RUN, share=None))
        seen = period(1)
        assert seen.latency is not None
        run.observed(replace(seen, latency=replace(seen.latency, share_s=math.nan)))
        run.decided(decision(1))
        run.flush()
        with opened(browser, site.url) as page:
            assert page.inner_text("[data-figure=quantile] .name").lower() == "latency, 95%"
            assert values(page, "[data-figure=quantile] data") == [1.625]
            assert page.locator("[data-figure=quantile].kept").count() == 1
            readout = page.inner_text("#chart-latency .readout")
            assert "mean 825 ms, 95% 1.63 s, worst 3.5 s, bound 2 s" in readout
            assert page.locator("#numbers th").all_text_contents()[4] == "95% s"


def test_new_periods_and_moves_come_without_asking(browser: Browser, tmp_path: Path) -> None:
    store, run = make(tmp_path)
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        write(run, 4, homes=("2", "2", "1"))
        page.wait_for_selector("#groups .cell.moved")
        assert values(page, "[data-figure=rate] data") == [104.5]
        assert page.locator("#groups [data-node='2'] .cell").all_inner_texts() == ["0", "1"]
        assert "group 0: 1 → 2" in page.inner_text("#groups .moves")
        run.end(1_750_000_100.0)
        page.wait_for_selector(".pill.ended")
        # Its stream may have been asked for after it had drawn; nothing else is.
        assert [url for url in asked if "/events?" not in url] == []
        assert len(asked) <= 1


def test_what_an_idle_period_did_not_measure_is_left_empty(
    browser: Browser, tmp_path: Path
) -> None:
    store, run = make(tmp_path)
    idle = ComponentObservation("speeds", ("speeds",), math.nan, math.nan, 4, 0.0, tasks=0)
    run.observed(replace(period(4), components=(idle,), latency=None, batches=None))
    run.flush()
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        assert values(page, "[data-component=speeds] data") == [4.0, None, None]
        assert values(page, "[data-figure=rate] data") == [104.5]
        assert values(page, "[data-figure=quantile] data") == [2.125]  # the last one measured
        assert "NaN" not in page.inner_text("body")


def test_a_span_of_time_and_a_component_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    store, _ = make(tmp_path, periods=6)
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        page.fill("#from", "9")
        page.fill("#to", "16")
        page.click("#apply")
        expect(page.locator("#numbers tbody tr")).to_have_count(2)
        assert values(page, "#numbers [data-key=backlog_rows] data") == [30.0, 20.0]
        assert page.locator("#decisions [data-kind=decision]").count() == 2
        assert page.inner_text("#status") == "a past span"
        page.select_option("#range", "")
        expect(page.locator("#numbers tbody tr")).to_have_count(6)
        page.click("[data-component=speeds]")
        assert page.input_value("#component") == "speeds"
        assert page.locator("#chart-component-cost path.line").count() == 1
        page.select_option("#component", MARKUP)
        assert page.locator("#groups").is_hidden()


def test_it_is_light_and_dark_by_the_system_and_by_hand(browser: Browser, tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    ground = "getComputedStyle(document.body).backgroundColor"
    with store, Dashboard(store) as site:
        with opened(browser, site.url, color_scheme="dark") as page:
            assert brightness(page.evaluate(ground)) < 60
            page.click("#theme")
            assert brightness(page.evaluate(ground)) > 200
            page.reload()
            page.wait_for_selector(".tile")
            assert brightness(page.evaluate(ground)) > 200
        with opened(browser, site.url, color_scheme="light") as page:
            assert brightness(page.evaluate(ground)) > 200


def brightness(colour: str) -> float:
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def test_a_phone_shows_it_without_scrolling_sideways(browser: Browser, tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    with store, Dashboard(store) as site, opened(browser, site.url, **PHONE) as page:
        page.click("#numbers summary")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        charts = page.locator(".charts figure:visible").all()
        lefts = {chart.bounding_box()["x"] for chart in charts}  # type: ignore[index]
        assert len(charts) == 4
        assert len(lefts) == 1


def test_acting_from_the_page_needs_the_address_that_was_told(
    browser: Browser, tmp_path: Path
) -> None:
    store, _ = make(tmp_path)
    received: list[object] = []

    def hold(wanted: object) -> dict[str, bool]:
        received.append(wanted)
        return {"on": True}

    with store, Dashboard(store, token="a-good-token", acts={"advice-only": hold}) as site:
        with opened(browser, site.url.split("#")[0]) as page:
            assert page.locator("#hold").is_hidden()
        with opened(browser, site.url) as page:
            assert "token" not in page.url
            page.click("#hold")
            page.wait_for_selector("#hold >> text=Let it act again")
    assert received == [{"on": True}]


def test_a_private_page_is_read_with_its_address_alone(browser: Browser, tmp_path: Path) -> None:
    store, run = make(tmp_path)
    with store, Dashboard(store, token="a-good-token", private=True) as site:
        with opened(browser, site.url) as page:
            write(run, 4)
            page.wait_for_selector("[data-figure=rate] data[value='104.5']")
        stranger = browser.new_context().new_page()
        stranger.goto(site.url.split("#")[0])
        expect(stranger.locator("#trouble")).to_have_text("this page needs its token to be read.")
        stranger.context.close()


def test_a_history_without_a_run_waits_for_one(browser: Browser, tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store, Dashboard(store) as site:
        page = browser.new_page()
        page.goto(site.url)
        page.wait_for_selector("#status >> text=no run yet")
        write(store.begin(RUN), 1)
        page.wait_for_selector("[data-figure=rate] data[value='101.5']")
        page.close()


def test_what_was_foretold_is_drawn_beside_what_came(browser: Browser, tmp_path: Path) -> None:
    store, run = make(tmp_path, periods=1)
    numbers = {
        "ahead_s": 1.0, "load_per_s": 140.0, "load_upper_per_s": 165.0, "latency_expected_s": 4.25,
    }  # fmt: skip
    made = decision(4)
    run.observed(period(4))
    run.decided(replace(made, decision=replace(made.decision, numbers=numbers)))
    costs = ActCosts(slots=2, policy="promise")
    costs.asked(START_S, 2, 6)
    costs.saw(observation(START_S + 5, nodes=(NodeObservation("1", 6, 1.0),)))
    (paid,) = costs.saw(observation(START_S + 10, nodes=(NodeObservation("1", 6, 1.0),)))
    run.room_decided(paid)
    run.flush()
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        assert "foreseen 140, at most 165" in page.inner_text("#chart-rate .readout")
        assert "99% expected 4.25 s" in page.inner_text("#chart-latency .readout")
        price = page.inner_text("#decisions [data-kind=price] >> nth=0")
        assert "executors 1 -> 3 cost 10 executor-seconds and a pause of 0 s" in price
        assert "40 and 0 s were foretold" in price


def test_a_host_lists_its_topologies_by_community(browser: Browser, tmp_path: Path) -> None:
    store, run = make(tmp_path)
    road = {
        "name": "road", "state": "running", "why": "", "community": "city", "member": "ada",
        "run": run.run_id, "max_latency_s": 2.0, "share": 0.99, "results": 70,
        "in_time_share": 0.5, "processors": 1, "processors_wanted": 3, "missed_by": "3.00 s",
    }  # fmt: skip
    audit = {"name": MARKUP, "state": "failed", "why": MARKUP, "community": "", "member": "",
             "max_latency_s": None, "share": None}  # fmt: skip
    told: list[object] = []
    city = {"name": "city", "least": 1, "most": 4, "weight": 2.0, "topologies": [road]}
    site = Dashboard(
        store, 0, "a-token-for-tests", {"stop": lambda what: told.append(what) or {}}, True,
        lambda: {"communities": [city, {"name": "", "topologies": [audit]}]},
    )  # fmt: skip
    with store, site, opened(browser, site.url, "[data-community]") as page:
        assert page.inner_text("[data-community=city] caption") == (
            "city, 1 to 4 processors, weight 2"
        )  # fmt: skip
        shown = page.inner_text("[data-topology=road]")
        for part in ("by ada", "running", "99.0% within 2 s", "3.00 s expected", "1 of 3 wanted"):
            assert part in shown
        assert values(page, "[data-topology=road] data") == [0.5, 70.0]
        assert MARKUP in page.inner_text("[data-community='']")
        assert page.locator("main").is_hidden()
        with page.expect_response("**/api/acts/stop"):
            page.click("[aria-label='stop road']")
        expect(page.locator("#trouble")).to_be_hidden()
        page.click("[data-topology=road] .link")
        page.wait_for_selector(".tile")
        assert told == [{"name": "road"}]
        assert page.locator("#hosted").is_hidden()
        assert values(page, "[data-figure=rate] data") == [103.5]
        page.click("#all")
        page.wait_for_selector("[data-community]")
        assert page.locator("main").is_hidden()
