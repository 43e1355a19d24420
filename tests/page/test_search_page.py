"""Search on the page: what somebody who has never seen it types, clicks, brushes and asks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

import nacre
from browser import Serve, Visits, field, ranked, texts, toast, until
from nacre.cli import demo as samples
from nacre.embedders.minilm import MiniLM
from servers import ThreadServer, serving

pytest_plugins = "page_fixtures"
pytestmark = pytest.mark.slow

SEARCH = "**/v1/search"
QUERY = "bench payment"


def asked(page: Page) -> dict[str, list[str]]:
    """What the address of a search says."""
    return parse_qs(page.evaluate("location.hash").partition("?")[2])


def body(request: Request) -> dict[str, Any]:
    return request.post_data_json or {}


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("+", "").replace("×", "").replace(",", ""))


def histogram(page: Page) -> Locator:
    return page.get_by_role("group", name="Memories by month")


def test_an_empty_store_says_what_to_do_and_shows_the_first_memory(path: Path, serve: Serve, visits: Visits) -> None:
    server = serve(path)
    page = visits.open(server)
    expect(page.get_by_text("Nothing is remembered in this space yet")).to_be_visible()
    expect(page.locator(".empty")).to_contain_text("The + above adds a memory.")
    page.get_by_role("button", name="New memory").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Text").fill("The kiln is serviced each March.")
    dialog.get_by_label("Tags").fill("kiln, upkeep ,kiln")
    dialog.get_by_role("button", name="Remember").click()
    expect(dialog).to_have_count(0)
    expect(page.locator(".hit-text")).to_have_text(["The kiln is serviced each March."])
    toast(page, "Remembered.").get_by_role("button", name="Open").click()
    expect(page.locator(".memory-text")).to_have_text("The kiln is serviced each March.")
    (kept,) = server.root.timeline().entries
    assert kept.tags == ("kiln", "upkeep")


def test_the_first_visit_shows_the_latest_memories_and_queries_to_try(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo)
    expect(page).to_have_title("Search · Nacre")
    expect(field(page)).to_be_focused()
    expect(page.locator(".hit")).to_have_count(30)
    latest = [each.summary for each in demo.root.timeline(limit=30).entries]
    assert texts(page) == latest
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".hit")).to_have_count(90)
    page.locator(".tries").get_by_role("button", name="tag:").click()
    ranked(page)
    expect(field(page)).to_have_value("tag:incident")
    for each in page.locator(".hit").all():
        expect(each).to_contain_text("#incident")


def test_the_files_of_the_page_are_small(demo: ThreadServer, visits: Visits) -> None:
    context = visits.profile(demo)
    sizes: dict[str, int] = {}
    context.on(
        "requestfinished",
        lambda each: sizes.update({each.url: each.sizes()["responseBodySize"]}) if "/v1/" not in each.url else None,
    )
    page = visits.tab(context, demo)
    expect(page.locator(".hit").first).to_be_visible()
    for view in ("Timeline", "Graph", "Facts", "Log", "Health"):
        page.get_by_role("navigation").get_by_role("link", name=view).click()
        expect(page.get_by_role("heading", level=1, name=view)).to_be_visible()
    assert len(sizes) > 20
    assert sum(sizes.values()) < 200_000


def test_results_follow_what_is_typed_and_are_reranked_when_it_rests(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo)
    asked_for: list[dict[str, Any]] = []
    page.on("request", lambda each: asked_for.append(body(each)) if each.url.endswith("/v1/search") else None)
    field(page).press_sequentially("kiosk offline", delay=100)  # slower than searches begin, faster than a rest
    ranked(page)
    expect(page.locator(".hit-text").first).to_contain_text("kiosk", ignore_case=True)
    first = texts(page)
    fast = [each["query"] for each in asked_for if each.get("rerank") is False]
    full = [each["query"] for each in asked_for if "rerank" not in each]
    assert fast[-1] == full[-1] == "kiosk offline"
    assert len(full) < len(fast)
    # fast and full searches alike are no questions of an agent
    assert demo.root.receipts(limit=1)[0].session == "agent-2"
    field(page).fill("alembic migration lock")
    expect(page.locator(".hit-text").first).to_contain_text("migration")
    ranked(page)
    assert texts(page) != first
    assert asked(page) == {"q": ["alembic migration lock"]}
    expect(page).to_have_title("alembic migration lock · Nacre")
    field(page).press("Escape")
    expect(field(page)).to_have_value("")
    expect(page.get_by_role("heading", name="Latest memories")).to_be_visible()


def test_an_answer_to_an_older_query_or_an_earlier_stage_replaces_nothing(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo)
    held: list[Route] = []

    def answer(route: Route) -> None:
        asks = body(route.request)
        if asks["query"] == "kiosk" or asks.get("rerank") is False:
            held.append(route)
        else:
            route.continue_()

    page.route(SEARCH, answer)
    field(page).fill("kiosk")
    until(page, lambda: len(held) == 2)
    field(page).fill(QUERY)
    expect(page.locator(".hit-text").first).to_contain_text("HOLD_TTL_SECONDS")
    expect(page.locator(".stage")).to_have_text("fully ranked")
    until(page, lambda: len(held) == 3)
    before = texts(page)
    with page.expect_response(lambda each: each.request == held[2].request) as late:
        for each in held:
            each.continue_()
    late.value.finished()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(page.locator(".stage")).to_have_text("fully ranked")
    assert texts(page) == before


def test_the_help_of_the_query_language_gives_examples_to_try(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo)
    page.get_by_role("button", name="Query help").click()
    dialog = page.get_by_role("dialog", name="What a query may contain")
    expect(dialog.get_by_role("button", name="since:7d")).to_be_visible()
    dialog.get_by_role("button", name="redis OR postgres").click()
    expect(dialog).to_have_count(0)
    expect(field(page)).to_have_value("redis OR postgres")
    expect(field(page)).to_be_focused()
    ranked(page)
    assert all(re.search("redis|postgres", each, re.I) for each in page.locator(".hit").all_inner_texts())
    page.get_by_role("button", name="Query help").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Query help")).to_be_focused()


def test_facets_and_the_marks_of_hits_are_filters_that_can_be_taken_away(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "search?q=kiosk")
    facets = page.get_by_role("complementary", name="Filters")
    decisions = facets.get_by_role("button", name=re.compile("^decisions"))
    expect(decisions).to_contain_text(str(demo.root.facets("kiosk").namespaces["decisions"]))
    decisions.click()
    expect(decisions).to_have_attribute("aria-pressed", "true")
    ranked(page)
    assert asked(page) == {"q": ["kiosk"], "ns": ["decisions"]}
    hits = page.locator(".hit")
    expect(hits.filter(has_not_text="decisions")).to_have_count(0)
    tag = hits.first.locator(".meta-tag button").first
    name = tag.inner_text().removeprefix("#")
    tag.click()
    ranked(page)
    assert asked(page) == {"q": ["kiosk"], "ns": ["decisions"], "tag": [name]}
    expect(hits.filter(has_not_text=f"#{name}")).to_have_count(0)
    page.get_by_role("button", name="Remove the filter ns decisions").click()
    expect(page.locator(".active-filters .chip")).to_have_count(1)
    page.get_by_role("button", name="Clear all").click()
    expect(page.locator(".active-filters")).to_have_count(0)
    assert asked(page) == {"q": ["kiosk"]}
    expect(field(page)).to_have_value("kiosk")


def test_a_misspelt_word_is_corrected_by_a_click(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo)
    field(page).fill("webhok signature")
    meant = page.get_by_role("button", name="webhook signature")
    expect(page.locator(".note", has=meant)).to_contain_text("Did you mean")
    meant.click()
    expect(field(page)).to_have_value("webhook signature")
    expect(meant).to_have_count(0)
    ranked(page)
    expect(page.locator(".hit mark").first).to_be_visible()


def test_the_modes_are_chosen_or_compared_side_by_side(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, f"search?q={QUERY}")
    modes = page.get_by_role("group", name="Mode")
    modes.get_by_role("button", name="keyword").click()
    ranked(page)
    expect(page.get_by_role("list", name="Results, keyword")).to_be_visible()
    assert asked(page)["mode"] == ["keyword"]
    modes.get_by_role("button", name="compare").click()
    shown = {}
    for mode in ("hybrid", "keyword", "semantic"):
        column = page.get_by_role("region", name=mode)
        expect(column.locator(".stage")).to_have_text("fully ranked")
        shown[mode] = texts(column)
    found = {mode: demo.root.search(QUERY, mode=mode, limit=10) for mode in ("hybrid", "keyword", "semantic")}
    for mode, result in found.items():
        assert [each.strip("… ")[:30] for each in shown[mode]] == [hit.snippet.text[:30] for hit in result.hits], mode
    assert shown["keyword"] != shown["semantic"]
    boxes = [page.get_by_role("region", name=mode).bounding_box() for mode in shown]
    assert len({box["y"] for box in boxes if box}) == 1, "they are not side by side"


def test_a_lens_is_chosen_and_stays_in_the_address(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "search?q=kiosk")
    lens = page.get_by_label("Lens")
    expect(lens.locator("option", has_text="decisions")).to_have_count(1)
    lens.select_option("decisions")
    ranked(page)
    expect(page.locator(".reading")).to_contain_text("lens: decisions")
    expect(page.locator(".hit").filter(has_not_text="decisions")).to_have_count(0)
    assert asked(page) == {"q": ["kiosk"], "lens": ["decisions"]}
    page.reload()
    ranked(page)
    expect(lens).to_have_value("decisions")
    expect(page.locator(".reading")).to_contain_text("lens: decisions")


def test_the_bar_of_a_score_opens_into_numbers_that_add_up_to_it(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, f"search?q={QUERY}")
    ranked(page)
    hits = demo.root.search(QUERY, limit=20).hits
    opened = page.locator(".hit").filter(has=page.locator(".reasons-bar"))
    for at in (0, 1, 5):
        row = opened.nth(at)
        bar = row.locator(".reasons-bar")
        expect(bar).to_have_attribute("aria-expanded", "false")
        bar.click()
        expect(bar).to_have_attribute("aria-expanded", "true")
        parts = [number(each) for each in row.locator("tbody td:nth-child(3)").all_inner_texts()]
        score = number(row.locator("tfoot .number").nth(1).inner_text())
        assert len(parts) == len(hits[at].reasons)
        assert score == pytest.approx(hits[at].score, rel=0.01)
        assert sum(parts) == pytest.approx(score, abs=0.001 * len(parts) + 0.001)
        bar.click()
        expect(row.locator("table")).to_have_count(0)


def test_why_a_memory_is_not_found_is_told_by_its_id_or_its_words(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, f"search?q={QUERY}&mode=keyword")
    ranked(page)
    missing = next(each for each in demo.root.timeline(limit=50).entries if "bench" not in each.summary)
    page.get_by_role("button", name="Why not…?").click()
    dialog = page.get_by_role("dialog", name="Why not?")
    which = dialog.get_by_role("searchbox")
    expect(which).to_be_focused()
    which.fill(missing.id)
    choice = dialog.get_by_role("list", name="Memories").get_by_role("button")
    expect(choice).to_have_count(1)
    choice.click()
    told = demo.root.why_not(QUERY, missing.id, mode="keyword")
    expect(dialog.locator(".why-verdict")).to_contain_text(told.stage)
    expect(dialog).to_contain_text(told.explanation)
    dialog.get_by_role("button", name="Another memory").click()
    which.fill("HOLD_TTL_SECONDS median")
    expect(choice.first).to_contain_text("420")
    choice.first.click()
    expect(dialog.locator(".why-verdict")).to_contain_text("It is at place")
    expect(dialog.locator(".reasons-bar")).to_be_visible()
    dialog.get_by_role("link", name="Open it").click()
    expect(page.locator(".memory-text")).to_contain_text("is now 420")


def test_a_range_of_time_is_brushed_by_mouse(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo)
    bars = histogram(page).locator(".histogram-bar")
    expect(bars).to_have_count(9)  # January to September
    box = histogram(page).locator("svg").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 2.5 * box["width"] / 9, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 3.1 * box["width"] / 9, y, steps=3)
    page.mouse.move(box["x"] + 4.5 * box["width"] / 9, y, steps=3)
    expect(histogram(page).locator(".histogram-bar.in")).to_have_count(3)
    page.mouse.up()
    expect(page.get_by_role("heading", name="Matching memories")).to_be_visible()
    assert asked(page) == {"from": ["2026-03"], "to": ["2026-05"]}
    expect(bars).to_have_count(9)  # what is not chosen stays to be seen
    expect(page.locator(".hit time").first).to_have_attribute("datetime", re.compile("^2026-05"))
    months = {each[:7] for each in page.locator(".hit time").evaluate_all("all => all.map(each => each.dateTime)")}
    assert months == {"2026-05", "2026-04"}  # the newest thirty
    field(page).fill("kiosk")
    ranked(page)
    for each in page.locator(".hit time").evaluate_all("all => all.map(each => each.dateTime)"):
        assert "2026-03" <= each < "2026-06"
    page.get_by_role("button", name="Clear time").click()
    expect(histogram(page).locator(".histogram-bar.out")).to_have_count(0)
    assert asked(page) == {"q": ["kiosk"]}


def test_a_range_of_time_is_chosen_by_keys(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "search?q=kiosk")
    ranked(page)
    start, end = (page.get_by_role("slider", name=f"Memories by month: {each}") for each in ("from", "to"))
    start.focus()
    for month in ("February 2026", "March 2026"):
        page.keyboard.press("ArrowRight")
        expect(start).to_have_attribute("aria-valuetext", month)
    expect(start).to_be_focused()
    assert asked(page)["from"] == ["2026-03"]
    page.keyboard.press("Tab")
    expect(end).to_be_focused()
    page.keyboard.press("Home")
    expect(end).to_have_attribute("aria-valuetext", "March 2026")
    ranked(page)
    assert asked(page)["to"] == ["2026-03"]
    moments = page.locator(".hit time").evaluate_all("all => all.map(each => each.dateTime.slice(0, 7))")
    assert set(moments) == {"2026-03"}


def test_a_newcomer_finds_by_meaning_what_no_word_says(path: Path, visits: Visits) -> None:
    with nacre.open(path, embedder=MiniLM()) as memory:
        samples._remember(memory, samples.SAMPLES.read_text("utf-8").splitlines(), ())
    with serving(lambda: nacre.open(path, embedder=MiniLM())) as server:
        page = visits.open(server)
        field(page).press_sequentially("Why do customers get charged twice?")
        ranked(page)
        expect(page.locator(".hit").first).to_contain_text("Cause of the duplicate payments in March")
        expect(page.get_by_text("Nothing is likely to answer this")).to_have_count(0)
        field(page).fill("Which insurance covers the company bikes?")
        expect(page.get_by_text("Nothing is likely to answer this. These are the nearest.")).to_be_visible()
        visits.close()
