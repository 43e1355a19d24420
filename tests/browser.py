"""What the tests of the page share: a browser, pages of it that note whatever goes wrong, and what is seen on them."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    expect,
    sync_playwright,
)

from mcp_clients import ANSWER_SECONDS
from servers import Served, ThreadServer

Serve = Callable[..., ThreadServer]  # the fixture `serve`
NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "the page needs a browser to be tested: apt-get install chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
AXE = Path(__file__).parent.parent / ".node/node_modules/axe-core/axe.min.js"

expect.set_options(timeout=1_000 * ANSWER_SECONDS)


def executable() -> str | None:
    """A browser of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    path = executable()
    assert path is not None, MISSING
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Visits:
    """Pages of servers, each with a profile of its own. Whatever goes wrong in one is noted: errors, refused content,
    questions of the browser, requests to others. A test names what it expects to go wrong in `expected`."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.wrong: list[str] = []
        self.expected: list[str] = []  # regular expressions
        self.waiting: set[Request] = set()  # that have no answer yet, without those for changes

    def open(self, server: Served, address: str = "", **options: Any) -> Page:
        """A new profile, in which `address` of the server is shown: what follows the # of a URL."""
        return self.tab(self.profile(server, **options), server, address)

    def profile(self, server: Served, **options: Any) -> BrowserContext:
        context = self._browser.new_context(**{"locale": "en-GB", "timezone_id": "UTC", **options})
        context.set_default_timeout(1_000 * ANSWER_SECONDS)
        self._contexts.append(context)

        def console(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                self.wrong.append(f"{message.type}: {message.text}")

        def dialog(dialog: Dialog) -> None:
            self.wrong.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def request(request: Request) -> None:
            if not request.url.startswith((f"{server.url}/", "data:image/")):
                self.wrong.append(f"request: {request.url}")
            if "/v1/changes" not in request.url:
                self.waiting.add(request)

        context.on("console", console)
        context.on("weberror", lambda error: self.wrong.append(f"exception: {error.error}"))
        context.on("dialog", dialog)
        context.on("request", request)
        context.on("requestfinished", lambda each: self.waiting.discard(each))
        context.on("requestfailed", lambda each: self.waiting.discard(each))
        return context

    def tab(self, context: BrowserContext, server: Served, address: str = "") -> Page:
        page = context.new_page()
        page.goto(f"{server.url}/{address and f'#/{address}'}")
        return page

    def close(self) -> None:
        """Leave all pages. Nothing may have gone wrong that was not expected."""
        for each in self._contexts:
            each.close()
        self._contexts.clear()
        wrong = [each for each in self.wrong if not any(re.search(known, each) for known in self.expected)]
        self.wrong.clear()
        assert not wrong, wrong


def until(page: Page, true: Callable[[], object]) -> None:
    """Wait for what the browser brings about, while its events and requests are answered."""
    for _ in range(ANSWER_SECONDS * 50):
        if true():
            return
        page.wait_for_timeout(20)
    raise AssertionError("it does not happen")


def go(page: Page, address: str) -> None:
    """To another view, as a link does."""
    page.evaluate("address => { location.hash = `#/${address}`; }", address)


def field(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Search memories")


def ranked(page: Page) -> None:
    """Wait until every search that is shown has its final result."""
    expect(page.locator(".stage").first).to_be_visible()
    expect(page.locator(".stage.busy")).to_have_count(0)


def texts(of: Page | Locator) -> list[str]:
    """The texts of the memories in a list."""
    return of.locator(".hit-text").all_inner_texts()


def toast(page: Page, text: str) -> Locator:
    """A message at the edge of the page."""
    return page.locator(".toast", has_text=text)


def wide(page: Page) -> list[str]:
    """What makes the page wider than its window. What scrolls by itself does not."""
    found: list[str] = page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width && window.innerWidth <= width + 20) return [];
          const scrolls = (each) =>
            each && (getComputedStyle(each).overflowX !== "visible" || scrolls(each.parentElement));
          return [...document.body.querySelectorAll("*")]
            .filter((each) => each.getBoundingClientRect().right > width + 1 && !scrolls(each.parentElement))
            .map((each) => `${each.tagName} ${each.getAttribute("class")} ${each.getBoundingClientRect().right}`)
            .concat(`page ${document.documentElement.scrollWidth} of ${width}`);
        }"""
    )
    return found
