"""Does a query ask for something to be done?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import Repeated, assert_linear
from nacre.query.requests import is_request

REQUESTS = [
    "book a table for two on Friday",
    "Please book flights to Rome",
    "could you write to the landlord?",
    "write a birthday card for Priya",
    "suggest a restaurant",
    "put together a mood board",
    "call Bob back",
    "fix the failing test",
    "Build a dashboard for Ada",
    "answer her mail",
    "deploy the app",
    "plan the trip in May",
    "order some pens",
    "let Ada know that I am late",
    "ask Bob for the keys",
    "what should I cook tonight?",
    "where can we eat with Ada?",
    "what do I wear on Saturday?",
    "summary of the call, please",
    "Bitte buche einen Tisch",
    "buch mir einen Flug",
    "schreib eine Absage an Frau Lang",
    "was soll ich kochen?",
    "réserve une table pour ce soir",
    "commande une pizza",
    "reserva una mesa",
    "compra un regalo para Ana",
    "¿qué puedo cocinar?",
]
QUESTIONS = [
    "",
    "who booked the table?",
    "when did Ada call?",
    "what did we order in May?",
    "where is the key of the shed?",
    # words that begin a keyword query, and are verbs elsewhere
    "build fails on CI",
    "fix for the memory leak",
    "review comments by Ada",
    "call with Bob",
    "deploy key rotation",
    "format of the log lines",
    "answer to the ticket",
    "plan B",
    "order number",
    "make targets",
    "create table syntax",
    "add-on pricing",
    "book club date",
    "reply time of support",
    "back door code",
    "plane tickets to Oslo",
    "such as these",
    "rent in Berlin",
    "Buch über Vögel",
    "Koch im Restaurant",
    "writer of the letter",
]


@pytest.mark.parametrize("query", REQUESTS)
def test_this_is_a_request(query: str) -> None:
    assert is_request(query)
    assert is_request(query.upper()) or any(each in query for each in ("Bob", "Ana"))


@pytest.mark.parametrize("query", QUESTIONS)
def test_this_is_none(query: str) -> None:
    assert not is_request(query)


@given(st.text(max_size=300))
def test_any_text_is_a_request_or_not(query: str) -> None:
    assert is_request(query) in (True, False)
    assert is_request(f"please, {query}")


@pytest.mark.parametrize("piece", ["please ", "what ", "ask a ", '"', "can you "])
def test_time_is_linear(piece: str) -> None:
    assert_linear(is_request, Repeated(piece), 12_000)
