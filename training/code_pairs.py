"""Pairs of a sentence and the function that it describes, from the sources of permissively licensed Python packages.

    pip download --no-deps --only-binary :all: -r training/code_packages.txt -d packages
    python training/code_pairs.py --sdist packages --out code_pairs.jsonl.gz

A wheel (.whl) or a source distribution (.tar.gz) names its licence in its metadata. Packages with another licence than
those of the allow list are refused, and so are vendored folders and files that name a copyleft licence themselves.

Each line of the output is a pair: package, licence, name (qualified name of the function), doc (the summary of its
docstring, without markup), code (the function without its docstring), docstring (its beginning). The same packages
always give the same bytes.

`--leave-out corpus.jsonl.gz` names functions on which a model is measured (`text` of each line). Pairs with the same
summary, the same body or nearly the same function are left out, because public code is in many collections.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import json
import re
import sys
import tarfile
import textwrap
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import NamedTuple

DOCSTRING_CHARS = 400
CODE_LINES_MIN = 3
SUMMARY_WORDS = range(4, 41)
ASCII_SHARE = 0.97
LETTER_SHARE = 0.7  # of letters and spaces; below it, a summary is a formula or a signature
SAME_IDENTIFIERS = 0.5  # share that two versions of one function have in common
HEADER_CHARS = 3_000  # a licence stands at the top of a file
SHORT_LICENCE_CHARS = 100  # longer fields are the text of a licence, of which the first line names it

# SPDX identifiers. The last row is allowed beside one of the others only: for small parts of a package.
ALLOWED = frozenset(
    "MIT MIT-0 MIT-CMU HPND BSD BSD-2-Clause BSD-3-Clause 0BSD Apache-2.0 PSF-2.0 Python-2.0 CNRI-Python".split()
)
ALLOWED_BESIDE = frozenset("Zlib CC0-1.0 ISC Unlicense BSL-1.0".split())
# Names in the free text of older metadata, and in classifiers. The first that matches counts.
_NAMED = tuple(
    (re.compile(pattern, re.IGNORECASE), identifier)
    for pattern, identifier in (
        (r"\b(?:a|l)?gpl|\bgnu\b|mozilla|\bmpl\b|\beupl\b|creative commons|\bcc[- ]by|proprietary|other/", ""),
        (r"python software foundation|\bpsf", "PSF-2.0"),
        (r"apache", "Apache-2.0"),
        (r"\bbsd[- ]?2|2[- ]clause|simplified bsd", "BSD-2-Clause"),
        (r"\bbsd[- ]?3|3[- ]clause|new bsd|modified bsd", "BSD-3-Clause"),
        (r"\bbsd", "BSD"),
        (r"\bmit[- ]cmu|historical permission|\bhpnd", "MIT-CMU"),
        (r"\bmit\b", "MIT"),
    )
)
_COPYLEFT = re.compile(r"\b[AL]?GPL\b|GNU (?:Lesser |Affero )?General Public|Mozilla Public|Creative Commons|CC[- ]BY")
_SKIPPED_FOLDERS = re.compile(
    r"^_?(?:tests?|testing|vendor(?:ed)?|vendored_packages|extern(?:al)?s?|third_?party|packages|examples?|docs?)$"
)

_MARKUP = (
    (re.compile(r":[\w:+-]+:`(?:[^`<]*<)?[~!]?([^`<>]*)>?`"), lambda m: m[1].rpartition(".")[2] or m[1]),  # a role
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),  # a link
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),
    (re.compile(r"``?([^`]*)``?_{0,2}"), r"\1"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\1"),
    (re.compile(r"(?<!\w)\*(\w[^*]*)\*(?!\w)"), r"\1"),
    (re.compile(r"\s*\[[\w#]+\]_"), ""),  # a footnote
    (re.compile(r"\|(\w+)\|"), r"\1"),
    (re.compile(r"\s+"), " "),
)
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)\s+(?=[A-Z(`])")
_PARAGRAPH_END = re.compile(
    r"\n\s*\n|\n\s*(?:[:@]\w|>>>|\.\. |[-=~]{3,}|[-*] |(?:Args|Arguments|Parameters|Params|Returns?|Raises|Yields|"
    r"Examples?|Notes?|Usage)\s*:?\s*(?:\n|$))"
)
_NO_SUMMARY = re.compile(
    r"(?:see|refer to|deprecated?|obsolete|to-?do|fixme|xxx|hack|same as|alias|shortcut for|inherit|overrid|"
    r"implements? (?:the )?abstract|not implemented|internal use|for internal|private|docstring|wrapper (?:for|around)|"
    r"args|arguments|parameters|params|returns?:|raises:|auto-?generated|this (?:method|function) is deprecated|"
    r"copyright|@|:|\.\.|>>>|\$|https?:)",
    re.IGNORECASE,
)
_SIGNATURE = re.compile(r"^[\w.]+\(.*\)(?:\s*(?:->|--).*)?$")
_NOT_WORDS = re.compile(r"[^a-z]+")
_STUB_DECORATORS = frozenset(("overload", "abstractmethod", "abstractproperty"))

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Refused(Exception):
    """A package that may not be used, and why."""


class Package(NamedTuple):
    name: str
    version: str
    licence: str
    sources: tuple[tuple[str, str], ...]  # path and text of each Python file


class Pair(NamedTuple):
    package: str
    licence: str
    name: str
    doc: str
    code: str
    docstring: str


def allowed_expression(expression: str) -> bool:
    """Whether an SPDX expression is allowed: every part of an AND, and one part of an OR.

    AND binds more tightly than OR. Parentheses are not resolved: where there are any, every identifier must be allowed.
    """
    choices = re.split(r"\s+OR\s+", expression, flags=re.IGNORECASE)
    if "(" in expression:
        choices = [re.sub(r"\s+OR\s+", " AND ", expression, flags=re.IGNORECASE).translate({40: None, 41: None})]
    return any(_allowed_together(re.split(r"\s+AND\s+", choice.strip(), flags=re.IGNORECASE)) for choice in choices)


def _allowed_together(identifiers: Iterable[str]) -> bool:
    parts = {each.strip() for each in identifiers}
    return bool(parts & ALLOWED) and parts <= ALLOWED | ALLOWED_BESIDE


def named_licence(text: str) -> str | None:
    """The identifier of a licence that is named in words. Empty: one that is not allowed. None: no known name."""
    return next((identifier for pattern, identifier in _NAMED if pattern.search(text)), None)


def licence_of(metadata: Message) -> str:
    """The licence that the metadata names; the most exact field counts, and no field may name one that is refused."""
    expression = metadata.get("License-Expression", "").strip()
    if expression:
        if not allowed_expression(expression):
            raise Refused(f"its licence is {expression}")
        return expression
    classifiers = [each for each in metadata.get_all("Classifier", []) if each.startswith("License ::")]
    named = [each.rpartition(" :: ")[2] for each in classifiers if each != "License :: OSI Approved"]
    field = metadata.get("License", "").strip()
    if field and field.upper() != "UNKNOWN":
        if allowed_expression(field) and not named:
            return field
        first_line = field.splitlines()[0]
        named.append(first_line[:SHORT_LICENCE_CHARS])
    found = [(words, named_licence(words)) for words in named]
    refused = [words for words, identifier in found if identifier == ""]
    if refused:
        raise Refused(f"its licence is {', '.join(refused)}")
    known = [identifier for _, identifier in found if identifier]
    if not known:
        raise Refused(f"its metadata names no licence of the allow list ({'; '.join(named) or 'none at all'})")
    return max(known, key=len)  # BSD-3-Clause says more than BSD


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """The metadata and the Python files of a wheel or source distribution."""

    def wanted(name: str) -> bool:
        return name.endswith((".py", ".dist-info/METADATA")) or bool(re.fullmatch(r"[^/]+/PKG-INFO", name))

    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in sorted(wheel.namelist()):
                if wanted(name):
                    yield name, wheel.read(name)
    else:
        with tarfile.open(path) as archive:
            for member in sorted(archive.getmembers(), key=lambda each: each.name):
                opened = archive.extractfile(member) if wanted(member.name) else None
                if opened is not None:
                    yield member.name, opened.read()


def read_package(path: Path) -> Package:
    metadata: Message | None = None
    sources = []
    for name, content in _members(path):
        text = content.decode("utf-8", errors="replace")
        if name.endswith(("METADATA", "PKG-INFO")):
            # The first one: setuptools' wheel has those of its vendored packages too, deeper in its folders.
            if metadata is None and name.count("/") == 1:
                metadata = HeaderParser().parsestr(text)
        elif usable(name, text):
            sources.append((name, text))
    if metadata is None:
        raise Refused("it has no METADATA or PKG-INFO, so its licence is unknown")
    return Package(metadata["Name"], metadata["Version"], licence_of(metadata), tuple(sources))


def usable(name: str, text: str) -> bool:
    """Whether a file is the package's own code, and not a test, an example, or someone else's."""
    path = PurePosixPath(name)
    if any(_SKIPPED_FOLDERS.match(folder) for folder in path.parts[1:-1]):
        return False
    if path.name.startswith("test_") or path.name in ("setup.py", "conftest.py", "versioneer.py", "_version.py"):
        return False
    return not _COPYLEFT.search(text[:HEADER_CHARS])


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Functions and methods with their qualified names, without those inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from functions(node, prefix)


def summary_of(docstring: str) -> str | None:
    """The first sentence, or the first paragraph where the sentence is too short. None: it is no description."""
    paragraph = _PARAGRAPH_END.split(docstring, maxsplit=1)[0]
    for pattern, replacement in _MARKUP:
        paragraph = pattern.sub(replacement, paragraph)
    paragraph = paragraph.strip()
    sentence = _SENTENCE_END.split(paragraph, maxsplit=1)[0]
    summary = sentence if len(sentence.split()) in SUMMARY_WORDS else paragraph
    return summary.rstrip(" :") if describes(summary) else None


def describes(summary: str) -> bool:
    if len(summary.split()) not in SUMMARY_WORDS or _NO_SUMMARY.match(summary) or _SIGNATURE.match(summary):
        return False
    letters = sum(each.isalpha() or each == " " for each in summary)
    ascii_chars = sum(each.isascii() for each in summary)
    return letters >= LETTER_SHARE * len(summary) and ascii_chars >= ASCII_SHARE * len(summary)


def code_of(node: Function, lines: list[str]) -> str | None:
    """The function without docstring and decorators. None: it does nothing, or a line has docstring and code."""
    docstring, *body = node.body
    if not body or docstring.lineno == node.lineno or body[0].lineno <= (docstring.end_lineno or 0):
        return None
    if all(_does_nothing(statement) for statement in body):
        return None
    kept = lines[node.lineno - 1 : docstring.lineno - 1] + lines[docstring.end_lineno : node.end_lineno]
    kept = textwrap.dedent("\n".join(line.rstrip() for line in kept if line.strip())).splitlines()
    return "\n".join(kept) if len(kept) >= CODE_LINES_MIN else None


def cut(code: str, chars: int) -> str:
    """The whole lines at the beginning that fit."""
    kept = code.splitlines()
    while sum(len(line) + 1 for line in kept) > chars + 1:
        kept.pop()
    return "\n".join(kept)


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return statement.exc is not None and "NotImplemented" in ast.unparse(statement.exc)
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _is_stub(node: Function) -> bool:
    names = (ast.unparse(each).rpartition(".")[2] for each in node.decorator_list)
    return any(name in _STUB_DECORATORS for name in names)


def pairs_of(package: Package) -> Iterator[Pair]:
    """Every pair of a package, with the whole code of the function."""
    for _, text in package.sources:
        for name, docstring, summary, code in described(text):
            if code:
                shown = docstring[:DOCSTRING_CHARS].rstrip()
                yield Pair(package.name, package.licence, name, summary, code, shown)


def described(text: str) -> Iterator[tuple[str, str, str, str | None]]:
    """Name, docstring, summary and code (see `code_of`) of the functions of a file that have a summary."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of invalid escapes in old files
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return  # a template, or syntax of another Python
    lines = re.split(r"\r\n|\r|\n", text)  # splitlines() also splits at form feeds, which ast does not count
    for name, node in functions(tree):
        docstring = ast.get_docstring(node)
        if docstring is None or node.name.startswith(("test_", "__")) or _is_stub(node):
            continue
        summary = summary_of(docstring)
        if summary:
            yield name, docstring, summary, code_of(node, lines)


def _digest(pair: Pair) -> bytes:
    return hashlib.sha256("\0".join(pair).encode("utf-8", "replace")).digest()


def sampled(pairs: list[Pair], most: int) -> list[Pair]:
    """At most so many, chosen by their digests, in the order in which they came."""
    chosen = set(sorted(map(_digest, pairs))[:most])
    return [pair for pair in pairs if _digest(pair) in chosen]


def limit_of(counts: list[int], per_package: int, most: int) -> int:
    """How many pairs each package may give so that all together are not too many: large packages give way first."""
    fitting = (limit for limit in range(per_package, 0, -1) if sum(min(count, limit) for count in counts) <= most)
    return next(fitting, 0)


class Seen:
    """Drops pairs whose summary or body came before, and those that are left out."""

    def __init__(self) -> None:
        self._docs: set[str] = set()
        self._bodies: set[str] = set()
        self._left_out: dict[str, list[set[str]]] = {}

    def leave_out(self, corpus: Path) -> None:
        with gzip.open(corpus, "rt", encoding="utf-8") as lines:
            for line in lines:
                text = textwrap.dedent(json.loads(line)["text"])
                for name, _, summary, code in described(text):
                    self._docs.add(_words(summary))
                    if code:
                        self._bodies.add(_body(code))
                        self._left_out.setdefault(name, []).append(_identifiers(code))

    def new(self, pair: Pair) -> bool:
        doc, body = _words(pair.doc), _body(pair.code)
        if doc in self._docs or body in self._bodies or self._nearly_left_out(pair):
            return False
        self._docs.add(doc)
        self._bodies.add(body)
        return True

    def _nearly_left_out(self, pair: Pair) -> bool:
        """Another version of a function that is left out: the same name, and most identifiers in common."""
        others = self._left_out.get(pair.name.rpartition(".")[2], ())
        ours = _identifiers(pair.code) if others else set()
        return any(len(ours & each) >= SAME_IDENTIFIERS * len(ours | each) for each in others)


def _words(doc: str) -> str:
    return _NOT_WORDS.sub(" ", doc.lower()).strip()


def _identifiers(code: str) -> set[str]:
    return set(re.findall(r"\w+", code))


def _body(code: str) -> str:
    """The code without its first line, which names it, and without white space."""
    return "".join(code.partition("\n")[2].split())


def distributions(given: Iterable[Path]) -> list[Path]:
    found: set[Path] = set()
    for path in given:
        if path.is_dir():
            found.update(each for each in path.iterdir() if each.name.endswith((".whl", ".tar.gz")))
        elif path.name.endswith((".whl", ".tar.gz")) and path.exists():
            found.add(path)
        else:
            sys.exit(f"{path} is no .whl or .tar.gz file and no folder of them. Download packages with pip download.")
    return sorted(found, key=lambda each: each.name.lower())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdist", type=Path, nargs="+", required=True, help="wheels, source distributions, folders")
    parser.add_argument("--out", type=Path, required=True, help="the pairs, as .jsonl.gz")
    parser.add_argument("--code-chars", type=int, default=700, help="length of a function, cut at a line")
    parser.add_argument("--per-package", type=int, default=1_500, help="pairs of one package")
    parser.add_argument("--most", type=int, default=18_500, help="pairs in all")
    parser.add_argument("--leave-out", type=Path, help="functions to leave out, as .jsonl.gz with a `text`")
    parser.add_argument("--packages", type=Path, help="write the names, versions and licences of used packages here")
    asked = parser.parse_args()

    seen = Seen()
    if asked.leave_out:
        seen.leave_out(asked.leave_out)
    found: list[tuple[Package, list[Pair]]] = []
    for path in distributions(asked.sdist):
        try:
            package = read_package(path)
        except Refused as reason:
            print(f"refused {path.name}: {reason}. Allowed: {', '.join(sorted(ALLOWED))}.", file=sys.stderr)
            continue
        of_package = [pair for pair in pairs_of(package) if seen.new(pair)]
        if of_package:
            found.append((package._replace(sources=()), of_package))
    limit = limit_of([len(of_package) for _, of_package in found], asked.per_package, asked.most)
    pairs = [pair for _, of_package in found for pair in sampled(of_package, limit)]
    pairs = [pair._replace(code=cut(pair.code, asked.code_chars)) for pair in pairs]
    pairs = [pair for pair in pairs if pair.code.count("\n") + 1 >= CODE_LINES_MIN]
    with asked.out.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
        for pair in pairs:
            out.write(json.dumps(pair._asdict(), ensure_ascii=True).encode() + b"\n")
    if asked.packages:
        rows = (f"{each.name}=={each.version}  # {each.licence}\n" for each, _ in found)
        asked.packages.write_text("".join(rows), encoding="utf-8")
    print(f"{len(pairs)} pairs of {len(found)} packages, at most {limit} each, {asked.out.stat().st_size / 1e6:.2f} MB")
    for licence, count in Counter(pair.licence for pair in pairs).most_common():
        print(f"{count:6} {licence}")


if __name__ == "__main__":
    main()
