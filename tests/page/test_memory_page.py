"""One memory on the page: all that belongs to it, and each change of it with its undo."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from browser import Visits, field, ranked, toast, until
from nacre.types.memory import Memory
from servers import ThreadServer

pytest_plugins = "page_fixtures"
pytestmark = pytest.mark.slow

HELD = "HOLD_TTL_SECONDS median payment abandoned"
INCIDENT = "2026-03-11-checkout-incident"


def held(server: ThreadServer) -> Memory:
    """A memory with a fact, an older version, an entity and a recall."""
    found = server.root.search(HELD, mode="keyword", limit=1).hits[0].memory
    assert "is now 420" in found.text
    return found


def now(server: ThreadServer, of: Memory) -> Memory:
    (found,) = server.root.get([of.id]).memories
    return found


def card(page: Page, title: str) -> Locator:
    return page.locator("section", has=page.get_by_role("heading", name=title, exact=True))


def edit(page: Page) -> Locator:
    """The form, opened."""
    page.get_by_role("button", name="Edit", exact=True).click()
    form = page.locator("form.edit")
    expect(form.get_by_role("textbox", name="Text", exact=True)).to_be_focused()
    return form


def save(form: Locator) -> None:
    form.get_by_role("button", name="Save", exact=True).click()


def test_a_memory_is_shown_with_all_that_belongs_to_it(demo: ThreadServer, visits: Visits) -> None:
    memory = held(demo)
    page = visits.open(demo, f"memory/{memory.id}")
    expect(page.locator(".memory-text")).to_have_text(memory.text)
    for tag in memory.tags:
        expect(page.locator(".tags")).to_contain_text(f"#{tag}")
    fact = card(page, "Facts").locator("li").filter(has_text="HOLD_TTL_SECONDS is 420")
    expect(fact.get_by_role("img", name="Holds since 16 Apr 2026")).to_be_visible()
    expect(card(page, "History").locator("li")).to_contain_text("Remembered")
    recalled = card(page, "Recalled").get_by_role("link", name="How long is a bench held for a payment?")
    expect(recalled).to_be_visible()
    expect(card(page, "Recalled")).to_contain_text("agent-2")
    expect(card(page, "About").get_by_role("link")).to_have_text("HOLD_TTL_SECONDS")
    expect(card(page, "Details")).to_contain_text("review/PR-439")
    expect(card(page, "Details")).to_contain_text("pr439")
    older = card(page, "It replaces").get_by_role("link")
    expect(older).to_contain_text("HOLD_TTL_SECONDS=600")
    older.click()
    expect(card(page, "A newer memory holds in its place").get_by_role("link")).to_contain_text("is now 420")
    page.go_back()
    recalled.click()
    expect(page.get_by_role("complementary", name="Search")).to_contain_text("is now 420")


def test_the_neighbours_of_a_memory_in_its_session_are_shown_in_order(demo: ThreadServer, visits: Visits) -> None:
    told = sorted((each for each in demo.root.every() if each.session == INCIDENT), key=lambda each: each.position or 0)
    page = visits.open(demo, f"memory/{told[4].id}")
    session = card(page, "In its session")
    expect(session.locator("li")).to_have_count(7)
    shown = session.locator("li").all_inner_texts()
    assert [each[:40] for each in shown] == [(each.summary or each.text)[:40] for each in told[1:8]]
    expect(session.locator("li.here")).to_contain_text(shown[3])
    session.get_by_role("link").nth(3).click()
    expect(page.locator(".memory-text")).to_have_text(told[5].text)


def test_what_looks_like_another_memory_is_named(own_demo: ThreadServer, visits: Visits) -> None:
    one, other = own_demo.root.remember_many(
        [
            "The kiln in Aarhus is serviced in March each year, by Brenner.",
            "The kiln in Aarhus is serviced in March each year, by Brenner!",
        ]
    )
    assert [each.id for each in own_demo.root.similar(one.id)] == [other.id]
    page = visits.open(own_demo, f"memory/{one.id}")
    alike = card(page, "1 near-duplicate")
    expect(alike.get_by_role("link")).to_contain_text("by Brenner!")
    alike.get_by_role("button", name="Show this one on its own").click()
    expect(alike).to_have_count(0)
    assert own_demo.root.similar(one.id) == []


def test_an_edit_is_kept_with_a_difference_and_can_be_undone(own_demo: ThreadServer, visits: Visits) -> None:
    memory = held(own_demo)
    page = visits.open(own_demo, f"memory/{memory.id}")
    form = edit(page)
    form.get_by_role("textbox", name="Text", exact=True).fill(memory.text.replace("420", "480"))
    form.get_by_label("Namespace").fill("limits")
    save(form)
    expect(form).to_have_count(0)
    expect(page.locator(".memory-text")).to_contain_text("is now 480")
    changed = now(own_demo, memory)
    assert (changed.text, changed.namespace) == (memory.text.replace("420", "480"), "limits")
    assert (changed.tags, changed.importance, changed.created) == (memory.tags, memory.importance, memory.created)
    last = card(page, "History").locator("ol > li").first
    expect(last.locator(".diff del")).to_have_text("420")
    expect(last.locator(".diff ins")).to_have_text("480")
    expect(last.locator(".changes")).to_contain_text("config → limits")
    toast(page, "Saved.").get_by_role("button", name="Undo").click()
    expect(page.locator(".memory-text")).to_contain_text("is now 420")
    expect(toast(page, "The old values are back.")).to_be_visible()
    after = now(own_demo, memory)
    assert (after.text, after.namespace) == (memory.text, memory.namespace)
    expect(card(page, "History").locator("ol > li")).to_have_count(3)
    card(page, "History").get_by_role("button", name="Put the old values back").first.click()
    expect(page.locator(".memory-text")).to_contain_text("is now 480")


def test_an_edit_that_is_not_allowed_is_explained_and_kept_in_the_form(own_demo: ThreadServer, visits: Visits) -> None:
    visits.expected.append("status of 400")
    memory = held(own_demo)
    page = visits.open(own_demo, f"memory/{memory.id}")
    form = edit(page)
    form.get_by_role("textbox", name="Text", exact=True).fill("Another text")
    form.get_by_label("Kind").fill("x" * 300)
    save(form)
    expect(form.get_by_role("alert")).to_contain_text("kind")
    expect(form.get_by_role("textbox", name="Text", exact=True)).to_have_value("Another text")
    form.get_by_label("Kind").fill("note")
    form.get_by_role("textbox", name="Text", exact=True).press("Control+Enter")
    expect(page.locator(".memory-text")).to_have_text("Another text")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_tags_and_the_pin_are_set_by_a_click_and_undone(own_demo: ThreadServer, visits: Visits) -> None:
    memory = held(own_demo)
    page = visits.open(own_demo, f"memory/{memory.id}")
    page.get_by_role("button", name="+ tag").click()
    page.get_by_role("textbox", name="New tag").fill("quarterly")
    page.keyboard.press("Enter")
    expect(page.locator(".tags")).to_contain_text("#quarterly")
    assert now(own_demo, memory).tags == (*memory.tags, "quarterly")
    page.get_by_role("button", name=f"Remove the tag {memory.tags[0]}").click()
    expect(page.locator(".tags")).not_to_contain_text(f"#{memory.tags[0]}")
    toast(page, f"The tag {memory.tags[0]} is gone.").get_by_role("button", name="Undo").click()
    expect(page.locator(".tags")).to_contain_text(f"#{memory.tags[0]}")
    assert now(own_demo, memory).tags == (*memory.tags, "quarterly")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Pin", exact=True)).to_have_attribute("aria-pressed", "true")
    assert now(own_demo, memory).pinned


def test_what_is_forgotten_comes_back_by_undo_or_by_a_button(own_demo: ThreadServer, visits: Visits) -> None:
    memory = held(own_demo)
    page = visits.open(own_demo, f"memory/{memory.id}")
    for way in ("Undo", "Restore"):
        page.get_by_role("button", name="Forget").click()
        expect(page.get_by_text("It is forgotten: no search finds it.")).to_be_visible()
        assert memory.id not in [each.id for each in own_demo.root.search(HELD).hits]
        expect(page.get_by_role("button", name="Edit", exact=True)).to_have_count(0)
        if way == "Undo":
            toast(page, "Forgotten").get_by_role("button", name="Undo").click()
        else:
            page.get_by_role("button", name="Restore").click()
        expect(page.get_by_role("button", name="Forget")).to_be_visible()
        assert now(own_demo, memory).deleted is None


def test_purging_asks_first(own_demo: ThreadServer, visits: Visits) -> None:
    memory = held(own_demo)
    page = visits.open(own_demo, f"memory/{memory.id}")
    purge = page.get_by_role("button", name="Purge…")
    purge.click()
    dialog = page.get_by_role("dialog", name="Delete it for good?")
    expect(dialog).to_contain_text("This cannot be undone.")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(purge).to_be_focused()
    assert now(own_demo, memory).text == memory.text
    purge.click()
    dialog.get_by_role("button", name="Delete for good").click()
    expect(toast(page, "Deleted")).to_be_visible()
    expect(field(page)).to_be_visible()
    assert own_demo.root.get([memory.id], missing_ok=True).missing == (memory.id,)
    page.go_back()
    expect(page.get_by_text("No memory has this id in this space")).to_be_visible()


def test_who_saves_later_is_told_and_loses_nothing(own_demo: ThreadServer, visits: Visits) -> None:
    visits.expected.append("status of 412")
    memory = held(own_demo)
    one, other = (visits.open(own_demo, f"memory/{memory.id}") for _ in range(2))
    mine, theirs = edit(one), edit(other)
    typed = memory.text + " Ask Mara before it changes."
    mine.get_by_role("textbox", name="Text", exact=True).fill(typed)
    theirs.get_by_role("textbox", name="Text", exact=True).fill("It is 500 now.")
    theirs.get_by_label("Tags").fill("holds")
    save(theirs)
    expect(other.locator(".memory-text")).to_have_text("It is 500 now.")
    expect(one.get_by_text("It has changed since you began. Saving will ask.")).to_be_visible()
    expect(mine.get_by_role("textbox", name="Text", exact=True)).to_have_value(typed)
    save(mine)
    meanwhile = mine.get_by_role("alert")
    expect(meanwhile).to_contain_text("It has changed since you began")
    expect(meanwhile.locator("ins").first).to_be_visible()
    expect(meanwhile).to_contain_text("You changed text, too. Which shall hold?")
    expect(mine.get_by_role("textbox", name="Text", exact=True)).to_have_value(typed)
    assert now(own_demo, memory).text == "It is 500 now."
    meanwhile.get_by_role("button", name="Back to the form").click()
    expect(meanwhile).to_have_count(0)
    expect(mine.get_by_role("textbox", name="Text", exact=True)).to_have_value(typed)
    save(mine)
    expect(one.locator(".memory-text")).to_have_text(typed)
    after = now(own_demo, memory)
    assert (after.text, after.tags) == (typed, ("holds",)), "what only the other one changed is kept"
    expect(other.locator(".memory-text")).to_have_text(typed)


def test_the_version_of_the_other_one_can_be_taken(own_demo: ThreadServer, visits: Visits) -> None:
    visits.expected.append("status of 412")
    memory = held(own_demo)
    page = visits.open(own_demo, f"memory/{memory.id}")
    form = edit(page)
    form.get_by_role("textbox", name="Text", exact=True).fill("Mine")
    own_demo.root.update(memory.id, text="Theirs")
    save(form)
    form.get_by_role("button", name="Discard mine").click()
    expect(page.locator(".memory-text")).to_have_text("Theirs")
    assert now(own_demo, memory).text == "Theirs"


def test_an_undo_that_would_overwrite_a_later_change_is_refused(own_demo: ThreadServer, visits: Visits) -> None:
    visits.expected.append("status of 412")
    memory = held(own_demo)
    page = visits.open(own_demo, f"memory/{memory.id}")
    form = edit(page)
    form.get_by_role("textbox", name="Text", exact=True).fill("Mine")
    save(form)
    undo = toast(page, "Saved.").get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    own_demo.root.update(memory.id, text="Later")
    undo.click()
    expect(toast(page, "Not undone: it has changed again meanwhile.")).to_be_visible()
    assert now(own_demo, memory).text == "Later"
    expect(page.locator(".memory-text")).to_have_text("Later")


def test_facts_are_added_and_dropped_with_undo(own_demo: ThreadServer, visits: Visits) -> None:
    memory = held(own_demo)
    page = visits.open(own_demo, f"memory/{memory.id}")
    facts = card(page, "Facts")
    known = 2  # one that was given with the memory, one that its text states
    expect(facts.locator("li")).to_have_count(known)
    facts.get_by_role("button", name="Add a fact").click()
    dialog = page.get_by_role("dialog", name="Add a fact")
    for label, value in (("Subject", "holds"), ("Predicate", "end after"), ("Object", "420 seconds")):
        dialog.get_by_label(label, exact=True).fill(value)
    dialog.get_by_role("button", name="Keep it").click()
    expect(facts.locator("li")).to_have_count(known + 1)
    expect(facts).to_contain_text("holds end after 420 seconds")
    facts.get_by_role("button", name="Drop: holds end after").click()
    expect(facts.locator("li")).to_have_count(known)
    assert own_demo.root.facts(subject="holds", predicate="end after") == []
    toast(page, "The fact is dropped.").get_by_role("button", name="Undo").click()
    expect(facts.locator("li")).to_have_count(known + 1)
    (back,) = own_demo.root.facts(subject="holds", predicate="end after")
    assert back.fact.object == "420 seconds"


def test_what_the_page_shows_counts_as_no_recall(own_demo: ThreadServer, visits: Visits) -> None:
    before = own_demo.root.receipts()
    page = visits.open(own_demo, "search?q=bench payment")
    ranked(page)
    page.locator(".hit-text").first.click()
    expect(card(page, "Recalled")).to_be_visible()
    expect(page.locator(".memory-text")).to_be_visible()
    page.get_by_role("link", name="Log").click()
    expect(page.locator(".log-row")).to_have_count(len(before))
    until(page, lambda: own_demo.root.receipts() == before)


def test_a_memory_of_another_store_is_not_there(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo, "memory/1m7s5y9vd9jnec4f")
    expect(page.get_by_text("No memory has this id in this space")).to_be_visible()
    page.get_by_role("link", name="To the search").click()
    expect(field(page)).to_be_visible()
