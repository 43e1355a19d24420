"""The page on a phone, by keyboard alone, in the dark, with history, and for people who do not see it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser import AXE, PHONE, Visits, field, go, ranked, texts, toast, until, wide
from servers import ThreadServer

pytest_plugins = "page_fixtures"
pytestmark = pytest.mark.slow

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
SIZES = [pytest.param(DESKTOP, id="desktop"), pytest.param(PHONE, id="phone")]


def memory_of(server: ThreadServer) -> str:
    return server.root.search("HOLD_TTL_SECONDS median payment", mode="keyword", limit=1).hits[0].id


def views(server: ThreadServer) -> list[str]:
    fact, receipt = server.root.facts(limit=1)[0].fact, server.root.receipts(limit=1)[0]
    return [
        "search",
        "search?q=kiosk&ns=decisions",
        "search?q=kiosk&compare=1",
        f"memory/{memory_of(server)}",
        "timeline",
        "graph",
        "graph/Leipzig?list=relations",
        "facts",
        f"facts/{fact.id}?show=history",
        "facts?show=conflicts",
        "log",
        f"log/{receipt.id}",
        "health",
        "memory/1m7s5y9vd9jnec4f",
    ]


def settled(visits: Visits, page: Page, address: str) -> None:
    """Wait until a view has all that it shows."""
    go(page, address)
    expect(page.get_by_role("heading", level=1)).to_be_attached()
    expect(page.locator(".loading, .timeline-entry.waiting, .stage.busy")).to_have_count(0)
    if address.startswith("search"):
        expect(page.locator(".facet-value").first).to_be_attached()
    until(page, lambda: not visits.waiting)


# ---- a phone

# What can be used, and where a finger meets something else, or nothing. A panel lies over the rest until it is closed.
OUT_OF_REACH = """() => [...(document.querySelector("aside.panel") ?? document).querySelectorAll(
    "a[href], button, input, select, textarea, summary")]
  .filter((each) => each.checkVisibility() && !each.disabled && !each.closest(".skip, .visually-hidden"))
  .filter((each) => {
    each.scrollIntoView({ block: "center", inline: "center" });
    const size = (box) => box.width * box.height;
    const boxes = [each, ...each.children].flatMap((part) => [...part.getClientRects()]);
    const [box] = boxes.sort((one, other) => size(other) - size(one));
    if (!box || !size(box)) return true;
    const there = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return !(there && (each.contains(there) || there.contains(each) || there.closest("label")?.contains(each)));
  })
  .map((each) => each.outerHTML.slice(0, 120))"""


def test_every_view_fits_a_phone_and_every_control_is_in_reach(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, **PHONE)
    found: list[str] = []
    for address in views(demo):
        settled(visits, page, address)
        found += [f"{address}: {each}" for each in (*wide(page), *page.evaluate(OUT_OF_REACH))]
    assert not found, "\n".join(found)


def test_on_a_phone_filters_open_by_a_button_and_the_field_waits(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "search?q=kiosk", **PHONE)
    ranked(page)
    facet = page.get_by_role("complementary", name="Filters").get_by_role("button", name=re.compile("^decisions"))
    expect(facet).not_to_be_visible()
    page.get_by_role("button", name="Filters").tap()
    facet.tap()
    ranked(page)
    expect(page.locator(".hit").filter(has_not_text="decisions")).to_have_count(0)
    page.get_by_role("link", name="Facts").tap()
    page.locator(".fact-row:not(.head)").first.tap()
    page.get_by_role("complementary", name="Fact").get_by_role("button", name="Close").tap()
    expect(page.get_by_role("complementary", name="Fact")).to_have_count(0)


# ---- keys


def focus_shows(page: Page) -> None:
    """Something has the focus, and one sees it."""
    shown = page.evaluate(
        """() => {
          const each = document.activeElement;
          const around = (of) => {
            const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(of);
            return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
          };
          return each !== document.body && (around(each) || around(each.parentElement));
        }"""
    )
    assert shown, page.evaluate("document.activeElement.outerHTML.slice(0, 200)")


def test_everything_can_be_done_by_keys(own_demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(own_demo, "timeline")
    expect(page.locator("a.timeline-entry").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("/")
    expect(field(page)).to_be_focused()
    focus_shows(page)
    page.keyboard.type("bench payment")
    ranked(page)
    hits = page.locator(".hit-text")
    page.keyboard.press("ArrowDown")
    expect(hits.nth(0)).to_be_focused()
    focus_shows(page)
    page.keyboard.press("j")
    expect(hits.nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator(".memory-text")).to_contain_text("is now 420")
    page.keyboard.press("e")
    text = page.get_by_role("textbox", name="Text", exact=True)
    expect(text).to_be_focused()
    focus_shows(page)
    page.keyboard.type(" Mara knows why. e n ? / g t")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".memory-text")).to_contain_text("Mara knows why. e n ? / g t")
    expect(page.get_by_role("button", name="Edit", exact=True)).to_be_focused()
    expect(toast(page, "Saved.")).to_be_visible()
    page.keyboard.press("e")
    expect(text).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("form.edit")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(field(page)).to_have_value("bench payment")
    ranked(page)
    for keys, view in (("gt", "Timeline"), ("gg", "Graph"), ("gf", "Facts"), ("gl", "Recall log"), ("gh", "Health")):
        page.evaluate("document.activeElement.blur()")
        page.keyboard.type(keys)
        expect(page.get_by_role("heading", level=1)).to_have_text(view)


IN_DIALOG = "[document.body, ...document.querySelectorAll('dialog *')].includes(document.activeElement)"


def test_dialogs_keep_the_focus_and_give_it_back(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, f"memory/{memory_of(demo)}")
    expect(page.locator(".memory-text")).to_be_visible()
    opener = page.get_by_role("button", name="Add a fact")
    for key, title in (("?", "Keyboard"), ("n", "New memory"), ("Enter", "Add a fact")):
        opener.focus()
        page.keyboard.press(key)
        dialog = page.get_by_role("dialog", name=title)
        expect(dialog).to_be_visible()
        expect(dialog.locator(":focus")).to_have_count(1)
        for _ in range(20):
            page.keyboard.press("Tab")
            # From the last control the browser goes to its own, and then to the first.
            assert page.evaluate(IN_DIALOG), title
        page.keyboard.press("g")  # keys are not for the view behind it
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(opener).to_be_focused()
        focus_shows(page)


def test_keys_of_one_letter_can_be_switched_off(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "timeline")
    expect(page.locator("a.timeline-entry").first).to_be_visible()
    page.keyboard.press("?")
    page.get_by_label("Shortcuts of single keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.keyboard.press("?")
    page.reload()
    expect(page.locator("a.timeline-entry").first).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Keyboard and help").click()
    page.get_by_label("Shortcuts of single keys").check()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="New memory")).to_be_visible()


# ---- history


def test_back_forward_and_a_link_lead_to_the_same_state(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo)
    field(page).press_sequentially("kiosk")
    ranked(page)
    page.get_by_role("complementary", name="Filters").get_by_role("button", name=re.compile("^decisions")).click()
    ranked(page)
    expect(page.locator(".hit").filter(has_not_text="decisions")).to_have_count(0)
    narrowed = texts(page)
    page.locator(".hit-text").nth(1).click()
    expect(page.locator(".memory-text")).to_be_visible()
    read = page.locator(".memory-text").inner_text()
    page.go_back()
    ranked(page)
    expect(field(page)).to_have_value("kiosk")
    expect(page.locator(".active-filters")).to_contain_text("in decisions")
    assert texts(page) == narrowed
    page.go_back()
    expect(page.locator(".active-filters")).to_have_count(0)
    expect(field(page)).to_have_value("kiosk")
    page.go_back()
    expect(field(page)).to_have_value("")  # what was typed is one step
    page.go_forward()
    page.go_forward()
    page.go_forward()
    expect(page.locator(".memory-text")).to_have_text(read)
    address = page.url
    page.reload()
    expect(page.locator(".memory-text")).to_have_text(read)
    other = visits.open(demo, address.partition("#/")[2])
    expect(other.locator(".memory-text")).to_have_text(read)
    other = visits.open(demo, "search?q=kiosk&ns=decisions")
    ranked(other)
    assert texts(other) == narrowed


# ---- themes


def brightness(page: Page) -> float:
    script = "getComputedStyle(document.documentElement).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number)"
    colours: list[float] = page.evaluate(script)
    return sum(colours) / 3


def test_the_theme_is_that_of_the_system_until_one_is_chosen(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, color_scheme="dark")
    expect(page.locator(".hit").first).to_be_visible()
    assert brightness(page) < 64
    page.emulate_media(color_scheme="light")
    assert brightness(page) > 192
    page.get_by_role("button", name="System theme; change").click()
    page.get_by_role("button", name="Light theme; change").click()
    assert brightness(page) < 64
    page.reload()
    expect(page.get_by_role("button", name="Dark theme; change")).to_be_visible()
    assert brightness(page) < 64
    page.get_by_role("button", name="Dark theme; change").click()
    assert brightness(page) > 192


def test_nothing_moves_where_less_motion_is_asked_for(own_demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(own_demo, reduced_motion="reduce")
    expect(page.locator(".hit").first).to_be_visible()
    page.route("**/v1/search", lambda _: None)
    field(page).fill("kiosk")
    expect(page.locator(".spinner")).to_be_visible()
    go(page, "facts")
    page.locator(".fact-row:not(.head)").first.click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    moving = """() => document.getAnimations()
      .filter((each) => { const time = each.effect.getComputedTiming(); return time.duration * time.iterations > 50; })
      .map((each) => each.animationName ?? each.transitionProperty)"""
    assert page.evaluate(moving) == []


# ---- accessibility


def violations(page: Page, *rules: str) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    options: dict[str, Any] = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    if rules:
        options = {"runOnly": list(rules)}
    found = page.evaluate("async (options) => (await axe.run(document, options)).violations", options)
    return [
        f"{each['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:4]
    ]


@pytest.mark.skipif(not AXE.exists(), reason="accessibility is checked by axe-core: make .node/.installed")
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_serious_in_any_view(demo: ThreadServer, visits: Visits, size: dict[str, Any]) -> None:
    page = visits.open(demo, **size)
    found: dict[str, list[str]] = {}

    def check(name: str) -> None:
        page.emulate_media(color_scheme="light")
        found[name] = violations(page)
        page.emulate_media(color_scheme="dark")
        found[f"{name} in the dark"] = violations(page, "color-contrast")

    for address in views(demo):
        settled(visits, page, address)
        if "ns=" in address:
            page.locator(".reasons-bar").first.click()
        check(address)
    settled(visits, page, f"memory/{memory_of(demo)}")
    page.get_by_role("button", name="Edit", exact=True).click()
    check("edit")
    page.get_by_role("button", name="Cancel").click()
    for button, address in (
        ("Keyboard and help", "search"),
        ("New memory", "search"),
        ("Query help", "search"),
        ("Why not…?", "search?q=kiosk"),
        ("New token", "health"),
        ("Add a fact", f"memory/{memory_of(demo)}"),
        ("Purge…", f"memory/{memory_of(demo)}"),
    ):
        settled(visits, page, address)
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        check(button)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    wrong = {name: each for name, each in found.items() if each}
    assert not wrong, "\n".join(f"{name}: {each}" for name, several in wrong.items() for each in several)
