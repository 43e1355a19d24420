"""Mail in mbox files, as Thunderbird, mutt and Google Takeout write them. Each message is a turn of its thread.

Only what was written is kept: text parts without signatures and without what they quote from the messages before them.
"""

from __future__ import annotations

import email
import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from email import policy
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from nacre.importers.importer import Importer, Refused, Source, part_of_key, storable
from nacre.types.facts import NewEntity
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

_MESSAGE_BYTES_MAX = 24 * 2**20  # of a longer message only the beginning is read; attachments come last
_LINE_BYTES = 1 << 16
_THREADS_KEPT = 100_000  # messages whose thread is remembered, for answers that do not name its first one
_PARTS_MAX = 200
_HEADER_CHARS = 1_000
_INTERLEAVED_LINES = 3  # of a quotation that an answer follows
_ADDRESSES_MAX = 50
_ID = re.compile(r"<([^<>\s]{1,500})>")
_REPLY = re.compile(r"(?:\s*(?:re|aw|fwd?|wg|sv|antw|tr|rv)\s*(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)
_WROTE = "wrote|writes|schrieb|a écrit|escribió|ha scritto|schreef|skrev"
_ATTRIBUTION = re.compile(rf"(?:\b(?:{_WROTE})\b.{{0,200}}|<[^<>@\s]+@[^<>@\s]+>.{{0,80}}):\s*$", re.IGNORECASE)
_ATTRIBUTES = re.compile(r"\s*(?:On|Am|Le|El|Il|Op|Den)\b")
_COPY = "original message|forwarded message|ursprüngliche nachricht|message d'origine|mensaje original"
_COPIED = re.compile(rf"\s*-{{3,}}\s*(?:{_COPY})\s*-{{3,}}\s*$", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n{3,}")
_FROM = b"From "
_HEADER = re.compile(rb"[!-9;-~]+:")


def read(source: Source) -> Iterator[NewMemory | Refused]:
    """The messages of a file, in its order."""
    threads = _Threads()
    path = source.path / "mbox" if source.is_folder else source.path
    for number, (content, complete) in enumerate(_messages(source, path), 1):
        where = f"message {number}"
        try:
            yield _memory(content, complete, path, threads)
        except _NoMail as problem:
            yield Refused(where, str(problem))
        except Exception as error:  # the parser of the standard library raises anything on hostile headers
            yield Refused(where, f"cannot be read as a mail ({type(error).__name__})")


def _messages(source: Source, path: Path) -> Iterator[tuple[bytes, bool]]:
    """Each message without its `From ` line, and whether that is all of it."""
    lines: list[bytes] = []
    size = 0
    begun = False
    for line, starts in _lines(source, path):
        if starts:
            if begun:
                yield b"".join(lines), size <= _MESSAGE_BYTES_MAX
            lines, size, begun = [], 0, True
        elif begun:
            size += len(line)
            if size <= _MESSAGE_BYTES_MAX:
                lines.append(line[1:] if line.startswith(b">") and line.lstrip(b">").startswith(_FROM) else line)
    if begun:
        yield b"".join(lines), size <= _MESSAGE_BYTES_MAX


def _lines(source: Source, path: Path) -> Iterator[tuple[bytes, bool]]:
    """Each line, and whether a message starts with it: after a blank line, before a header.

    In a text such a line has a > before it, but not every program writes one.
    """
    with source.open(path) as file:
        line = file.readline(_LINE_BYTES)
        blank = True  # the line before
        while line:
            following = file.readline(_LINE_BYTES)
            yield line, blank and line.startswith(_FROM) and _HEADER.match(following) is not None
            blank = line in (b"\n", b"\r\n")
            line = following


class _NoMail(Exception):
    """A message that cannot be remembered. The message says why."""


class _Threads:
    """The thread that each message belongs to, by the ids in its headers, or else by its subject."""

    def __init__(self) -> None:
        self._roots: OrderedDict[str, str] = OrderedDict()

    def root(self, own: str, referred: list[str], subject: str, *, answers: bool) -> str:
        """The thread of a message, named by the id of its first message as far as that is known."""
        known = next((self._roots[each] for each in referred if each in self._roots), None)
        if known is None and not referred and answers:
            known = self._roots.get(f"subject {subject}")
        found = known or (referred[0] if referred else own)
        for name in (own, *([] if referred else [f"subject {subject}"])):
            self._roots[name] = found
            self._roots.move_to_end(name)
        while len(self._roots) > _THREADS_KEPT:
            self._roots.popitem(last=False)
        return found


# ---------------------------------------------------------------- one message


def _memory(content: bytes, complete: bool, path: Path, threads: _Threads) -> NewMemory:
    if content.lower().count(b"boundary=") > _PARTS_MAX:  # nested parts take the parser long
        raise _NoMail(f"has more than {_PARTS_MAX} parts")
    message = email.message_from_bytes(content, policy=policy.compat32)
    text = _trimmed(_text(message))
    subject = _header(message, "subject")
    if not text and not subject:
        raise _NoMail("has neither a text nor a subject")
    name, address = _author(message)
    sent = _sent(message)
    own = _own_id(message, content)
    referred = [each for header in ("references", "in-reply-to") for each in _ID.findall(str(message.get(header, "")))]
    bare = _REPLY.sub("", subject, count=1) if _REPLY.match(subject) else subject
    session = threads.root(own, referred, bare.casefold(), answers=bare != subject)
    metadata: dict[str, Json] = {"message_id": own, "subject": subject, "from": address or name}
    for header in ("to", "cc"):
        metadata[header] = [each for _, each in _addresses(message, header)]
    metadata["attachments"] = _attached(message)
    if not complete:
        metadata["cut"] = True
    author = name or address
    return NewMemory(
        text=text or subject,
        key=f"mbox:{part_of_key(own, 480)}",
        kind="episode",
        summary=": ".join(each for each in (author, subject) if each)[: LIMITS.summary_chars_max] or None,
        tags=_labels(message),
        source=storable(str(path.resolve()))[-LIMITS.source_chars_max :],
        session=_session(session),
        position=None if sent is None else int(sent.timestamp()),
        metadata={name: value for name, value in metadata.items() if value},
        created=sent,
        entities=[NewEntity(name=name[: LIMITS.name_chars_max], type="person")] if name else [],
        extract=False,
    )


def _session(root: str) -> str:
    name = f"mail:{root}"
    return name if len(name) <= LIMITS.name_chars_max else part_of_key(name, LIMITS.name_chars_max)


def _own_id(message: Message[Any, Any], content: bytes) -> str:
    found = _ID.search(str(message.get("message-id", "")))
    return storable(found[1]) if found else "sha256-" + hashlib.sha256(content).hexdigest()[:32]


def _sent(message: Message[Any, Any]) -> datetime | None:
    """When it says that it was sent; or else when the last server got it."""
    received = str((message.get_all("received") or [""])[0]).rpartition(";")[2]
    for said in (str(message.get("date", "")), received):
        try:
            found = parsedate_to_datetime(said.strip())
            found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
            if 1970 <= found.year <= 9000:
                return found.astimezone(UTC)
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


def _header(message: Message[Any, Any], name: str) -> str:
    return _decoded(str(message.get(name, "")))


def _decoded(raw: str) -> str:
    """A header as text, in one line. Parts in an unknown encoding are read as Latin-1."""
    if "=?" not in raw:
        text = raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    else:
        pieces = []
        try:
            parts: list[Any] = [*decode_header(raw[: 4 * _HEADER_CHARS])]
        except ValueError:  # damaged base64
            parts = [(raw, None)]
        for part, charset in parts:
            pieces.append(part if isinstance(part, str) else _characters(part, charset))
        text = "".join(pieces)
    return " ".join(storable(text).split())[:_HEADER_CHARS]


def _characters(content: bytes, charset: str | None) -> str:
    """Bytes as text: in what they say, or UTF-8, or Latin-1, in which everything is some text."""
    for each in (charset, "utf-8"):
        try:
            if each:
                return content.decode(each)
        except (LookupError, ValueError):
            continue
    return content.decode("latin-1")


def _addresses(message: Message[Any, Any], header: str) -> list[tuple[str, str]]:
    raw = [str(each)[: 20 * _HEADER_CHARS] for each in message.get_all(header, [])]
    found = [(_decoded(name), _decoded(address)) for name, address in getaddresses(raw)[:_ADDRESSES_MAX]]
    return [(name, address) for name, address in found if name or address]


def _author(message: Message[Any, Any]) -> tuple[str, str]:
    return next(iter(_addresses(message, "from") or _addresses(message, "sender")), ("", ""))


def _labels(message: Message[Any, Any]) -> tuple[str, ...]:
    """The labels that Google Takeout writes."""
    found = (each.strip().strip('"') for each in _header(message, "x-gmail-labels").split(","))
    return tuple(dict.fromkeys(each for each in found if 0 < len(each) <= LIMITS.name_chars_max))[: LIMITS.tags_max]


# ---------------------------------------------------------------- its text


def _parts(message: Message[Any, Any]) -> Iterator[Message[Any, Any]]:
    """The parts that have no parts, without what was forwarded as an attachment."""
    waiting = [message]
    for _ in range(_PARTS_MAX):
        if not waiting:
            return
        part = waiting.pop()
        inside = part.get_payload() if part.is_multipart() else None
        if not isinstance(inside, list):
            yield part
        elif part is message or part.get_content_maintype() == "multipart":
            waiting += [each for each in reversed(inside) if isinstance(each, Message)]


def _text(message: Message[Any, Any]) -> str:
    """All plain parts; where there is none, the HTML ones without their marks."""
    plain: list[str] = []
    marked: list[str] = []
    for part in _parts(message):
        if part.get_content_disposition() == "attachment" or part.get_content_type() not in ("text/plain", "text/html"):
            continue
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        text = _characters(content, str(part.get_content_charset("") or "")).replace("\r\n", "\n")
        (plain if part.get_content_type() == "text/plain" else marked).append(storable(text))
    if any(each.strip() for each in plain):
        return "\n\n".join(plain)
    return "\n\n".join(map(_without_marks, marked))


def _attached(message: Message[Any, Any]) -> list[Json]:
    """The names of attached files."""
    names = [str(name) for part in _parts(message) if (name := part.get_filename())]
    return [_decoded(name)[:200] for name in names[:_ADDRESSES_MAX]]


class _Marks(HTMLParser):
    """Collects the text of a page."""

    _LINES = frozenset(("br", "p", "div", "tr", "li", "h1", "h2", "h3", "blockquote", "table"))
    _UNSEEN = frozenset(("script", "style", "head", "title"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._unseen = 0
        self._quoted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._unseen += tag in self._UNSEEN
        self._quoted += tag == "blockquote"
        if tag in self._LINES:
            self.pieces.append("\n" + "> " * bool(self._quoted))

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in self._UNSEEN and self._unseen > 0
        self._quoted -= tag == "blockquote" and self._quoted > 0
        if tag in self._LINES and tag != "br":
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.pieces.append(" ".join(data.split()) + " " * data[-1:].isspace() if data.strip() else " ")


def _without_marks(page: str) -> str:
    parser = _Marks()
    parser.feed(page)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.pieces).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines))


def _trimmed(text: str) -> str:
    """A text without its signature and quotations. A short quotation that an answer follows stays: it is what is
    answered. What has nothing else is kept as it is."""
    lines = text.split("\n")
    signature = next((at for at, line in enumerate(lines) if line in ("-- ", "--")), None)
    copied = next((at for at, line in enumerate(lines) if at and _COPIED.match(line)), None)
    ends = [at for at in (signature, copied) if at]
    lines = lines[: min(ends)] if ends else lines
    kept: list[str] = []
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].lstrip().startswith(">"):
            end += 1
        if end == at:
            kept.append(lines[at].rstrip())
            at += 1
            continue
        answered = any(line.strip() and not line.lstrip().startswith(">") for line in lines[end : end + 2])
        introduced = _introduction(kept)
        if end - at <= _INTERLEAVED_LINES and answered and any(kept) and not introduced:
            kept += lines[at:end]
        elif introduced:
            del kept[-introduced:]
        at = end
    found = _BLANK_LINES.sub("\n\n", "\n".join(kept)).strip()
    return found or text.strip()


def _introduction(lines: list[str]) -> int:
    """How many of the last lines say who wrote what is quoted next, which may be one sentence in two lines."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    last = lines[end - 1][-400:] if end else ""
    before = lines[end - 2][-400:] if end > 1 else ""
    if not last.rstrip().endswith(":"):
        return 0
    if _ATTRIBUTES.match(before) and _ATTRIBUTION.search(f"{before} {last}"):
        return len(lines) - end + 2
    return len(lines) - end + 1 if _ATTRIBUTION.search(last) else 0


# ---------------------------------------------------------------- recognised


def _recognises(path: Path, head: bytes) -> bool:
    """Also the folder of Apple Mail, in which the file is called mbox."""
    if path.is_dir():
        return path.suffix.lower() == ".mbox" and (path / "mbox").is_file()
    first, _, rest = head.partition(b"\n")
    return first.startswith(_FROM) and _HEADER.match(rest) is not None


MBOX = Importer("mbox", "mail in an mbox file: each message is a turn of its thread", _recognises, read)
