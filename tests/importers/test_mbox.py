"""Mail: messages as turns of their threads, what was written in them, and mails that are none."""

from __future__ import annotations

import base64
import mailbox
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import is_recognised, most_bytes, read
from nacre.importers import mbox
from nacre.importers.importer import Refused
from nacre.importers.mbox import MBOX
from nacre.types.facts import NewEntity
from nacre.types.memory import NewMemory


def mail(number: int, body: str | bytes, **headers: str) -> bytes:
    """A message that was sent at this minute. A header that is "" is left out."""
    given = {
        "From": "Ada Lovelace <ada@example.org>",
        "To": "bob@example.org",
        "Date": f"Mon, 2 Mar 2026 10:{number:02}:00 +0100",
        "Message-ID": f"<m{number}@example.org>",
        "Subject": "The kiln",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\n" for name, value in given.items() if value)
    content = body if isinstance(body, bytes) else body.encode()
    return b"From ada@example.org Mon Mar  2 10:00:00 2026\n" + head.encode() + b"\n" + content + b"\n\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mail.mbox"


def memories(file: Path, *mails: bytes) -> list[NewMemory]:
    file.write_bytes(b"".join(mails))
    found, refused = read(MBOX, file)
    assert refused == []
    return found


# ---------------------------------------------------------------- turns


def test_a_message_is_a_turn(file: Path) -> None:
    (found,) = memories(file, mail(1, "It is hot.", Cc="=?utf-8?q?Zo=C3=AB?= <zoe@example.org>, eve@example.org"))
    assert (found.text, found.kind, found.extract) == ("It is hot.", "episode", False)
    assert (found.key, found.session) == ("mbox:m1@example.org", "mail:m1@example.org")
    sent = datetime(2026, 3, 2, 9, 1, tzinfo=UTC)
    assert (found.created, found.position) == (sent, int(sent.timestamp()))
    assert (found.summary, found.source) == ("Ada Lovelace: The kiln", str(file))
    assert found.entities == [NewEntity(name="Ada Lovelace", type="person")]
    assert found.metadata == {
        "message_id": "m1@example.org",
        "subject": "The kiln",
        "from": "ada@example.org",
        "to": ["bob@example.org"],
        "cc": ["zoe@example.org", "eve@example.org"],
    }


def test_messages_belong_to_threads(file: Path) -> None:
    found = memories(
        file,
        mail(1, "one"),
        mail(2, "two", Subject="Re: The kiln", In_Reply_To="<m1@example.org>"),
        mail(3, "three", Subject="AW: Re: The kiln", References="<m1@example.org> <m2@example.org>"),
        mail(4, "four", Subject="Re: the Kiln"),  # it names none, but says that it answers
        mail(5, "five", Subject="The kiln"),  # a new one of the same name
        mail(6, "six", Subject="Re: x", References="<lost@example.org>\n <m0@example.org>"),
        mail(7, "seven", Subject="Re: x", In_Reply_To="<m6@example.org>"),
    )
    assert [each.session for each in found] == [
        *["mail:m1@example.org"] * 4, "mail:m5@example.org", *["mail:lost@example.org"] * 2,
    ]  # fmt: skip
    assert [each.position for each in found] == sorted(each.position or 0 for each in found)


def test_a_file_that_another_program_wrote(file: Path) -> None:
    """Python's own mailbox, with headers and parts as its email package encodes them."""
    letter = EmailMessage()
    letter["From"] = "Zoë Müller <zoe@example.org>"
    letter["To"] = "ada@example.org"
    letter["Subject"] = "Grüße aus der Werkstatt, in der die Öfen stehen und in der es heiß ist"
    letter["Message-ID"] = "<w1@example.org>"
    letter["Date"] = "Tue, 03 Mar 2026 08:00:00 +0100"
    letter.set_content("From der Ofen\n\nFrom today on: heiß 人\n" + "lang " * 300)
    letter.add_alternative("<p>nicht das", subtype="html")
    letter.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="Öfen.png")
    box = mailbox.mbox(file)
    for _ in range(2):
        box.add(letter)
    box.close()
    (found, again), refused = read(MBOX, file)
    assert (refused, found) == ([], again)
    assert found.text.startswith("From der Ofen\n\nFrom today on: heiß 人\nlang lang")
    assert found.summary == f"Zoë Müller: {letter['Subject']}"
    assert found.metadata["attachments"] == ["Öfen.png"]


def test_labels_of_takeout_are_tags(file: Path) -> None:
    (found,) = memories(file, mail(1, "x", X_Gmail_Labels='Inbox,"=?utf-8?b?R3LDvG4=?=",Work'))
    assert found.tags == ("Inbox", "Grün", "Work")


def test_what_begins_like_a_message_is_none(file: Path) -> None:
    found = memories(
        file, mail(1, "From here it is far.\n>From there, too.\n>>From us\n\n>From the end"), mail(2, "\nFromage")
    )
    assert [each.text for each in found] == [
        "From here it is far.\nFrom there, too.\n>From us\n\nFrom the end", "Fromage",
    ]  # fmt: skip


def test_a_message_without_an_id_is_known_by_what_it_says(file: Path) -> None:
    first, second = memories(file, mail(1, "one", Message_ID=""), mail(1, "two", Message_ID=""))
    assert first.key != second.key
    assert memories(file, mail(1, "two", Message_ID=""))[0].key == second.key


# ---------------------------------------------------------------- what was written


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Yes.\n\nOn Mon, 2 Mar 2026 at 10:00, Ada <ada@example.org> wrote:\n> Hot?\n> Very?\n", "Yes."),
        ("Ja.\n\nAm 02.03.2026 um 10:00 schrieb Ada:\n> Heiß?\n", "Ja."),
        ("On Mon, 2 Mar 2026 at 10:00, A Person With Long Name\n<ada@example.org> wrote:\n\n> Hot?\n\nYes.", "Yes."),
        ("> Hot?\n\nYes.", "Yes."),
        ("Hi,\n\n> Hot?\n\nYes.\n\n> a\n> b\n> c\n> d\n\nSo?", "Hi,\n\n> Hot?\n\nYes.\n\nSo?"),
        ("Yes.\n\n-- \nAda\nBuilder of kilns", "Yes."),
        ("Yes.\n\n-----Original Message-----\nFrom: Bob\n\nHot?", "Yes."),
        ("> only\n> quoted", "> only\n> quoted"),
        ("Note:\n> not said by anyone\n\nSo.", "Note:\n> not said by anyone\n\nSo."),
    ],
)  # fmt: skip
def test_what_is_quoted_is_left_out(file: Path, body: str, expected: str) -> None:
    assert memories(file, mail(1, body))[0].text == expected


def multipart(*parts: tuple[str, bytes], kind: str = "mixed") -> tuple[str, dict[str, str]]:
    body = "".join(f"--b\n{head}\n\n{content.decode('latin-1')}\n" for head, content in parts) + "--b--"
    return body, {"Content_Type": f'multipart/{kind}; boundary="b"', "MIME_Version": "1.0"}


def test_text_parts_are_read_and_others_named(file: Path) -> None:
    body, headers = multipart(
        ("Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable", b"caf=E9"),
        ("Content-Type: text/html", b"<p>not this"),
        (
            'Content-Type: text/plain\nContent-Disposition: attachment; filename="../../etc/x.txt"',
            b"nor this",
        ),
        ("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64", base64.b64encode("人".encode())),
    )
    (found,) = memories(file, mail(1, body, **headers))
    assert found.text == "café\n\n人"
    assert found.metadata["attachments"] == ["../../etc/x.txt"]


def test_pages_are_read_where_there_is_no_plain_text(file: Path) -> None:
    page = (
        "<html><head><title>no</title><style>p {}</style></head><body><p>Tea &amp; <b>ash</b><br>hot</p>"
        "<script>no()</script><blockquote>quoted <p>more</blockquote></body></html>"
    )
    (found,) = memories(file, mail(1, page, Content_Type="text/html; charset=utf-8"))
    assert found.text == "Tea & ash\nhot"


@pytest.mark.parametrize("charset", ["utf-8", "cp1252", "no-such", "rot13", "unknown-8bit"])
def test_foreign_encodings_are_read(file: Path, charset: str) -> None:
    """Those that are named wrongly or not known are read as UTF-8, or else as Latin-1."""
    for encoding in ("utf-8", "latin-1"):
        (found,) = memories(
            file,
            mail(1, "Zoë".encode(encoding), Content_Type=f"text/plain; charset={charset}", Subject="=?x-bad?q?Zo=EB?="),
        )
        assert found.text in ("Zoë", "ZoÃ«")
        assert found.metadata["subject"] == "Zoë"


def test_a_long_message_is_cut_and_the_next_one_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mbox, "_MESSAGE_BYTES_MAX", 10_000)
    first, second = memories(file, mail(1, "word\n" * 10_000), mail(2, "Tea"))
    assert len(first.text) < 10_000
    assert (first.metadata["cut"], second.text, "cut" in second.metadata) == (True, "Tea", False)


# ---------------------------------------------------------------- damaged and hostile


@pytest.mark.parametrize(
    "headers",
    [
        {"Date": "Thu, 99 Foo 99999 99:99:99 +9999"},
        {"Date": "", "Received": "from x; Mon, 2 Mar 2026 10:01:00 +0100"},
        {"From": "<<<>>>@,;:\\"},
        {"From": "(" * 5_000},
        {"To": "a@b, " * 5_000},
        {"Subject": "=?utf-8?b?!!!!?= =?utf-8?q?=ZZ?="},
        {"Subject": "a\x00b\ud800c"},
        {"Message_ID": "<" + "x" * 5_000 + ">"},
        {"References": "<a@b> " * 20_000},
        {"Content_Type": 'multipart/mixed; boundary=""'},
        {"Content_Type": "text/plain; charset*0*=;;;'''"},
        {"Content_Transfer_Encoding": "base64"},
    ],
)
def test_hostile_headers_cost_no_other_message(file: Path, headers: dict[str, str]) -> None:
    head = {name: value.encode("utf-8", "replace").decode() for name, value in headers.items()}
    file.write_bytes(mail(1, "one", **head) + mail(2, "two"))
    found, refused = read(MBOX, file)
    assert found[-1].text == "two"
    assert len(found) + len(refused) == 2
    assert all(len(each.session or "") <= 200 for each in found)


def test_nested_parts_end(file: Path) -> None:
    body = "".join(f'--b{at}\nContent-Type: multipart/mixed; boundary="b{at + 1}"\n\n' for at in range(20_000))
    file.write_bytes(mail(1, body, Content_Type='multipart/mixed; boundary="b0"') + mail(2, "two"))
    assert read(MBOX, file)[0][-1].text == "two"


def test_what_says_nothing_is_refused(file: Path) -> None:
    file.write_bytes(mail(1, "", Subject="") + mail(2, "", Subject="Only a subject") + mail(3, "Tea"))
    found, refused = read(MBOX, file)
    assert [each.text for each in found] == ["Only a subject", "Tea"]
    assert refused == [Refused("message 1", "has neither a text nor a subject")]


@given(
    st.lists(
        st.binary(max_size=60) | st.sampled_from([b"\n\nFrom x\n", b"From x\n", b"Subject: a\n", b"\n"]), max_size=12
    )
)
def test_any_bytes_are_read_to_the_end(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    file = tmp_path_factory.getbasetemp() / "any.mbox"
    file.write_bytes(b"".join(pieces))
    read(MBOX, file)


# ---------------------------------------------------------------- recognised


def test_mail_is_recognised(tmp_path: Path) -> None:
    apple = tmp_path / "Inbox.mbox"
    apple.mkdir()
    (apple / "mbox").write_bytes(mail(1, "Tea"))
    assert is_recognised(MBOX, apple)
    assert is_recognised(MBOX, apple / "mbox")
    assert read(MBOX, apple)[0][0].text == "Tea"
    prose = tmp_path / "a.txt"
    prose.write_text("From here on\nit is prose: yes")
    assert not is_recognised(MBOX, prose)


@pytest.mark.slow
def test_a_large_file_takes_little_memory(file: Path) -> None:
    with file.open("wb") as out:
        for number in range(4_000):
            body = ("Tea and ash. " * 70 + "\n") * 5
            out.write(mail(number % 60, body, Message_ID=f"<{number}@x>", References=f"<{number // 9}@x>"))
    count, most = most_bytes(MBOX, file)
    assert (count, file.stat().st_size > 15_000_000) == (4_000, True)
    assert most < 6_000_000
