"""Take the pictures of the page that the documentation shows, from a history.

Example: python -m scripts.page_pictures runs/demo/history.sqlite docs
"""

import argparse
import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from playwright.sync_api import sync_playwright

from penstock.control.history.store import HistoryStore
from penstock.dashboard.server import Dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = {
    "page-light.png": {"viewport": {"width": 1280, "height": 1180}, "color_scheme": "light"},
    "page-phone.png": {"viewport": {"width": 390, "height": 1180}, "color_scheme": "light"},
}
MOVING = "page-moving.webp"  # small enough for a README: the upper part, half as wide
MOVING_LOOK = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"}
MOVING_WIDTH, FRAMES, FRAME_MS = 820, 16, 700


def main() -> None:
    """Show the newest run of a history in each look, and how it came about."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("history")
    parser.add_argument("out", type=Path)
    parser.add_argument("--until", type=float, help="seconds after the run's start")
    given = parser.parse_args()
    with (
        HistoryStore(given.history, create=False) as store,
        Dashboard(store) as site,
        sync_playwright() as driver,
    ):
        seen = store.read_observations(store.latest_run())
        whole_s = seen[-1].at_s - seen[0].at_s + seen[0].period_s
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, look in PICTURES.items():
            with browser.new_context(**look) as session:  # type: ignore[arg-type]
                page = session.new_page()
                page.goto(site.url)
                _show(page, given.until or whole_s)
                page.screenshot(path=given.out / name)
        with browser.new_context(**MOVING_LOOK) as session:  # type: ignore[arg-type]
            page = session.new_page()
            page.goto(site.url)
            _film(page, given.until or whole_s, given.out / MOVING)
        browser.close()


def _show(page: "Page", until_s: float) -> None:
    """The run up to a second of it."""
    page.wait_for_selector(".tile")
    page.fill("#to", f"{until_s:.0f}")
    page.click("#apply")
    page.wait_for_selector("#status >> text=a past span")


def _film(page: "Page", whole_s: float, file: Path) -> None:
    frames = []
    for frame in range(1, FRAMES + 1):
        _show(page, max(15.0, whole_s * frame / FRAMES))
        page.wait_for_load_state("networkidle")
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        height = round(picture.height * MOVING_WIDTH / picture.width)
        frames.append(picture.resize((MOVING_WIDTH, height), Image.Resampling.LANCZOS))
    frames[0].save(
        file, save_all=True, append_images=frames[1:], loop=0, quality=60, method=6,
        duration=[FRAME_MS] * (FRAMES - 1) + [4 * FRAME_MS],
    )  # fmt: skip


if __name__ == "__main__":
    main()
