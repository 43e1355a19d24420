"""Values as JSON, one function per type, named after it. Also errors as JSON, as exit codes and as status over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, date, datetime, tzinfo

from nacre.analysis import highlight
from nacre.engine.calendar import local_date
from nacre.engine.explain import Why, WhyNot
from nacre.errors import (
    AccessDenied,
    Conflict,
    EmbedderError,
    InvalidInput,
    NacreError,
    NotFound,
    Outdated,
    QuotaExceeded,
    ServerError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from nacre.ranking.scoring import briefly
from nacre.types.access_tokens import AccessToken, NewAccessToken
from nacre.types.backups import Backup, BackupResult
from nacre.types.changes import Change, ChangePage
from nacre.types.copying import Copied
from nacre.types.facts import Belief, Disagreement, Entity, Fact, RelatedEntity
from nacre.types.health import Health, Salvage
from nacre.types.memory import (
    DEFAULT_IMPORTANCE,
    STANDING_KINDS,
    Event,
    Forgotten,
    Json,
    Memory,
    Progress,
    Purged,
    Remembered,
)
from nacre.types.nodes import Member, Moved, NodeStatus
from nacre.types.recall_log import Receipt
from nacre.types.search import DidYouMean, Hit, Reason, RelationHit, SearchResult, Successor
from nacre.types.secrets import MemoryWithSecrets, Screened
from nacre.types.stats import Facets, Stats
from nacre.types.views import Context, Fetched, Timeline, TimelineEntry

# The first matching class decides. 0 is success, 1 an unexpected error, 130 an interruption.
EXIT_CODES: tuple[tuple[type[NacreError], int], ...] = (
    (InvalidInput, 2),
    (NotFound, 2),
    (Conflict, 2),
    (StoreError, 3),
    (EmbedderError, 3),
    (ServerError, 3),
)
# The same for answers over HTTP.
STATUS: tuple[tuple[type[NacreError], int], ...] = (
    (AccessDenied, 403),
    (InvalidInput, 400),
    (NotFound, 404),
    (Outdated, 412),
    (Conflict, 409),
    (StoreFull, 507),  # or a quota is used up
    (StoreBusy, 503),
    (StoreUnavailable, 503),
    (EmbedderError, 503),
)
SECRETS_FOUND = 4  # the exit code of an audit that found some
PROBLEMS_FOUND = 5  # the exit code of a doctor that found some, and did not fix them


def exit_code(error: NacreError) -> int:
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)


def http_status(error: NacreError) -> int:
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def error(value: NacreError) -> dict[str, Json]:
    """What is wrong, and as far as it is known: the field, the problem and the remedy, and the error's own values."""
    body: dict[str, Json] = {"type": type(value).__name__, "message": str(value)}
    if isinstance(value, InvalidInput):
        problem, _, remedy = value.problem.partition("; ")
        body |= {"field": value.field, "problem": problem, "remedy": remedy or None}
        if value.errors:
            body["errors"] = [{**each} for each in value.errors]
    if isinstance(value, NotFound | StoreCorrupt):
        body["ids"] = list(value.ids)
    if isinstance(value, QuotaExceeded):
        body |= {"quota": value.quota, "limit": value.limit, "used": value.used}
    return {"error": body}


def dumps(value: Json, indent: int | None = 2) -> str:
    """JSON text: indented for people; with `indent=None` compact, for programs and models."""
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=None if indent else (",", ":"))


def moment(value: datetime) -> str:
    """ISO 8601 in UTC."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def memory(value: Memory) -> dict[str, Json]:
    return {
        "id": value.id,
        "space": value.space,
        "kind": value.kind,
        "namespace": value.namespace,
        "text": value.text,
        "summary": value.summary,
        "tags": list(value.tags),
        "source": value.source,
        "session": value.session,
        "position": value.position,
        "metadata": dict(value.metadata),
        "importance": value.importance,
        "created": moment(value.created),
        "updated": moment(value.updated),
        "deleted": _optional(value.deleted),
        "happened": _optional(value.happened),
        "pinned": value.pinned,
        "origin": value.origin,
        "key": value.key,
        "expires": _optional(value.expires),
        "language": value.language,
        "facts": [fact(each) for each in value.facts],
        **_noted(value),
    }


def _noted(value: Memory | Fact) -> dict[str, Json]:
    """The notes of a write, if it has any."""
    return {"notes": list(value.notes)} if value.notes else {}


def _optional(value: datetime | None) -> str | None:
    return None if value is None else moment(value)


def fact(value: Fact) -> dict[str, Json]:
    return {
        "id": value.id,
        "memory_id": value.memory_id,
        "space": value.space,
        "subject": value.subject,
        "predicate": value.predicate,
        "object": value.object,
        "type": value.type,
        "confidence": value.confidence,
        "decay_rate": value.decay_rate,
        "reinforced": moment(value.reinforced),
        "valid_from": moment(value.valid_from),
        "valid_to": _optional(value.valid_to),
        "superseded_by": value.superseded_by,
        "quote": value.quote,
        "relation": value.relation,
        "single": value.single,
        "origin": value.origin,
        **({} if value.touched == value.reinforced else {"touched": moment(value.touched)}),
        **({} if value.ends == value.valid_to else {"ends": _optional(value.ends)}),
        **_noted(value),
    }


def memory_with_secrets(value: MemoryWithSecrets) -> dict[str, Json]:
    return {
        "id": value.id,
        "space": value.space,
        "created": moment(value.created),
        "forgotten": value.forgotten,
        "places": [
            {"kind": each.kind, "field": each.field, "start": each.start, "end": each.end, "masked": each.masked}
            for each in value.places
        ],
    }


def belief(value: Belief) -> dict[str, Json]:
    return fact(value.fact) | {"effective": value.effective}


def disagreement(value: Disagreement) -> dict[str, Json]:
    return {
        "subject": value.subject,
        "predicate": value.predicate,
        "facts": [belief(each) for each in value.beliefs],
        "memories": [
            {"memory_id": each.memory_id, "text": each.text, "since": moment(each.since)} for each in value.memories
        ],
    }


def entity(value: Entity) -> dict[str, Json]:
    return {"name": value.name, "space": value.space, "type": value.type, "aliases": list(value.aliases)}


def related_entity(value: RelatedEntity) -> dict[str, Json]:
    return {"name": value.name, "distance": value.distance, "path": [fact(each) for each in value.path]}


def relation_hit(value: RelationHit) -> dict[str, Json]:
    return {"score": value.score, "rank": value.rank, "fact": fact(value.fact)}


def receipt(value: Receipt) -> dict[str, Json]:
    return {
        "id": value.id,
        "at": moment(value.at),
        "space": value.space,
        "session": value.session,
        "query": value.query,
        "mode": value.mode,
        "lens": value.lens,
        "deliveries": [
            {
                "memory_id": each.memory_id,
                "rank": each.rank,
                "score": each.score,
                "opened": _optional(each.opened),
                "used": _optional(each.used),
                "wrong": _optional(each.wrong),
            }
            for each in value.deliveries
        ],
        **({} if value.origin is None else {"origin": value.origin}),
        **({"repeat": True} if value.repeat else {}),
    }


def why(value: Why, *, texts: bool = False) -> dict[str, Json]:
    return {
        "memory_id": value.memory_id,
        "rank": value.rank,
        "hit": None if value.hit is None else hit(value.hit, texts=texts),
        "below": value.below,
        "matched": [each._asdict() for each in value.matched],
        "left_out": why_not(value.left_out),
    }


def why_not(value: WhyNot) -> dict[str, Json]:
    return {"stage": value.stage, "explanation": value.explanation, "remedy": value.remedy}


def remembered(value: Remembered) -> dict[str, Json]:
    return {
        "id": value.id,
        "duplicate": value.duplicate,
        "recalled": list(value.recalled),
        "notes": list(value.notes),
        "changed": list(value.changed),
    }


def search_result(value: SearchResult, *, texts: bool = False) -> dict[str, Json]:
    """A search result. With `texts`, each hit has its whole memory, too."""
    return {
        "hits": [hit(each, texts=texts) for each in value.hits],
        "notes": list(value.notes),
        "did_you_mean": None if value.did_you_mean is None else did_you_mean(value.did_you_mean),
        "relations": [relation_hit(each) for each in value.relations],
        "lens": value.lens,
        "intent": None if value.intent is None else {"name": value.intent.name, "confidence": value.intent.confidence},
        "answerable": value.answerable,
        "receipt": value.receipt,
    }


def did_you_mean(value: DidYouMean) -> dict[str, Json]:
    return {"query": value.query, "words": {word: list(best) for word, best in value.words.items()}}


def facets(value: Facets) -> dict[str, Json]:
    return _counts(value) | {"notes": list(value.notes)}


def hit(value: Hit, *, texts: bool = False) -> dict[str, Json]:
    """A hit with a snippet in place of the full text, which `get` returns, or else `texts`."""
    found = value.memory
    whole: dict[str, Json] = {"memory": memory(found)} if texts else {}
    if texts and value.beliefs is not None:
        whole["all_facts"] = [fact(each) for each in value.facts]
    return {
        "id": found.id,
        "score": value.score,
        "relevance": value.relevance,
        "match_type": value.match_type,
        "bm25": value.bm25,
        "bm25_rank": value.bm25_rank,
        "cosine": value.cosine,
        "similarity": value.similarity,
        "cosine_rank": value.cosine_rank,
        "snippet": {
            "text": value.snippet.text,
            "start": value.snippet.start,
            "highlights": [list(span) for span in value.snippet.highlights],
        },
        "space": found.space,
        "kind": found.kind,
        "namespace": found.namespace,
        "tags": list(found.tags),
        "source": found.source,
        "session": found.session,
        "position": found.position,
        "created": moment(found.created),
        "happened": _optional(found.happened),
        "pinned": found.pinned,
        "importance": found.importance,
        "reasons": [reason(each) for each in value.reasons],
        "effective_confidence": value.effective_confidence,
        "facts": [fact(each) for each in value.facts] if value.beliefs is None else list(map(belief, value.beliefs)),
        "similar": list(value.similar),
        "delivered": value.delivered,
        "superseded_by": None if value.superseded_by is None else successor(value.superseded_by),
        "relation": None if value.relation is None else fact(value.relation),
        **whole,
    }


def successor(value: Successor) -> dict[str, Json]:
    return {"id": value.id, "since": moment(value.since)}


_BRIEF_CHARS = 100  # of a snippet: ten hits stay under 900 tokens
_BRIEF_RELATIONS = 3
_NOT_BRIEF = {"superseded", "maxsim"}  # a field says the first; the ranks of the second cost 40 tokens
_IMPORTANT = 0.8  # the importance from which a brief hit mentions it: each field costs the tokens of a few words


def brief(value: SearchResult) -> dict[str, Json]:
    """A search result for clients that pay per token: short snippets, short reasons, and no empty fields."""
    found: dict[str, Json] = {"hits": [_brief_hit(each) for each in value.hits]}
    if value.relations_beside_hits:
        found["relations"] = [each.fact.statement for each in value.relations_beside_hits[:_BRIEF_RELATIONS]]
    if value.notes:
        found["notes"] = list(value.notes)
    if value.did_you_mean is not None:
        found["did_you_mean"] = value.did_you_mean.query
    return found if value.answerable or not value.hits else found | {"answerable": False}


def _brief_hit(value: Hit) -> dict[str, Json]:
    found = value.memory
    short = highlight.shorten(value.snippet, _BRIEF_CHARS)
    whole = value.found_text
    before, after = whole[: short.start].strip(), whole[short.start + len(short.text) :].strip()
    hit: dict[str, Json] = {
        "id": found.id,
        "date": moment(found.moment)[:10],
        "relevance": None if value.relevance is None else round(value.relevance, 2),
        "score": float(f"{value.score:.3g}"),
        "snippet": f"{'…' if before else ''}{' '.join(short.text.split())}{'…' if after else ''}",
        "why": briefly([each for each in value.reasons if each.signal not in _NOT_BRIEF]),
    }
    if found.importance >= _IMPORTANT:
        hit["importance"] = found.importance
    if value.superseded_by is not None:
        hit["superseded_by"] = {"id": value.superseded_by.id, "since": moment(value.superseded_by.since)[:10]}
    if value.beliefs and value.effective_confidence is not None:
        hit["effective_confidence"] = round(value.effective_confidence, 2)
        hit["facts"] = [_brief_belief(each) for each in value.beliefs]
    return hit | {"delivered": True} if value.delivered else hit


def _brief_belief(value: Belief) -> str:
    mark = ", superseded" if value.fact.superseded_by is not None else ""
    return f"{' '.join(value.fact.statement.split())} ({value.effective:.2f}{mark})"


def without_empty(value: dict[str, Json]) -> dict[str, Json]:
    """The same value without fields that are null or empty. A list or an object at the top stays: it is the answer."""
    kept = {key: _without_empty(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in (None, "")}


def _without_empty(value: Json) -> Json:
    if isinstance(value, dict):
        kept = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, "", [], {})}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def reason(value: Reason) -> dict[str, Json]:
    return {
        "signal": value.signal,
        "effect": value.effect,
        "value": value.value,
        "numbers": dict(value.numbers),
    }


def timeline(value: Timeline) -> dict[str, Json]:
    """A page of the timeline. The histogram is included if it was requested and is not empty."""
    counted: dict[str, Json] = {"histogram": dict(value.histogram)} if value.histogram else {}
    return {"entries": [timeline_entry(each) for each in value.entries], "next": value.next, **counted}


def timeline_entry(value: TimelineEntry) -> dict[str, Json]:
    return {
        "id": value.id,
        "created": moment(value.created),
        "space": value.space,
        "kind": value.kind,
        "namespace": value.namespace,
        "tags": list(value.tags),
        "session": value.session,
        "position": value.position,
        "summary": value.summary,
        "happened": _optional(value.happened),
        "pinned": value.pinned,
        "anchor": value.anchor,
    }


_LINE_BYTES, _LINE_BYTES_MAX = 36, 240  # of a summary in the timeline: in a full page, and in a short one
_FULL_PAGE, _FULL_TOKENS = 50, 1_450  # a page of 50 costs less than 1,500 tokens, a note or two included
# While a page costs more: shares of these bytes, with or without marks.
_SIZES = (*((tenths / 10, True) for tenths in range(10, 3, -1)), *((tenths / 10, False) for tenths in range(8, 1, -2)))
_MONTHS_MAX = 12  # of a page: a heading costs more than the month in each line


def brief_timeline(
    value: Timeline, zone: tzinfo | None = None, count: Callable[[str], int] | None = None
) -> dict[str, Json]:
    """A page of the timeline for clients that pay per token: by month, a line each with the day, the id and a summary.

    A page of more than 12 months is grouped by year. Groups and lines keep the order of the page. Summaries are shorter
    the more there are, and the more tokens `count` finds in them. Days are those of the zone; None means the machine's.
    """
    room = min(_LINE_BYTES_MAX, max(_LINE_BYTES, _FULL_PAGE * _LINE_BYTES // (len(value.entries) or 1)))
    tokens_max = _FULL_TOKENS * max(len(value.entries), _FULL_PAGE) // _FULL_PAGE
    frame: dict[str, Json] = {} if value.next is None else {"next": value.next}
    page: dict[str, Json] = {}
    for share, marked in _SIZES:
        page = {"entries": _timeline_groups(value, zone, int(room * share), marked=marked), **frame}
        if count is None or count(dumps(page, indent=None)) <= tokens_max:
            break
    if value.histogram:
        page["histogram"] = dict(value.histogram)
    anchor = next((each.id for each in value.entries if each.anchor), None)
    return page if anchor is None else page | {"anchor": anchor}


def _timeline_groups(value: Timeline, zone: tzinfo | None, room: int, *, marked: bool) -> dict[str, Json]:
    days = [local_date(each.created, zone) for each in value.entries]
    by_year = len({(day.year, day.month) for day in days}) > _MONTHS_MAX
    groups: dict[str, list[Json]] = {}
    for each, day in zip(value.entries, days, strict=True):
        whole = day.isoformat()
        group, within = (whole[:4], whole[5:]) if by_year else (whole[:7], str(day.day))
        marks = _timeline_marks(each, day, zone) if marked else ""
        groups.setdefault(group, []).append(f"{within} {each.id} {marks}{_cut(each.summary, room)}")
    return {**groups}


def _timeline_marks(value: TimelineEntry, day: date, zone: tzinfo | None) -> str:
    """What sets a memory apart: pinned, a standing kind, an event of another day."""
    happened = None if value.happened is None else local_date(value.happened, zone)
    marks = [
        *(["pinned"] if value.pinned else []),
        *([value.kind] if value.kind in STANDING_KINDS else []),
        *([happened.isoformat()] if happened is not None and happened != day else []),
    ]
    return f"[{', '.join(marks)}] " if marks else ""


def _cut(line: str, room: int) -> str:
    """A text in one line of at most so many bytes, cut between words where that leaves half of it."""
    line = " ".join(line.split(None, room)[:room])
    cut = line.encode("utf-8", "replace")[:room].decode(errors="ignore")
    if len(cut) == len(line):
        return line
    between = cut.rfind(" ", len(cut) // 2) if line[len(cut)] != " " else len(cut)
    return f"{cut[:between] if between > 0 else cut}…"


def fetched(value: Fetched) -> dict[str, Json]:
    """Memories in full, with what they update, and with entities and neighbours if these were requested."""
    found: dict[str, Json] = {
        "memories": [_fetched_memory(each, value) for each in value],
        "missing": list(value.missing),
    }
    return found | {"links": [each._asdict() for each in value.updates]} if value.updates else found


def _fetched_memory(one: Memory, result: Fetched) -> dict[str, Json]:
    encoded = memory(one)
    links: dict[str, list[Json]] = {
        "updates": [each.older for each in result.updates if each.newer == one.id],
        "updated_by": [each.newer for each in result.updates if each.older == one.id],
    }
    encoded |= {name: ids for name, ids in links.items() if ids}
    if one.id in result.entities:
        encoded["entities"] = [entity(each) for each in result.entities[one.id]]
    if one.id in result.neighbours:
        encoded["neighbours"] = [timeline_entry(each) for each in result.neighbours[one.id]]
    return encoded


def brief_fetched(value: Fetched, zone: tzinfo | None = None) -> dict[str, Json]:
    """Memories in full for clients that pay per token: no empty fields, no usual values, facts as sentences."""
    found: dict[str, Json] = {"memories": [_brief_memory(each, value, zone) for each in value]}
    return found | {"missing": list(value.missing)} if value.missing else found


def _brief_memory(one: Memory, result: Fetched, zone: tzinfo | None) -> dict[str, Json]:
    full = _fetched_memory(one, result)
    names = ("id", "text", "summary", "kind", "namespace", "tags", "source", "session", "position", "metadata", "key")
    brief: dict[str, Json] = {name: full[name] for name in names}
    brief |= {name: _second(at) for name, at in (("created", one.created), ("happened", one.happened))}
    brief["updated"] = _second(one.updated) if one.updated != one.created else None
    brief["deleted"] = _second(one.deleted)
    brief["expires"] = _second(one.expires)
    brief["importance"] = one.importance if one.importance != DEFAULT_IMPORTANCE else None
    brief["pinned"] = one.pinned or None
    brief["facts"] = [_brief_fact(each) for each in one.facts]
    brief |= {name: full[name] for name in ("updates", "updated_by") if name in full}
    brief["entities"] = [each.name for each in result.entities.get(one.id, ())]
    near = Timeline(result.neighbours.get(one.id, ()), None)
    brief["neighbours"] = brief_timeline(near, zone)["entries"]
    return {name: each for name, each in brief.items() if each not in (None, "", [], {})}


def _second(value: datetime | None) -> str | None:
    """A moment without its fraction of a second."""
    return None if value is None else moment(value.replace(microsecond=0))


def _brief_fact(value: Fact) -> dict[str, Json]:
    stated: dict[str, Json] = {
        "id": value.id,
        "states": value.statement,
        "confidence": round(value.confidence, 2),
        "since": moment(value.valid_from)[:10],
    }
    if value.valid_to is not None:
        stated["until"] = moment(value.valid_to)[:10]
    return stated if value.superseded_by is None else stated | {"superseded_by": value.superseded_by}


def brief_remembered(value: Remembered) -> dict[str, Json]:
    brief: dict[str, Json] = {"id": value.id, "duplicate": value.duplicate}
    more = {"recalled": value.recalled, "notes": value.notes, "changed": value.changed}
    return brief | {name: list(each) for name, each in more.items() if each}


def forgotten(value: Forgotten) -> dict[str, Json]:
    done: dict[str, Json] = {"forgotten": list(value.ids)}
    return done | {"missing": list(value.missing)} if value.missing else done


def purged(value: Purged) -> dict[str, Json]:
    return {"purged": list(value.ids), "scrubbed": value.scrubbed, "pending": value.pending}


def screened(value: Screened) -> dict[str, Json]:
    return {"text": value.text, "notes": list(value.notes)}


def change(value: Change) -> dict[str, Json]:
    return {
        "seq": value.seq,
        "at": moment(value.at),
        "kind": value.kind,
        "action": value.action,
        "name": value.name,
        "space": value.space,
    }


def change_page(value: ChangePage) -> dict[str, Json]:
    return {"changes": [change(each) for each in value.changes], "seq": value.seq, "more": value.more}


def access_token(value: AccessToken) -> dict[str, Json]:
    return {
        "id": value.id,
        "role": value.role,
        "spaces": None if value.spaces is None else list(value.spaces),
        "name": value.name,
        "created": moment(value.created),
        "expires": _optional(value.expires),
    }


def new_access_token(value: NewAccessToken) -> dict[str, Json]:
    return {"token": access_token(value.token), "secret": value.secret}


def progress(value: Progress) -> dict[str, Json]:
    return {"done": value.done, "total": value.total}


def event(value: Event) -> dict[str, Json]:
    return {
        "seq": value.seq,
        "at": moment(value.at),
        "action": value.action,
        "memory_id": value.memory_id,
        "before": dict(value.before),
    }


def context(value: Context) -> dict[str, Json]:
    return {
        "text": value.text,
        "tokens": value.tokens,
        "quoted": [
            {
                "id": each.id,
                "relevance": each.relevance,
                "excerpt": each.excerpt,
                "instead_of": list(each.instead_of),
            }
            for each in value.quoted
        ],
        "outcome": value.outcome,
        "left_out": [{"id": each.id, "why": each.why} for each in value.left_out],
        "notes": list(value.notes),
        "receipt": value.receipt,
    }


def health(value: Health) -> dict[str, Json]:
    findings: list[Json] = [
        {each.name: getattr(found, each.name) for each in fields(found)} for found in value.findings
    ]
    return {"sound": value.sound, "findings": findings}


def member(value: Member) -> dict[str, Json]:
    return {"number": value.number, "address": value.address, "id": value.store_id}


def node_status(value: NodeStatus) -> dict[str, Json]:
    return {**value._asdict(), "arriving": list(value.arriving)}


def moved(value: Moved) -> dict[str, Json]:
    return {**value._asdict()}


def salvage(value: Salvage) -> dict[str, Json]:
    return {
        "store": str(value.path),
        "copied": dict(value.copied),
        "lost": dict(value.lost),
        "lost_memories": list(value.lost_memories),
        "notes": list(value.notes),
    }


def backup(value: Backup) -> dict[str, Json]:
    encoded = {each.name: getattr(value, each.name) for each in fields(value)}
    return encoded | {"path": str(value.path), "created": moment(value.created)}


def backup_result(value: BackupResult) -> dict[str, Json]:
    removed: list[Json] = [str(path) for path in value.removed]
    return {"backup": backup(value.backup), "removed": removed, "notes": list(value.notes)}


def copied(value: Copied) -> dict[str, Json]:
    return {each.name: getattr(value, each.name) for each in fields(value)} | {"counts": dict(value.counts)}


def stats(value: Stats) -> dict[str, Json]:
    return _counts(value)


def _counts(value: Stats | Facets) -> dict[str, Json]:
    counts: dict[str, Json] = {}
    for each in fields(value):
        found = getattr(value, each.name)
        counts[each.name] = dict(found) if isinstance(found, Mapping) else found
    return counts
