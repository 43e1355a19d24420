"""Texts that want to run, to break the layout or to leave the page: they are shown as what they are."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from browser import PHONE, Serve, Visits, field, go, ranked, toast, wide
from nacre import NewFact, NewMemory
from servers import ThreadServer

pytest_plugins = "page_fixtures"
pytestmark = pytest.mark.slow

RUNS = "window.__pwned = (window.__pwned || 0) + 1"
TEXTS = [
    f"kiln <script>{RUNS}</script>",
    f'kiln <img src=x onerror="{RUNS}"> <svg onload="{RUNS}"><iframe srcdoc="<script>parent.{RUNS}</script>"></iframe>',
    f"kiln [click](javascript:{RUNS}) <a href='javascript:{RUNS}'>here</a> https://example.org/x",
    "kiln </script></style></textarea></title></p></li><base href='https://example.org/'><style>*{display:none}</style>",
    f'kiln "><input autofocus onfocus="{RUNS}">{{{{constructor.constructor("{RUNS}")()}}}} ${{{RUNS}}}',
    "kiln \u202egnissim si gnihton\u202c \u2066\u2067 \u200b\u200e\ufeff left open: \u202e\u2067",
    "kiln " + "Z\u0335\u0321\u0300\u0301\u0302" * 300,
    "kiln &lt;b&gt; &amp;amp; &#x3c;script&#x3e; &nbsp;",
    "null kiln",
    "undefined NaN [object Object] kiln",
    "kiln \x1b[31mred\x1b[0m \x1b]8;;https://example.org\x07link\x1b]8;;\x07 \x01\x02",
    "kiln\n\n\n\t\t<meta http-equiv=refresh content='0;url=https://example.org'>",
    "kiln " + "خزف " * 40 + " 陶器" * 40,
]
LONG = "W" * 100_000
MARKUP = f"<img src=x onerror='{RUNS}'>"
NAME = "N" + "a" * 190


@pytest.fixture
def hostile(path: Path, serve: Serve) -> ThreadServer:
    server = serve(path)
    root = server.root
    ids = [each.id for each in root.remember_many([NewMemory(text=each) for each in TEXTS])]
    root.remember(
        "kiln " + LONG[:90_000],
        tags=["T" * 200, MARKUP, "\u202egat", "a b,c"],
        namespace="n" * 200,
        kind="k" * 60,
        source="javascript:alert(1)//" + "s" * 150,
        session="s" * 200,
        summary="kiln " + "S" * 900,
        metadata={"m" * 200: "v" * 2_000, MARKUP: MARKUP, "__proto__": "x"},
        key="K" * 200,
        origin=MARKUP,
    )
    facts = [
        NewFact(subject=NAME, predicate="p" * 190, object=MARKUP, relation=True),
        NewFact(subject=MARKUP, predicate="lives in", object="O" * 190, quote=None),
        NewFact(subject="__proto__", predicate="constructor", object="toString", relation=True),
        NewFact(subject="\u202eeman", predicate="is", object="x" * 190),
    ]
    root.add_facts(ids[0], facts)
    root.remember("In a space of its own: kiln", space="<b>space</b> " + "x" * 150)
    root.search(f"kiln {MARKUP} " + "q" * 300, session="agent " + MARKUP)
    root.create_token(MARKUP + "t" * 100, role="read", spaces=["y" * 190])
    return server


def harmless(page: Page) -> None:
    assert page.evaluate("window.__pwned") is None
    assert wide(page) == [], page.url
    assert (
        page.locator("main script, main iframe, main style, main base, main meta, main img, main object").count() == 0
    )
    assert page.locator("a[href^='javascript:' i]").count() == 0


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_nothing_in_a_text_runs_or_breaks_a_view(hostile: ThreadServer, visits: Visits, size: str) -> None:
    page = visits.open(hostile, **(PHONE if size == "phone" else {}))
    expect(page.locator(".hit")).to_have_count(len(TEXTS) + 1)
    harmless(page)
    go(page, "search?q=kiln")
    ranked(page)
    harmless(page)
    for each in page.locator(".reasons-bar").all()[:3]:
        each.click()
    harmless(page)
    go(page, "search?q=kiln&compare=1")
    ranked(page)
    harmless(page)
    longest = hostile.root.search("kiln", limit=50).hits
    for hit in longest:
        go(page, f"memory/{hit.id}")
        expect(page.locator(".details")).to_contain_text(hit.id)
        harmless(page)
    for address in (
        "timeline",
        "graph",
        f"graph/{quote(NAME)}",
        f"graph/{quote(MARKUP)}",
        "graph/__proto__?list=relations",
        "facts",
        "facts?show=history",
        "log",
        "health",
    ):
        go(page, address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        harmless(page)
    go(page, "facts")
    for row in range(4):
        page.locator(".fact-row:not(.head)").nth(row).click()
        fact = page.get_by_role("complementary", name="Fact")
        expect(fact).to_be_visible()
        harmless(page)
        fact.get_by_role("button", name="Close").click()
    go(page, "log")
    page.locator(".log-row").first.click()
    expect(page.locator(".delivery").first).to_be_visible()
    harmless(page)
    page.get_by_label("Space").select_option(index=0)
    expect(page.locator("main")).to_be_visible()
    harmless(page)


def test_each_text_is_shown_as_it_is(hostile: ThreadServer, visits: Visits) -> None:
    page = visits.open(hostile)
    for memory in hostile.root.every():
        if memory.text in TEXTS:
            go(page, f"memory/{memory.id}")
            shown = page.locator(".memory-text")
            expect(shown).to_have_text(memory.text, use_inner_text=False)
            assert shown.evaluate("each => each.textContent") == memory.text
            assert shown.evaluate("each => each.children.length") == 0


def test_an_edit_of_a_hostile_text_changes_only_what_is_edited(hostile: ThreadServer, visits: Visits) -> None:
    page = visits.open(hostile)
    for memory in hostile.root.every():
        go(page, f"memory/{memory.id}")
        expect(page.locator(".details")).to_contain_text(memory.id)
        page.get_by_role("button", name="Edit", exact=True).click()
        page.get_by_role("spinbutton").or_(page.locator("input[name=importance]")).fill("0.9")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator("form.edit")).to_have_count(0)
        (after,) = hostile.root.get([memory.id]).memories
        assert after.importance == 0.9
        for name in ("text", "summary", "tags", "namespace", "kind", "source", "happened", "expires", "pinned"):
            assert getattr(after, name) == getattr(memory, name), name
    harmless(page)


def test_hostile_questions_and_addresses_stay_questions(hostile: ThreadServer, visits: Visits) -> None:
    visits.expected.append("status of (400|404|413)")
    page = visits.open(hostile)
    for query in (MARKUP, f"</title><script>{RUNS}</script>", "'\"`;--", "(((((", "q" * 20_000, "\u202e%00%zz"):
        field(page).fill(query)
        ranked(page) if len(query) < 10_000 else expect(page.locator("main")).to_contain_text("q")
        harmless(page)
    for address in (
        f"memory/{quote(MARKUP)}",
        "memory/..%2f..%2fhealthz",
        "memory/%00",
        "graph/%zz",
        "nowhere/%",
        f"log/{MARKUP}",
    ):
        go(page, address)
        expect(page.get_by_role("main")).not_to_have_text("")
        harmless(page)
    assert toast(page, "").count() == 0
