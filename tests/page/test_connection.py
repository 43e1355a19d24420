"""The page and its server: what appears while one looks, a server that is away, slow, or asks for a token."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

import nacre
from browser import Serve, Visits, field, go, ranked, texts, until
from nacre.embedders.hashing import Hashing
from servers import ServeProcess, ThreadServer

pytest_plugins = "page_fixtures"
pytestmark = pytest.mark.slow

REFUSED = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"
AWAY = "The server is away"


def live(page: Page) -> None:
    expect(page.locator(".live")).to_have_attribute("data-state", "live")


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_what_an_agent_writes_appears_while_somebody_looks(own_demo: ThreadServer, path: Path, visits: Visits) -> None:
    context = visits.profile(own_demo)
    search = visits.tab(context, own_demo, "search?q=espresso machine")
    timeline = visits.tab(context, own_demo, "timeline")
    latest = visits.open(own_demo)
    for page in (search, timeline, latest):
        live(page)
    ranked(search)
    with nacre.open(path, embedder=Hashing()) as agent:  # another process would do the same
        receipt = agent.remember("The espresso machine of Bedminster leaks.", tags=["coffee"])
        expect(latest.locator(".hit-text").first).to_have_text("The espresso machine of Bedminster leaks.")
        expect(timeline.locator("a.timeline-entry").first).to_contain_text("The espresso machine of Bedminster leaks.")
        expect(timeline.get_by_text("213 memories")).to_be_visible()
        expect(search.locator(".hit-text").first).to_have_text("The espresso machine of Bedminster leaks.")
        page = visits.open(own_demo, f"memory/{receipt.id}")
        live(page)
        agent.update(receipt.id, text="The espresso machine of Bedminster is mended.")
        expect(page.locator(".memory-text")).to_have_text("The espresso machine of Bedminster is mended.")
        expect(page.get_by_role("list", name="History").locator(".diff ins")).to_have_text("is mended")
        agent.forget([receipt.id])
        expect(page.get_by_text("It is forgotten: no search finds it.")).to_be_visible()
        expect(latest.locator(".hit-text", has_text="espresso")).to_have_count(0)
        expect(timeline.locator("a.timeline-entry", has_text="espresso")).to_have_count(0)
        expect(timeline.get_by_text("212 memories")).to_be_visible()


def test_a_server_that_starts_again_is_waited_for_and_nothing_is_missed(path: Path, visits: Visits) -> None:
    visits.expected.append(REFUSED)
    with nacre.open(path, embedder=Hashing()) as agent:
        first = agent.remember("The kiln is serviced each March.").id
        with ServeProcess(path, NACRE_EMBEDDER="hashing") as server:
            page = visits.open(server)
            memory = visits.open(server, f"memory/{first}")
            asked = visits.open(server, "search?q=kiln")
            for each in (page, memory, asked):
                live(each)
            ranked(asked)
            server.stop()
        for each in (page, memory, asked):
            expect(each.get_by_role("alert").filter(has_text=AWAY)).to_be_visible()
        expect(page.locator(".hit-text")).to_have_text(["The kiln is serviced each March."])
        agent.remember("The loom has a new reed.")
        agent.update(first, text="The kiln is serviced each April.")
        field(asked).fill("loom")  # asked of nobody
        expect(asked.get_by_text("the server does not answer")).to_be_visible()
        with ServeProcess(path, "--port", str(server.port), NACRE_EMBEDDER="hashing"):
            for each in (page, memory, asked):
                live(each)
                expect(each.get_by_text(AWAY)).to_have_count(0)
            expect(page.locator(".hit-text")).to_have_text(
                ["The loom has a new reed.", "The kiln is serviced each April."]
            )
            expect(memory.locator(".memory-text")).to_have_text("The kiln is serviced each April.")
            expect(asked.locator(".hit-text").first).to_have_text("The loom has a new reed.")
            visits.close()


def test_the_page_waits_for_a_server_that_is_not_there_yet(own_demo: ThreadServer, visits: Visits) -> None:
    visits.expected.append("ERR_CONNECTION_REFUSED")
    context = visits.profile(own_demo)
    context.route("**/v1/**", lambda route: route.abort("connectionrefused"))
    page = visits.tab(context, own_demo)
    expect(page.get_by_text(AWAY)).to_be_visible()
    context.unroute("**/v1/**")
    expect(page.locator(".hit")).to_have_count(30)
    live(page)
    expect(page.get_by_text(AWAY)).to_have_count(0)
    context.route("**/v1/**", lambda route: route.abort("connectionrefused"))
    field(page).fill("kiosk")
    expect(page.get_by_text("the server does not answer")).to_be_visible()
    expect(page.get_by_text(AWAY)).to_be_visible()
    context.unroute("**/v1/**")
    ranked(page)  # by itself
    expect(page.locator(".hit-text").first).to_contain_text("kiosk", ignore_case=True)


def test_a_slow_server_leaves_the_page_usable(demo: ThreadServer, visits: Visits) -> None:
    page = visits.open(demo)
    expect(page.locator(".hit")).to_have_count(30)
    held: list[Route] = []
    page.route("**/v1/search", lambda route: held.append(route))
    field(page).fill("kiosk")
    expect(page.get_by_role("status").filter(has_text="Searching")).to_be_visible()
    until(page, lambda: len(held) == 2)
    field(page).press_sequentially(" offline")
    expect(field(page)).to_have_value("kiosk offline")
    page.keyboard.press("Escape")
    expect(page.locator(".hit")).to_have_count(30)
    field(page).fill("kiosk")
    page.get_by_role("link", name="Timeline").click()
    expect(page.get_by_text("212 memories")).to_be_visible()
    page.unroute("**/v1/search")
    page.go_back()
    ranked(page)
    expect(field(page)).to_have_value("kiosk")
    expect(page.locator(".hit-text").first).to_contain_text("kiosk", ignore_case=True)


def test_a_busy_server_is_explained_and_asked_again(demo: ThreadServer, visits: Visits) -> None:
    visits.expected.append("status of 503")
    page = visits.open(demo)
    error = {"type": "Busy", "message": "the store is busy", "problem": "the store is busy", "remedy": "try again"}
    page.route("**/v1/timeline*", lambda route: route.fulfill(status=503, json={"error": error}))
    go(page, "timeline")
    expect(page.get_by_role("alert")).to_contain_text("the store is busy")
    page.unroute("**/v1/timeline*")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("212 memories")).to_be_visible()


def test_a_token_is_asked_for_and_kept_out_of_the_address(
    path: Path, samples: Path, serve: Serve, visits: Visits
) -> None:
    visits.expected.append("status of 401")
    path.write_bytes(samples.read_bytes())
    server = serve(path, token_needed=True)
    page = visits.open(server, "search?q=kiosk")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_label("Token")).to_be_focused()
    sign_in(page, "nacre_1m7s5y9vd9jnec4f_4rRVuUssaPcf8isYB1o2ASTKCTzbWpxQY4iSnDFNaXw")
    expect(page.get_by_role("alert")).to_contain_text("token")
    token = server.root.create_token("reader", role="write")
    sign_in(page, token.secret)
    ranked(page)
    expect(page.locator(".hit-text").first).to_contain_text("kiosk", ignore_case=True)
    live(page)
    assert page.url == f"{server.url}/#/search?q=kiosk"
    page.reload()
    ranked(page)
    other = visits.tab(page.context, server)
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    server.root.revoke_token(token.token.id)
    field(page).fill("loom")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert texts(page) == []
    assert token.secret not in page.content()


def test_who_may_only_read_is_offered_no_change(path: Path, samples: Path, serve: Serve, visits: Visits) -> None:
    visits.expected.append("status of 401")
    path.write_bytes(samples.read_bytes())
    server = serve(path, token_needed=True)
    memory = server.root.search("HOLD_TTL_SECONDS median", mode="keyword").hits[0]
    page = visits.open(server, f"memory/{memory.id}")
    sign_in(page, server.token("read", ("default",)))
    expect(page.locator(".memory-text")).to_contain_text("is now 420")
    offered = re.compile(
        "Edit|Forget|Purge|Pin|tag|New memory|Add a fact|Drop|Keep this|This is wrong|Put the old|show this"
    )
    changes = page.get_by_role("button", name=offered)
    expect(changes).to_have_count(0)
    page.keyboard.press("e")
    page.keyboard.press("n")
    expect(page.locator("form")).to_have_count(0)
    go(page, "facts?show=conflicts")
    expect(page.locator(".conflict").first).to_be_visible()
    expect(changes).to_have_count(0)
    go(page, "log")
    page.locator(".log-row").first.click()
    expect(page.locator(".delivery").first).to_be_visible()
    expect(page.get_by_role("button", name="Used")).to_have_count(0)
    expect(page.get_by_role("button", name="Clear")).to_have_count(0)
    go(page, "health")
    expect(page.get_by_text("You are here with the role read")).to_be_visible()
    expect(page.get_by_role("heading", name="Access tokens")).to_have_count(0)


def test_each_space_is_shown_by_itself(path: Path, serve: Serve, visits: Visits) -> None:
    server = serve(path)
    server.root.remember("Mine.")
    server.root.remember("Théirs.", space="équipe 2")
    page = visits.open(server)
    expect(page.locator(".hit-text")).to_have_text(["Mine."])
    page.get_by_label("Space").select_option("équipe 2")
    expect(page.locator(".hit-text")).to_have_text(["Théirs."])
    page.reload()
    expect(page.locator(".hit-text")).to_have_text(["Théirs."])
    live(page)
    server.root.remember("More.")
    server.root.remember("Plus.", space="équipe 2")
    expect(page.locator(".hit-text")).to_have_text(["Plus.", "Théirs."])
    page.get_by_label("Space").select_option("Another space…")
    page.get_by_label("Name of the space").fill("new one")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing is remembered in this space yet")).to_be_visible()
