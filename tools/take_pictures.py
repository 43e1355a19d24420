"""Takes the pictures of the page that README.md and docs/server.md show, from the sample memories.

    python tools/take_pictures.py

They are written to docs/pictures. Needs chromium and the package `playwright`. To see more, give a folder: then all
views are taken, in light and dark, on a desktop and on a phone, to be looked at.

    python tools/take_pictures.py --all FOLDER
"""

from __future__ import annotations

import base64
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SIZES = {"desktop": (1280, 800), "phone": (390, 780)}
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
QUALITY = 82  # of WebP
QUESTION = "Why did we lower BOOKING_TIMEOUT_MS?"


def search(page: Page) -> None:
    page.get_by_label("Search memories").fill(QUESTION)
    page.get_by_text("fully ranked").wait_for()


def reasons(page: Page) -> None:
    search(page)
    page.locator(".hit [aria-expanded]").first.click()


def compared(page: Page) -> None:
    search(page)
    page.get_by_role("button", name="compare").click()


def why_not(page: Page) -> None:
    search(page)
    page.get_by_role("button", name="Why not").click()
    page.get_by_label("Which memory?").fill("kiosk redis")
    page.locator(".choice").first.click()
    page.locator(".why-verdict").wait_for()


def memory(page: Page) -> None:
    search(page)
    page.locator(".hit a").first.click()
    page.get_by_role("heading", name="History").wait_for()


def opened(view: str) -> Callable[[Page], None]:
    def show(page: Page) -> None:
        page.evaluate(f"location.hash = '#/{view}'")
        page.locator("h1").first.wait_for()

    return show


VIEWS: dict[str, Callable[[Page], None]] = {
    "first": lambda page: page.get_by_text("Latest memories").wait_for(),
    "search": search,
    "reasons": reasons,
    "compared": compared,
    "why-not": why_not,
    "memory": memory,
    "timeline": opened("timeline"),
    "graph": opened("graph"),
    "facts": opened("facts"),
    "conflicts": opened("facts?show=conflicts"),
    "log": opened("log"),
    "health": opened("health"),
}
SHOWN: tuple[tuple[str, str, Scheme], ...] = (
    ("reasons", "desktop", "light"),
    ("reasons", "desktop", "dark"),
    ("memory", "desktop", "light"),
    ("graph", "desktop", "light"),
    ("search", "phone", "dark"),
)


@contextmanager
def samples() -> Iterator[str]:
    """The address of the page of the samples, until the block ends."""
    command = [sys.executable, "-m", "nacre", "demo", "--ui"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if found := re.search(r"at (http://\S+)", line):
                    yield found[1]
                    break
        finally:
            process.send_signal(signal.SIGTERM)


def take(browser: Browser, url: str, view: str, size: str, scheme: Scheme) -> bytes:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-GB", timezone_id="UTC"
    )
    page = context.new_page()
    page.goto(url)
    VIEWS[view](page)
    page.wait_for_timeout(1500)  # what moves has come to rest
    protocol = context.new_cdp_session(page)
    shot = protocol.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    context.close()
    return base64.b64decode(shot["data"])


def main(arguments: list[str]) -> int:
    folder = Path(arguments[1]) if arguments[:1] == ["--all"] else PICTURES
    every = [(view, size, scheme) for view in VIEWS for size in SIZES for scheme in SCHEMES]
    chosen = every if arguments[:1] == ["--all"] else SHOWN
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is missing: install it first, as with `apt-get install chromium`", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with samples() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for view, size, scheme in chosen:
            path = folder / f"{view}-{size}-{scheme}.webp"
            path.write_bytes(take(browser, url, view, size, scheme))
            print(f"{path} {path.stat().st_size:,} bytes")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
