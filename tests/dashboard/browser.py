"""Debian's Chromium, headless, with ears for everything that goes wrong in it."""

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

WAIT_MS = 150_000  # until a run has begun, on a machine that does other things as well
expect.set_options(timeout=WAIT_MS)

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (apt-get install chromium)"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        # Without its sandbox, which needs what containers do not give; it sees our own page only.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, url: str, ready: str = ".tile", **context: Any) -> Iterator[Page]:
    """A page that has drawn; whatever it complained of by the end fails the test."""
    complaints: list[str] = []
    with browser.new_context(**context) as session:
        session.set_default_timeout(WAIT_MS)
        page = session.new_page()
        page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        outside = []
        page.on("request", lambda asked: outside.append(asked.url))
        page.goto(url)
        page.wait_for_selector(ready, timeout=WAIT_MS)
        yield page
        origin = url.split("#")[0]
        assert [asked for asked in outside if not asked.startswith(origin)] == []
    assert complaints == []


def values(page: Page, selector: str) -> list[float | None]:
    """The exact numbers behind what is shown."""
    found = page.eval_on_selector_all(selector, "all => all.map(one => one.value)")
    return [None if text == "" else float(text) for text in found]


def held(number: float) -> float | None:
    """What `values` finds where the page shows this number: nothing where nothing was measured."""
    return None if math.isnan(number) else number
