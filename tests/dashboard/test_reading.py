"""What a person does on the page: asks why, jumps, compares, saves, and all of it by keyboard."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, expect

from dashboard.axe import axe_source
from dashboard.browser import chromium, needs_chromium, opened, values
from dashboard.histories import RUN, START_S, make, period
from penstock.control.history.store import HistoryStore
from penstock.dashboard.server import Dashboard

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def two_runs(folder: Path) -> HistoryStore:
    """A run of five periods, and one of three that began an hour earlier and is done."""
    store, _ = make(folder, periods=5)
    other = store.begin(replace(RUN, policy="drs", started_at_s=START_S - 3600, share=0.9))
    for number in (1, 2, 3):
        seen = period(number)
        other.observed(replace(seen, at_s=seen.at_s - 3600, nodes=seen.nodes[:1]))
    other.end(START_S - 3500)
    return store


def test_why_not_more_or_fewer_is_answered_where_it_is_asked(
    browser: Browser, tmp_path: Path
) -> None:
    store, run = make(tmp_path, periods=4)
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        button = page.locator("[data-why]").first
        expect(button).to_have_attribute("aria-expanded", "false")
        button.click()
        # Of the 1 to 4 executors of 2 slots that may be had; 2 were decided and 3 wanted.
        rows = page.locator(".why tbody tr")
        expect(rows).to_have_count(4)
        assert page.locator(".why tr.chosen-row").get_attribute("data-executors") == "2"
        assert "wanted by incremental, held back: step: 2 -> 6" in rows.nth(2).inner_text()
        run.observed(period(5))
        run.flush()
        expect(page.locator("[data-figure=rate] data")).to_have_attribute("value", "105.5")
        expect(rows).to_have_count(4)  # what is open stays open while new periods come in
        page.locator("[data-why][aria-expanded=true]").click()
        expect(page.locator(".why")).to_have_count(0)


def test_a_chart_leads_to_the_decision_by_mouse_and_by_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    store, _ = make(tmp_path, periods=5)
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        chart = page.locator("#chart-latency svg.chart")
        chart.focus()
        for key in ("End", "ArrowLeft", "ArrowLeft"):
            page.keyboard.press(key)
        assert "mean 1.08 s" in page.inner_text("#chart-latency .readout")
        page.keyboard.press("Enter")
        focused = page.locator("#decisions li[data-kind=decision]:focus")
        expect(focused).to_have_attribute("data-at", str(int(START_S + 15)))
        expect(focused.locator(".why tbody tr")).to_have_count(4)
        box = chart.bounding_box()
        assert box is not None
        chart.click(position={"x": box["width"] - 12, "y": 60})
        expect(focused).to_have_attribute("data-at", str(int(START_S + 25)))


def test_two_runs_are_drawn_from_one_start_with_their_totals(
    browser: Browser, tmp_path: Path
) -> None:
    with two_runs(tmp_path) as store, Dashboard(store) as site, opened(browser, site.url) as page:
        page.select_option("#run", "1")
        expect(page.locator("#numbers tbody tr")).to_have_count(5)
        page.select_option("#compare", "2")
        expect(page.locator("#compared tbody tr")).not_to_have_count(0)
        assert values(page, "[data-total=executors_most] data") == [2.0, 1.0]
        assert values(page, "[data-total=results] data") == [500.0, 300.0]
        assert page.locator("#chart-rate path.other").count() == 1
        # Each promised its own share.
        assert {"99%", "the other run, 90%"} <= set(
            page.locator("#chart-latency .keys .key").all_inner_texts()
        )
        chart = page.locator("#chart-executors svg.chart")
        chart.focus()
        page.keyboard.press("Home")
        assert "there 2" in page.inner_text("#chart-executors .readout")
        assert "the other run 1" in page.inner_text("#chart-executors .readout")
        page.select_option("#compare", "")
        expect(page.locator("#compared")).to_be_hidden()
        assert page.locator("path.other").count() == 0


def saved(page: Page, chart: str, form: str) -> str:
    with page.expect_download() as waiting:
        page.click(f"#{chart} [data-form={form}]")
    assert waiting.value.suggested_filename.endswith(f".{form}")
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def saved_rows(page: Page, chart: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(saved(page, chart, "csv"))))


def test_the_data_of_a_chart_is_saved_as_csv(browser: Browser, tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        rows = saved_rows(page, "chart-latency")
        assert [float(row["unix_s"]) for row in rows][:3] == [START_S + 5 * n for n in (1, 2, 3)]
        assert [row["mean"] for row in rows[:3]] == ["0.825", "0.95", "1.075"]
        assert {row["bound"] for row in rows} == {"2"}
        assert rows[0]["time"] == "2025-06-15T15:06:45.000Z"
        foreseen = {row["unix_s"]: row["foreseen"] for row in saved_rows(page, "chart-rate")}
        assert foreseen[str(int(START_S + 25))] == "123.25"  # at the time it was foreseen for
        shadows = saved_rows(page, "chart-shadows")
        assert {row["ds2"] for row in shadows} == {"4"}


def test_the_picture_of_a_chart_stands_by_itself(browser: Browser, tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    with store, Dashboard(store) as site, opened(browser, site.url) as page:
        text = saved(page, "chart-latency", "svg")
    drawn = ElementTree.fromstring(text)  # well-formed, with its name space
    parts = [part.attrib for part in drawn.iter("{http://www.w3.org/2000/svg}path")]
    assert len(parts) == 3
    assert {part["stroke"] for part in parts}.isdisjoint({"", "none"})
    assert {part["fill"] for part in parts} == {"none"}
    words = [part.text for part in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == "Latency"
    assert {"mean", "99%", "worst", "bound"} <= set(words)


def test_times_are_those_of_the_viewers_zone(browser: Browser, tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    zones = {"Asia/Tokyo": "00:06:50", "America/New_York": "11:06:50", "UTC": "15:06:50"}
    with store, Dashboard(store) as site:
        for zone, clock in zones.items():
            with opened(browser, site.url, timezone_id=zone) as page:
                page.locator("#chart-rate svg.chart").focus()
                page.keyboard.press("End")
                page.keyboard.press("ArrowLeft")
                assert page.inner_text("#chart-rate .readout").startswith(clock)


# What is dark differs in its colours alone.
@pytest.mark.parametrize(
    ("colours", "which"), [("light", "{}"), ("dark", "{runOnly: ['color-contrast']}")]
)
def test_axe_finds_nothing_to_stumble_over(
    browser: Browser, tmp_path: Path, request: pytest.FixtureRequest, colours: Any, which: str
) -> None:
    cache = request.config.cache
    assert cache is not None
    source = axe_source(cache.mkdir("axe"))
    with (
        two_runs(tmp_path) as store,
        Dashboard(store) as site,
        opened(browser, site.url, color_scheme=colours) as page,
    ):
        page.select_option("#run", "1")
        page.select_option("#compare", "2")
        page.locator("[data-why]").first.click()
        expect(page.locator(".why tbody tr")).to_have_count(4)
        page.click("#numbers summary")
        page.evaluate(source)
        found = page.evaluate(f"axe.run({which}).then((all) => all.violations)")
        stumbles = [
            f"{one['impact']} {one['id']}: {node['target']} {node['failureSummary']}"
            for one in found
            for node in one["nodes"][:3]
        ]
        assert stumbles == []
