"""Take the pictures of the page that the documentation shows, from a history.

Example: .venv/bin/python scripts/page_pictures.py runs/demo/history.sqlite docs --until 70
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from penstock.control.history.store import HistoryStore
from penstock.dashboard.server import Dashboard

PICTURES = {
    "page-light.png": {"viewport": {"width": 1280, "height": 1180}, "color_scheme": "light"},
    "page-dark.png": {"viewport": {"width": 1280, "height": 1180}, "color_scheme": "dark"},
    "page-phone.png": {"viewport": {"width": 390, "height": 1180}, "color_scheme": "light"},
}


def main() -> None:
    """Open the newest run of a history, up to some second of it, in each look."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("history")
    parser.add_argument("out", type=Path)
    parser.add_argument("--until", help="seconds after the run's start")
    given = parser.parse_args()
    with (
        HistoryStore(given.history, create=False) as store,
        Dashboard(store) as site,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, look in PICTURES.items():
            with browser.new_context(**look) as session:  # type: ignore[arg-type]
                page = session.new_page()
                page.goto(site.url)
                page.wait_for_selector(".tile")
                if given.until:
                    page.fill("#to", given.until)
                    page.click("#apply")
                    page.wait_for_selector("#status >> text=a past span")
                page.screenshot(path=given.out / name)
        browser.close()


if __name__ == "__main__":
    main()
