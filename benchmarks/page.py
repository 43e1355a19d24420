"""How heavy is the page, how soon does it paint and answer a keystroke, and does it scroll smoothly?

python -m benchmarks.page
python -m benchmarks.page --memories 10000

Chromium without a screen or GPU, on the sample memories with the real models; no result is cached. First paint: new
visits, of a browser that has nothing yet and of one that has been here. Keystrokes: questions are typed, and each time
is from the key to the first frame that has the results of the text with that key, by hits that are not reranked; the
last one of a question is also timed until the full search is shown. Scrolling: the timeline of many memories, turned
by the wheel from the newest on; a frame of a screen with 60 Hz takes 16.7 ms. Needs `chromium`, and `playwright`.
"""

from __future__ import annotations

import gzip
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

import nacre
from benchmarks.common import report
from benchmarks.common.timing import percentile
from benchmarks.serving import server
from nacre.cli.demo import SAMPLES
from nacre.serialization import decode

VISITS = 20
KEY_MS = 120  # between two keystrokes
MEMORIES = 100_000
TURNS = 300  # of the wheel
QUESTIONS = (
    "Why do customers get charged twice?",
    "Who is on call when Henrik is away?",
    "How long is a bench held for a payment?",
    "What does a migration do when a table is locked?",
    "withRetry ns:patterns",
)
# Notes when a key goes down, and the first frame after results of the field's text are shown.
KEYSTROKES = """() => {
  window.taken = {typed: [], full: []};
  const field = document.querySelector("[data-search]");
  let began = 0, asked = "", full = false;
  field.addEventListener("keydown", () => { began = performance.now(); });
  field.addEventListener("input", () => { asked = field.value; full = false; waiting = true; });
  let waiting = false;
  const fetched = window.fetch;
  window.fetch = async (...given) => {
    const answer = await fetched(...given);
    if (String(given[0]).includes("/v1/search")) {
      const body = JSON.parse(given[1].body);
      const is = {query: body.query, fast: body.rerank === false, began};
      const json = answer.json.bind(answer);
      answer.json = async () => {
        const value = await json();
        setTimeout(() => requestAnimationFrame(() => setTimeout(() => {
          if (is.query !== field.value.trim()) return;
          if (waiting) { window.taken.typed.push(performance.now() - is.began); waiting = false; }
          if (!is.fast && !full) { window.taken.full.push(performance.now() - is.began); full = true; }
        })));
        return value;
      };
    }
    return answer;
  };
}"""
# Counts the milliseconds between frames until `window.frames` is read.
FRAMES = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const frame = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


def main() -> None:
    parser = report.parser(__doc__, "page")
    parser.add_argument("--visits", type=int, default=VISITS, help="visits of each kind (default: %(default)s)")
    parser.add_argument("--memories", type=int, default=MEMORIES, help="memories to scroll (default: %(default)s)")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium is missing: install it first, as with `apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        with _served_samples() as url:
            paint = [_visits(browser, url, options.visits, known) for known in (False, True)]
            keys = _keystrokes(browser, url)
        with _served_many(options.memories) as url:
            scrolled = _scrolled(browser, url, options.memories)
        browser.close()
    report.write(
        options.name,
        {"Weight": [_weight()], "First paint, ms": paint, "Keystrokes, ms": [keys], "Scrolling": [scrolled]},
    )


@contextmanager
def _served_samples() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "samples.db"
        with nacre.open(store) as memory:
            lines = SAMPLES.read_text("utf-8").splitlines()
            memory.remember_many(map(decode.new_memory_line, lines, range(1, len(lines) + 1)))
        with server(store) as port:
            yield f"http://127.0.0.1:{port}"


@contextmanager
def _served_many(memories: int) -> Iterator[str]:
    """So many memories of three years, without vectors: the timeline needs none."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "many.db"
        words = [line.split()[1:9] for line in SAMPLES.read_text("utf-8").splitlines()]
        first = datetime(2024, 1, 1, tzinfo=UTC)
        step = timedelta(days=3 * 365) / memories
        new = (
            nacre.NewMemory(text=f"note {at}: {' '.join(words[at % len(words)])}", created=first + at * step)
            for at in range(memories)
        )
        with nacre.open(store, embedder="none") as memory:
            memory.remember_many(new)
        with server(store, "--embedder", "none") as port:
            yield f"http://127.0.0.1:{port}"


def _weight() -> dict[str, object]:
    """All files of the page, as they are sent."""
    folder = Path(str(files("nacre.http_api") / "ui"))
    bodies = [each.read_bytes() for each in folder.rglob("*") if each.suffix in (".html", ".js", ".css", ".svg")]
    return {
        "files": len(bodies),
        "kB": round(sum(map(len, bodies)) / 1000),
        "kB compressed": round(sum(len(gzip.compress(each, 9)) for each in bodies) / 1000),
    }


def _visits(browser: Browser, url: str, visits: int, known: bool) -> dict[str, object]:
    painted: list[float] = []
    ready: list[float] = []
    sent: list[float] = []
    context = browser.new_context()
    for number in range(visits + known):
        if not known:
            context.close()
            context = browser.new_context()
        page = context.new_page()
        page.goto(url)
        page.get_by_text("Latest memories").wait_for()
        if number >= known:  # what is measured of the first one is the other row
            paint, shown, size = page.evaluate(
                """() => [performance.getEntriesByName("first-contentful-paint")[0].startTime, performance.now(),
                  performance.getEntries().reduce((sum, each) => sum + (each.transferSize ?? 0), 0)]"""
            )
            painted.append(paint)
            ready.append(shown)
            sent.append(size)
        page.close()
    context.close()
    return {
        "visit": "again" if known else "first",
        "first paint p50": round(statistics.median(painted)),
        "p95": round(percentile(painted, 95)),
        "memories shown p50": round(statistics.median(ready)),
        "kB sent, with the first answers": round(statistics.median(sent) / 1000),
    }


def _keystrokes(browser: Browser, url: str) -> dict[str, object]:
    page = browser.new_page()
    page.goto(url)
    page.get_by_text("Latest memories").wait_for()
    page.evaluate(KEYSTROKES)
    for question in QUESTIONS:
        page.get_by_label("Search memories").fill("")
        page.get_by_label("Search memories").press_sequentially(question, delay=KEY_MS)
        page.wait_for_timeout(1500)
    taken = page.evaluate("window.taken")
    page.close()
    typed, full = sorted(taken["typed"]), sorted(taken["full"])
    return {
        "keystrokes": sum(map(len, QUESTIONS)),
        "with results of their own": len(typed),
        "p50": round(statistics.median(typed)),
        "p95": round(percentile(typed, 95)),
        "reranked, after a rest of 400 ms, p50": round(statistics.median(full)),
    }


def _scrolled(browser: Browser, url: str, memories: int) -> dict[str, object]:
    page: Page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{url}/#/timeline")
    page.get_by_text(f"{memories:,} memories").wait_for()
    page.mouse.move(600, 500)
    nodes = 0
    page.evaluate(FRAMES)
    for _ in range(TURNS):
        page.mouse.wheel(0, 400)
        page.wait_for_timeout(16)
        nodes = max(nodes, page.evaluate("document.querySelectorAll('*').length"))
    frames: list[Any] = sorted(page.evaluate("window.frames_ms.slice(1)"))
    page.close()
    return {
        "memories": memories,
        "frames": len(frames),
        "ms a frame, p50": round(statistics.median(frames), 1),
        "p95": round(percentile(frames, 95), 1),
        "p99": round(percentile(frames, 99), 1),
        "over 50 ms": sum(each > 50 for each in frames),
        "elements at most": nodes,
    }


if __name__ == "__main__":
    main()
