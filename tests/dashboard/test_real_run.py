"""The page beside a real run on Spark: its numbers are the history's, live and afterwards."""

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, expect

from dashboard.browser import WAIT_MS, chromium, held, needs_chromium, opened, values
from penstock.control.history.store import HistoryStore
from penstock.dashboard.series import columns
from penstock.dashboard.server import Dashboard

pytestmark = [pytest.mark.spark, needs_chromium]
ROOT = Path(__file__).parents[2]
PENSTOCK = Path(sys.executable).with_name("penstock")
WORDS = (
    "run", "speeds.py:road", "--dashboard", "--port", "0", "--history", "h.sqlite", "--period",
    "1s", "--key-groups", "2", "--shadow", "ds2",
)  # fmt: skip


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The README's topology with its page, and where that is."""
    shutil.copy(ROOT / "examples/speeds.py", folder)
    started = subprocess.Popen(
        [PENSTOCK, *WORDS], cwd=folder, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        assert started.stderr is not None
        for line in started.stderr:
            if found := re.match(r"page: (http://127\.0\.0\.1:\d+/#token=\S+)", line):
                yield started, found[1]
                break
        else:
            pytest.fail(f"no page was told; exit code {started.wait(timeout=60)}")
    finally:
        started.kill()
        started.communicate(timeout=60)


def agree(page: Page, store: HistoryStore) -> int:
    """Every number in the page's table is the one in the history; how many periods it has."""
    observed = {o.at_s: o for o in store.read_observations(store.latest_run())}
    rows = page.eval_on_selector_all(
        "#numbers tbody tr",
        """rows => rows.map(row => [row.dataset.at, [...row.querySelectorAll("td[data-key]")].map(
             cell => [cell.dataset.key, cell.firstChild.value])])""",
    )
    for at_s, cells in rows:
        expected = columns([observed[float(at_s)]])
        for key, shown in cells:
            (value,) = expected[key]
            assert (float(shown) if shown else None) == held(value), (at_s, key)
    return len(rows)


@pytest.mark.long
def test_the_numbers_on_the_page_are_those_of_the_run(tmp_path: Path) -> None:
    with chromium() as browser, running(tmp_path) as (started, url):
        with opened(browser, url) as page:
            page.wait_for_selector(
                "#numbers tbody tr:nth-child(4)", state="attached", timeout=WAIT_MS
            )
            expect(page.locator(".pill")).to_have_text("live")
            with HistoryStore(str(tmp_path / "h.sqlite"), create=False) as store:
                assert agree(page, store) >= 4
            page.click("#hold")
            expect(page.locator("#hold")).to_have_text("Let it act again")
            until_held(tmp_path / "h.sqlite")
        started.send_signal(signal.SIGINT)  # the rest of the run would show nothing more
        assert started.stderr is not None
        started.stderr.read()
        assert started.wait(timeout=120) == 130
        afterwards(browser, tmp_path)


def until_held(history: Path) -> None:
    """Until a decision was made that is not carried out."""
    deadline = time.monotonic() + WAIT_MS / 1000
    with HistoryStore(str(history), create=False) as store:
        while not any(one.dry_run for one in store.read_decisions(store.latest_run())):
            assert time.monotonic() < deadline, "nothing was decided while it was held"
            time.sleep(0.2)


def afterwards(browser: Browser, folder: Path) -> None:
    """The same history once the run is over, as `penstock dashboard` opens it."""
    with HistoryStore(str(folder / "h.sqlite"), create=False) as store:
        run = store.latest_run()
        observed, decided = store.read_observations(run), store.read_decisions(run)
        assert decided[0].dry_run is False
        assert any(d.dry_run for d in decided)  # since the page asked for it
        with Dashboard(store) as site, opened(browser, site.url) as page:
            expect(page.locator(".pill")).to_have_text("ended")
            assert agree(page, store) == len(observed)
            last = observed[-1]
            assert values(page, "[data-figure=rate] data") == [held(last.arrival_rate_per_s)]
            assert values(page, "[data-figure=lag] data") == [held(last.backlog_rows)]
            for component in last.components:
                shown = values(page, f"[data-component={component.name}] data")
                assert shown[0] == component.parallelism
                assert shown[2] == held(component.service_time_s)
                groups = component.key_groups
                if groups is not None:
                    cells = page.locator("#groups .cell")
                    assert cells.count() >= len(groups.load_s)
            for name in ("reports", "moving", "speeds", "out"):
                assert name in page.inner_text("#topology")
            page.check("#calm")
            kinds = "#decisions [data-kind=decision]"
            assert page.locator(kinds).count() == len(decided)
            first = page.inner_text(f"{kinds} >> nth=-1")
            assert all(reason in first for reason in decided[0].decision.reasons)
