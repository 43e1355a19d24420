"""Labelled sets: documents, questions, and the documents that answer each question.

A set is a folder with corpus.jsonl.gz (_id, text, optional title and metadata), queries.jsonl.gz (_id, text, optional
metadata) and qrels.tsv.gz (header, then query id, document id, grade). Where metadata.scope is set, a question
searches only the documents of its own scope.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from nacre.evaluation.metrics import Grades

Half: TypeAlias = Literal["choose", "report"]

ON = ":"  # between the set of the questions and that of the documents
_SPOKEN_AT = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    id: str
    title: str | None
    body: str  # without the title; of a conversation, with the speaker's name in front
    scope: str | None
    session: str | None
    position: int | None
    created: datetime | None

    @property
    def text(self) -> str:
        return self.body if self.title is None else f"{self.title}\n{self.body}"


@dataclass(frozen=True, slots=True)
class Query:
    id: str
    text: str
    scope: str | None
    category: str | None = None  # where a set has categories of questions


@dataclass(frozen=True, slots=True)
class LabelledSet:
    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]  # only those with a relevant document
    qrels: Mapping[str, Grades]  # by query id


def load(folder: Path, name: str, *, audited: bool = False) -> LabelledSet:
    """The set `name` under `folder`. `audited` uses corrected labels, where the set has them.

    `A:B` are the questions of A on the documents of B, which have the same ids.
    """
    asked, _, on = name.partition(ON)
    if on:
        return replace(load(folder, asked, audited=audited), name=name, documents=load(folder, on).documents)
    corrected = folder / name / "qrels_audited.tsv.gz"
    labels = corrected if audited and corrected.is_file() else folder / name / "qrels.tsv.gz"
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    with gzip.open(labels, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        for query, document, grade in rows:
            qrels[query][document] = int(grade)
    answerable = {query: grades for query, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
    queries = map(_query, _lines(folder / name / "queries.jsonl.gz"))
    return LabelledSet(
        name,
        tuple(map(_document, _lines(folder / name / "corpus.jsonl.gz"))),
        tuple(query for query in queries if query.id in answerable),
        answerable,
    )


def half(query_id: str) -> Half:
    """Parameters are chosen on one half of the queries and reported on the other. The split is by a hash of the id."""
    return "report" if hashlib.sha256(query_id.encode()).digest()[0] % 2 else "choose"


# ---------------------------------------------------------------- files


def _document(line: Mapping[str, Any]) -> Document:
    metadata = _metadata(line)
    speaker, spoken_at, session = metadata.get("speaker"), metadata.get("date_time"), metadata.get("session")
    return Document(
        id=line["_id"],
        title=line.get("title") or None,
        body=f"{speaker}: {line['text']}" if speaker else line["text"],
        scope=metadata.get("scope"),
        session=None if session is None else str(session),
        position=metadata.get("order"),
        created=datetime.strptime(spoken_at, _SPOKEN_AT).replace(tzinfo=UTC) if spoken_at else None,
    )


def _query(line: Mapping[str, Any]) -> Query:
    metadata = _metadata(line)
    category = metadata.get("category_name", metadata.get("category"))
    return Query(line["_id"], line["text"], metadata.get("scope"), None if category is None else str(category))


def _metadata(line: Mapping[str, Any]) -> Mapping[str, Any]:
    return line.get("metadata") or {}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
