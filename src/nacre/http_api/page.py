"""The files of the page, from the package. They have no data of the store, so they need no token."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from nacre.http_api.answers import Answer
from nacre.http_api.requests import Request

PREFIX: Final = "/ui/"
_KINDS: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "webmanifest": "application/manifest+json",
}
# Only the page's own files run, and they talk to this server only. A text that is shown can load and run nothing.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GZIP: Final = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")  # with q=0 it is refused
HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-cache",  # asked again with the version, so that a new server never gets an old page
    "vary": "accept-encoding",
}


@dataclass(frozen=True, slots=True)
class _File:
    kind: str
    version: str
    body: bytes
    compressed: bytes


def answer(request: Request) -> Answer | None:
    """A file of the page, or None if there is none at this path."""
    name = "index.html" if request.path == "/" else request.path.removeprefix(PREFIX)
    found = _files().get(name)
    if found is None:
        return None
    headers = {**HEADERS, "etag": found.version}
    if request.has(found.version):
        return Answer(304, headers=headers)
    if _GZIP.search(request.headers.get("accept-encoding", "")):
        return Answer(200, found.compressed, found.kind, {**headers, "content-encoding": "gzip"})
    return Answer(200, found.body, found.kind, headers)


@cache
def _files() -> Mapping[str, _File]:
    """All files by name. They are a few, and read once."""
    return dict(_below(files("nacre.http_api") / "ui", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, _File]]:
    found: list[tuple[str, _File]] = []
    for each in folder.iterdir():
        name, kind = f"{prefix}{each.name}", _KINDS.get(each.name.rpartition(".")[2])
        if each.is_dir():
            found += _below(each, f"{name}/")
        elif kind is not None:
            body = each.read_bytes()
            version = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            found.append((name, _File(kind, version, body, gzip.compress(body, mtime=0))))
    return found
