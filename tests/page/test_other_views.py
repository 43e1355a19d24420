"""Timeline, graph, facts, recall log and health on the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

import nacre
from browser import Serve, Visits, toast, until
from nacre import NewFact
from nacre.embedders.hashing import Hashing
from servers import ThreadServer

pytest_plugins = "page_fixtures"
pytestmark = pytest.mark.slow

OLD = datetime(2026, 1, 5, 12, tzinfo=UTC)
SELECTED = "[aria-current=true]"


def choice(page: Page, name: str) -> Locator:
    return page.locator("label.compact", has=page.get_by_text(name, exact=True)).locator("select")


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("complementary", name=name)


# ---- timeline


def seen(page: Page) -> set[str]:
    """The ids of the memories that the timeline shows while somebody scrolls through all of it."""
    found: set[str] = set()
    rows = page.locator(".timeline-list")
    expect(page.locator("a.timeline-entry").first).to_be_visible()
    for _ in range(100):
        expect(page.locator(".timeline-entry.waiting")).to_have_count(0)
        found.update(
            page.locator("a.timeline-entry").evaluate_all("all => all.map(each => each.hash.split('/').at(-1))")
        )
        scrolled = "list => { const top = list.scrollTop; list.scrollTop += 500; return list.scrollTop > top; }"
        if not rows.evaluate(scrolled):
            return found
        page.wait_for_timeout(80)  # a list loads what is in sight when it rests
    raise AssertionError("the list has no end")


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati"])
def test_the_timeline_has_every_memory_also_far_away_from_the_server(
    demo: ThreadServer, visits: Visits, zone: str
) -> None:
    page = visits.open(demo, "timeline", timezone_id=zone)
    expect(page.get_by_text("212 memories")).to_be_visible()
    assert seen(page) == {each.id for each in demo.root.every()}
    expect(page.get_by_text("212 memories")).to_be_visible()


def test_the_timeline_is_grouped_by_days_weeks_or_months_and_goes_to_a_date(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "timeline")
    first = page.get_by_role("heading", level=2).first
    expect(first).to_have_text("Friday, 25 September 2026 1")
    choice(page, "By").select_option("week")
    expect(first).to_have_text("Week of 21 Sept 2026 2")
    choice(page, "By").select_option("month")
    expect(first).to_have_text(re.compile("^September 2026 15"))
    choice(page, "By").select_option("day")
    expect(first).to_have_text("Friday, 25 September 2026 1")
    page.get_by_label("Go to").fill("2026-03-11")
    expect(page.locator(".timeline-row h2", has_text="Wednesday, 11 March 2026")).to_be_in_viewport()
    until(page, lambda: "at=2026-03-11" in page.url)
    page.locator("a.timeline-entry", has_text="checkout").first.click()
    expect(page.locator(".memory-text")).to_be_visible()
    page.go_back()
    expect(page.locator(".timeline-row h2", has_text="Wednesday, 11 March 2026")).to_be_in_viewport()
    choice(page, "Order").select_option("oldest")
    expect(first).to_have_text(re.compile("^Monday, 5 January 2026"))
    choice(page, "kind").select_option("episode")
    expect(page.get_by_text("66 memories")).to_be_visible()
    assert {"kind": ["episode"], "order": ["oldest"]}.items() <= parse_qs(page.url.partition("?")[2]).items()


def test_the_timeline_is_read_by_keys(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "timeline")
    entries = [each.summary for each in demo.root.timeline(limit=10).entries]
    page.get_by_role("list", name="Memories by time").focus()
    for each in entries[:3]:
        page.keyboard.press("ArrowDown")
        expect(page.locator("a.timeline-entry:focus")).to_contain_text(each)
    page.keyboard.press("End")
    (last,) = demo.root.timeline(limit=1, oldest_first=True).entries
    expect(page.locator("a.timeline-entry:focus")).to_contain_text(last.summary)
    page.keyboard.press("Enter")
    (memory,) = demo.root.get([last.id]).memories
    expect(page.locator(".memory-text")).to_have_text(memory.text)


DAYS = 250
A_DAY = 400


def entries_of(start: date, end: date) -> Iterator[dict[str, Any]]:
    """Memories of many days, newest first."""
    for back in range((end - start).days):
        day = end - timedelta(days=back + 1)
        for number in reversed(range(A_DAY)):
            yield {
                "id": f"1m{(day - date(2026, 1, 1)).days:06}{number:08}",
                "space": "default",
                "kind": "note",
                "namespace": "general",
                "created": f"{day}T{number // 60 + 8:02}:{number % 60:02}:00Z",
                "updated": f"{day}T12:00:00Z",
                "summary": f"Note {number} of {day}",
                "tags": [],
                "pinned": False,
            }


def many(route: Route) -> None:
    """The answers of a store of 100,000 memories."""
    given = {name: values[0] for name, values in parse_qs(urlsplit(route.request.url).query).items()}
    first = date(2026, 1, 1)
    start, end = (
        date.fromisoformat(given[name][:10]) if name in given else usual
        for name, usual in (("start", first), ("end", first + timedelta(days=DAYS)))
    )
    limit, at = int(given["limit"]), int(given.get("cursor", 0))
    found = [each for number, each in zip(range(at + limit), entries_of(start, end), strict=False) if number >= at]
    more = at + limit < (end - start).days * A_DAY
    answer: dict[str, Any] = {"entries": found, "next": str(at + limit) if more else None}
    if "histogram" in given:
        answer["histogram"] = {(first + timedelta(days=each)).isoformat(): A_DAY for each in range(DAYS)}
    route.fulfill(json=answer)


def test_a_hundred_thousand_memories_are_scrolled_through_with_few_rows(demo: ThreadServer, visits: Visits) -> None:
    context = visits.profile(demo)
    context.route("**/v1/timeline?*", many)
    page = visits.tab(context, demo, "timeline")
    expect(page.get_by_text("100,000 memories")).to_be_visible()
    rows = page.locator(".timeline-list")
    height = rows.evaluate("list => list.scrollHeight")
    for share in (0, 0.31, 0.5, 0.77, 1):
        rows.evaluate("(list, top) => { list.scrollTop = top; }", share * height)
        expect(page.locator(".timeline-entry.waiting")).to_have_count(0)
        expect(page.locator("a.timeline-entry").first).to_be_attached()
        assert page.locator(".timeline-list *").count() < 1_000
    expect(page.get_by_text("Note 0 of 2026-01-01", exact=True)).to_be_in_viewport()
    page.get_by_label("Go to").fill("2026-05-04")
    expect(page.get_by_text("Note 399 of 2026-05-04", exact=True)).to_be_in_viewport()


# ---- graph


def test_the_graph_lists_entities_and_relations_and_follows_keys(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "graph")
    entities = page.get_by_role("list", name="Entities")
    relations = demo.root.facts(relations=True, limit=500)
    counted = f"{len(demo.root.entities())} entities, {len(relations)} relations"
    expect(page.get_by_text(counted)).to_be_visible()
    page.get_by_label("Find by name").fill("leip")
    expect(entities.get_by_role("listitem")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(panel(page, "Entity Leipzig").locator(".panel-list").first).to_contain_text("Plagwitz")
    expect(panel(page, "Entity Leipzig").locator(".panel-list").first).to_contain_text("Mara")
    panel(page, "Entity Leipzig").get_by_role("link", name="Mara").first.click()
    expect(panel(page, "Entity Mara")).to_contain_text("benchday-api")
    page.get_by_label("Find by name").fill("")
    entities.locator(SELECTED).focus()
    before = entities.locator(SELECTED).inner_text()
    page.keyboard.press("ArrowDown")
    expect(entities.locator(f"{SELECTED}:focus")).not_to_have_text(before)
    page.get_by_role("button", name="Relations").click()
    rows = page.get_by_role("list", name="Relations")
    page.get_by_label("Find by name").fill("Mara lives in Leipzig")
    expect(rows.get_by_role("listitem")).to_have_count(1)
    page.get_by_role("link", name="memories").first.click()


def test_the_graph_shows_what_was_so_on_a_day(path: Path, serve: Serve, visits: Visits) -> None:
    server = serve(path)
    with nacre.open(path, embedder=Hashing()) as agent:
        for subject, place, days in (("Ada", "Paris", 40), ("Bob", "Rome", 20), ("Cy", "Oslo", 0)):
            moment = datetime.now(UTC) - timedelta(days=days, hours=1)
            fact = NewFact(subject=subject, predicate="works on", object=place, relation=True, valid_from=moment)
            agent.remember(f"{subject} works on {place}", facts=[fact], extract=False)
    page = visits.open(server, "graph")
    expect(page.get_by_text("6 entities, 3 relations")).to_be_visible()
    slider = page.get_by_label("As of")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.get_by_text("6 entities, 1 relation", exact=True)).to_be_visible()
    until(page, lambda: "as_of=" in page.url)
    page.get_by_role("button", name="Relations").click()
    expect(page.get_by_role("list", name="Relations").get_by_role("listitem")).to_have_text("Ada works on Paris")
    slider.fill("25")
    expect(page.get_by_text("6 entities, 2 relations")).to_be_visible()
    page.get_by_role("button", name="Now").click()
    expect(page.get_by_text("6 entities, 3 relations")).to_be_visible()
    expect(slider).to_have_attribute("aria-valuetext", "now")


def test_an_entity_is_chosen_in_the_picture_which_zooms(path: Path, serve: Serve, visits: Visits) -> None:
    server = serve(path)
    fact = NewFact(subject="Ada", predicate="knows", object="Bob", relation=True)
    server.root.remember("Ada knows Bob", facts=[fact], extract=False)
    page = visits.open(server, "graph", reduced_motion="reduce")
    picture = page.get_by_role("img", name="Picture of 2 entities")
    expect(picture).to_be_visible()
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Show all").click()
    # A node is a disc of one colour.
    script = """canvas => {
      const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const colour = (x, y) => data.slice(4 * (y * width + x), 4 * (y * width + x) + 4).join(" ");
      for (let y = 4; y < height - 4; y += 2) for (let x = 4; x < width - 4; x += 2) {
        const here = colour(x, y);
        if (!here.endsWith(" 255")) continue;
        if ([[3, 0], [-3, 0], [0, 3], [0, -3]].every(([a, b]) => colour(x + a, y + b) === here)) return [x, y];
      }
      return null;
    }"""
    until(page, lambda: picture.evaluate(script))
    x, y = picture.evaluate(script)
    visits.expected.append("willReadFrequently")
    picture.click(position={"x": x, "y": y})
    expect(panel(page, "Entity")).to_contain_text("knows")
    page.keyboard.press("Escape")
    expect(panel(page, "Entity")).to_have_count(0)


# ---- facts


@pytest.fixture
def towns(path: Path, serve: Serve) -> ThreadServer:
    """Who lives where: one fact that was superseded, one that has ended, one that is contradicted."""
    server = serve(path)
    days = (datetime.now(UTC) - timedelta(days=each) for each in (90, 30, 80, 20))
    for (who, where), moment in zip(
        (("Ada", "Paris"), ("Ada", "Rome"), ("Bob", "Oslo"), ("Bob", "Bergen")), days, strict=True
    ):
        sure = 0.3 if where == "Bergen" else 1.0
        fact = NewFact(
            subject=who, predicate="lives in", object=where, confidence=sure, decay_rate=0, valid_from=moment
        )
        server.root.remember(f"{who} lives in {where}, they say", facts=[fact], extract=False)
    return server


def statements(server: ThreadServer, **options: Any) -> list[str]:
    return sorted(f"{each.fact.subject} {each.fact.object}" for each in server.root.facts(**options))


def test_facts_are_shown_now_then_and_in_history(towns: ThreadServer, visits: Visits) -> None:
    page = visits.open(towns, "facts")
    rows = page.get_by_role("list", name="Facts").get_by_role("listitem")
    expect(rows).to_have_count(3)
    page.get_by_role("link", name="History").click()
    expect(rows).to_have_count(4)
    rows.filter(has_text="Paris").get_by_role("link").click()
    fact = panel(page, "Fact")
    expect(fact).to_contain_text("superseded")
    fact.get_by_role("link", name="Ada lives in Rome").click()
    expect(fact).to_contain_text("current")
    expect(fact).to_contain_text("Ada lives in Rome, they say")
    page.get_by_role("link", name="As of").click()
    page.get_by_label("On", exact=True).fill((datetime.now(UTC) - timedelta(days=60)).date().isoformat())
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="Paris")).to_have_count(1)
    page.get_by_placeholder("subject").fill("bob")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    rows.get_by_role("link").click()
    fact.get_by_role("button", name="Drop").click()
    expect(page.get_by_text("No fact is like this.")).to_be_visible()
    assert statements(towns) == ["Ada Rome", "Bob Bergen"]
    toast(page, "The fact is dropped").get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(1)
    assert statements(towns) == ["Ada Rome", "Bob Bergen", "Bob Oslo"]


@pytest.mark.parametrize(("kept", "dropped"), [("Oslo", "Bergen"), ("Bergen", "Oslo")])
def test_a_contradiction_is_resolved_by_a_button_and_undone(
    towns: ThreadServer, visits: Visits, kept: str, dropped: str
) -> None:
    page = visits.open(towns, "facts?show=conflicts")
    conflict = page.get_by_role("list", name="Conflicts")
    expect(conflict).to_contain_text("only one of these can be true")
    expect(conflict).to_contain_text("Bob lives in Bergen, they say")
    conflict.get_by_role("button", name=f"Keep this: {kept}").click()
    expect(page.get_by_text("Nothing contradicts itself.")).to_be_visible()
    assert statements(towns, subject="Bob") == [f"Bob {kept}"]
    history = statements(towns, subject="Bob", history=True)
    assert history == ([f"Bob {kept}"] if kept == "Oslo" else ["Bob Bergen", "Bob Oslo"]), "older values are history"
    toast(page, f"kept {kept}").get_by_role("button", name="Undo").click()
    expect(conflict).to_contain_text(dropped)
    assert statements(towns, subject="Bob") == ["Bob Bergen", "Bob Oslo"]
    conflict.get_by_role("button", name="Both are true").click()
    expect(page.get_by_text("Nothing contradicts itself.")).to_be_visible()
    assert statements(towns, subject="Bob") == ["Bob Bergen", "Bob Oslo"]


@pytest.mark.parametrize("age", ["older", "newer"])
def test_memories_that_may_be_updates_are_decided_by_two_buttons(
    own_demo: ThreadServer, visits: Visits, age: str
) -> None:
    before = own_demo.root.conflicts()
    older, newer = before[0].memories
    page = visits.open(own_demo, "facts?show=conflicts")
    cards = page.get_by_role("list", name="Conflicts").locator(".conflict")
    expect(cards).to_have_count(len(before))
    card = cards.filter(has_text=newer.text[:40])
    card.get_by_role("button", name=f"Keep this, the {age} one").click()
    expect(card).to_have_count(0)
    (after,) = own_demo.root.get([newer.memory_id]).memories
    if age == "older":
        assert after.deleted is not None
    else:
        assert own_demo.root.get([older.memory_id]).memories[0].deleted is None
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(card).to_have_count(1)
    assert own_demo.root.get([newer.memory_id]).memories[0].deleted is None


# ---- recall log


def test_what_an_agent_was_given_is_marked_as_used_or_wrong(own_demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(own_demo, "log")
    rows = page.get_by_role("list", name="Searches, newest first").get_by_role("listitem")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("How long is a bench held for a payment?")
    rows.first.get_by_role("link").click()
    given = panel(page, "Search").locator(".delivery")
    receipt = own_demo.root.receipts()[0]
    expect(given).to_have_count(len(receipt.deliveries))
    expect(given.first).to_contain_text("is now 420")
    given.first.get_by_role("button", name="Used").click()
    given.nth(1).get_by_role("button", name="Wrong").click()
    expect(given.nth(1).get_by_role("button", name="Wrong")).to_be_disabled()
    expect(rows.first).to_contain_text("1 used")
    expect(rows.first).to_contain_text("1 wrong")
    one, two, *_ = own_demo.root.receipts()[0].deliveries
    assert one.used is not None
    assert two.wrong is not None
    assert (one.wrong, two.used) == (None, None)


def test_the_log_follows_agents_and_is_cleared_after_a_question(own_demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(own_demo, "log")
    rows = page.locator(".log-row")
    expect(rows).to_have_count(2)
    own_demo.root.search("Which houses have a kiln?", session="agent-3")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("Which houses have a kiln?")
    page.get_by_label("Session").fill("agent-1")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("agent-1")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert len(own_demo.root.receipts()) == 3
    page.get_by_role("button", name="Clear").click()
    dialog.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("No search is logged for this.")).to_be_visible()
    assert {each.session for each in own_demo.root.receipts()} == {"agent-2", "agent-3"}


# ---- health


def test_health_shows_what_the_store_is_like_and_what_a_check_finds(own_demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(own_demo, "health")
    expect(page.locator(".figures")).to_contain_text("memories212")
    check = page.locator("section.card", has=page.get_by_role("heading", name="Check"))
    expect(check.locator(".verdict")).to_have_text("The store is sound")
    expect(check.locator(".findings li")).to_have_count(len(own_demo.root.check().findings))
    page.get_by_role("button", name="Measure now").click()
    expect(page.get_by_text("There are no judged questions yet")).to_be_visible()
    check.get_by_role("button", name="Rebuild indexes").click()
    page.get_by_role("dialog").get_by_role("button", name="Rebuild").click()
    expect(toast(page, "All indexes were made anew.")).to_be_visible()
    given = own_demo.root.receipts()[0]
    own_demo.root.mark([given.deliveries[0].memory_id], "used", given.id)
    page.get_by_role("button", name="Measure again").click()
    expect(page.get_by_role("region", name="Metrics by mode").get_by_role("row")).to_have_count(4)


def test_a_token_is_made_shown_once_and_revoked(own_demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(own_demo, "health")
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog", name="New token")
    dialog.get_by_label("What it is for").fill("laptop")
    dialog.get_by_text("write", exact=True).click()
    dialog.get_by_role("button", name="Make the token").click()
    shown = page.get_by_role("dialog", name="Copy the token now")
    secret = shown.get_by_role("textbox").input_value()
    with own_demo.client(secret) as client:
        assert client.get("/v1/session").json()["role"] == "write"
        assert client.get("/v1/session").json()["spaces"] == ["default"]
    shown.get_by_role("button", name="Done").click()
    expect(shown).to_have_count(0)
    assert secret not in page.content()
    row = page.get_by_role("row", name="laptop")
    expect(row).to_contain_text("write")
    row.get_by_role("button", name="Revoke laptop").click()
    page.get_by_role("dialog", name="Revoke this token?").get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    with own_demo.client(secret) as client:
        assert client.get("/v1/session").status_code == 401
