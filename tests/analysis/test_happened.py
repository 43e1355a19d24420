"""When the event of a text took place: reports and what only looks like one, by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.analysis.happened import READ_CHARS_MAX, happened

BERLIN = ZoneInfo("Europe/Berlin")
CREATED = datetime(2026, 6, 17, 15, 30, 45, tzinfo=UTC)  # a Wednesday

REPORTED = [
    ("Last Friday we signed the lease.", "2026-06-12 12:00"),
    ("yesterday I went to the dentist", "2026-06-16 12:00"),
    ("Two weeks ago the server moved to Falkenstein.", "2026-06-01 12:00"),
    ("On 3 May we signed the contract", "2026-05-03 12:00"),
    ("We met on Monday and agreed on Postgres.", "2026-06-15 12:00"),
    ("I lost my job last month, which was rough.", "2026-05-01 12:00"),
    ("Call with Bob yesterday re: invoices", "2026-06-16 12:00"),
    ("2026-03-02 10:11 ERROR disk full on node 3", "2026-03-02 10:11"),
    ("2026-03-02 10:11 start\n2026-03-02 10:12 stop", "2026-03-02 10:11"),
    ("2026-03-02: moved the bucket to eu-west-1", "2026-03-02 12:00"),
    ("Last night the backup failed.", "2026-06-16 18:00"),
    ("Last weekend my girlfriend and I went fishing.", "2026-06-13 12:00"),
    ("Life was wild lately. Last Friday I moved house.", "2026-06-12 12:00"),
    ("Yesterday was great. Yesterday we won.", "2026-06-16 12:00"),
    ("The crash was at 2026-06-17T09:00:00Z.", "2026-06-17 09:00"),
    ("An hour ago the deploy failed", "2026-06-17 14:00"),
    ("In May we hired two people.", "2026-05-01 12:00"),
    ("Am 3. Mai haben wir den Vertrag unterschrieben.", "2026-05-03 12:00"),
    ("Gestern war ich beim Arzt.", "2026-06-16 12:00"),
    ("Letzte Woche ist der Server umgezogen.", "2026-06-08 12:00"),
    ("Vor drei Tagen kam ein Brief vom Amt.", "2026-06-14 12:00"),
    ("Hier nous avons signé le bail.", "2026-06-16 12:00"),
    ("Le 3 mai nous avons signé le contrat.", "2026-05-03 12:00"),
    ("Il y a trois jours, le serveur est tombé.", "2026-06-14 12:00"),
    ("Ayer firmamos el contrato.", "2026-06-16 12:00"),
    ("La semana pasada fuimos a Lisboa.", "2026-06-08 12:00"),
    ("昨天我们签了合同。", "2026-06-16 12:00"),
    ("上周服务器搬到了法兰克福", "2026-06-08 12:00"),
    ("昨日契約しました。", "2026-06-16 12:00"),
]


@pytest.mark.parametrize(("text", "expected"), REPORTED)
def test_reported(text: str, expected: str) -> None:
    assert happened(text, CREATED, UTC) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


NOT_REPORTED = [
    # what is to come, or must be done
    *("The deadline is Friday.", "We meet next week", "Send it by Friday", "I'll call on Monday", "due 2026-06-15"),
    *("We should have met last Friday", "The licence expires 2026-06-01", "The call is scheduled for Monday"),
    *("Die Frist ist am Freitag", "Freitag muss der Bericht fertig sein", "later this month we went"),
    # states, habits, ranges, vague times
    *("Every Friday we deploy", "We use Postgres since 2019", "since yesterday I feel better", "On Mondays we met"),
    *("between March and May we built it", "He worked there in 2019", "last year we moved", "last summer was hot"),
    *("I went there recently", "over the past week we talked", "Seit März nutzen wir Postgres", "a while ago we met"),
    # today says nothing new
    *("Today we signed", "this week we moved", "This morning I ran"),
    # several times
    *("Yesterday we met Ana, and last week Bob came", "From Monday to Tuesday we were away, last month too"),
    *("2026-03-02 10:11 start\n2026-03-03 09:00 stop",),
    # questions, comparisons, and things of that time
    *("Did you go to the gym yesterday?", "What did you do last weekend?", "Yesterday's report is in the drive"),
    *("The notes from last week are gone", "It is colder than last week", "Ana was born on 3 May 1990"),
    *("Her birthday was on 3 May", "I found the photo of last Friday", "If we met on Monday, fine"),
    # no time
    *("", " ", "The port is 5432.", "I may march", "June likes tea", "We decided on Postgres.", 'the song "Yesterday"'),
    *("version 2026.3.2", "https://example.org/2026-03-02/x", "a" * READ_CHARS_MAX + " yesterday we met"),
]


@pytest.mark.parametrize("text", NOT_REPORTED)
def test_not_reported(text: str) -> None:
    assert happened(text, CREATED, UTC) is None


@pytest.mark.parametrize(
    ("text", "created", "expected"),
    [
        ("yesterday we met", "2026-06-16 22:30", "2026-06-16 10:00"),  # past midnight in Berlin
        ("yesterday we met", "2026-06-16 21:30", "2026-06-15 10:00"),
        ("yesterday we met", "2026-03-30 10:00", "2026-03-29 10:00"),  # a day of 23 hours
        ("last month we met", "2026-11-10 10:00", "2026-10-01 10:00"),
        ("On 3 May we met", "2026-05-03 23:00", "2026-05-03 10:00"),
        ("On 3 May we met", "2026-05-03 12:00", None),  # still 3 May
    ],
)
def test_in_berlin(text: str, created: str, expected: str | None) -> None:
    found = happened(text, datetime.fromisoformat(created).replace(tzinfo=UTC), BERLIN)
    assert found == (expected and datetime.fromisoformat(expected).replace(tzinfo=UTC))


TEXTS = st.one_of(
    st.text(),
    st.lists(st.sampled_from([*(text for text, _ in REPORTED), *NOT_REPORTED]), max_size=3).map(" ".join),
    st.lists(st.sampled_from(sorted({word for text, _ in REPORTED for word in text.split()})), max_size=9).map(
        " ".join
    ),
)


@given(
    TEXTS,
    st.datetimes(timezones=st.sampled_from([UTC, BERLIN])),
    st.sampled_from([None, UTC, BERLIN]),
)
def test_any_text_at_any_time(text: str, created: datetime, zone: tzinfo | None) -> None:
    found = happened(text, created, zone)
    if found is not None:
        assert found < created
        assert found.utcoffset() == timedelta(0)
        assert happened(text, created, zone) == found
