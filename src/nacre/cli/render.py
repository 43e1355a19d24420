"""Text output for people: plain lines in a pipe, styled and wrapped lines on a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from nacre.analysis import quoting
from nacre.analysis.wording import count_memories, counted
from nacre.cli.options import wants_printable
from nacre.engine.explain import Why, WhyNot
from nacre.query.lenses import Lens
from nacre.ranking.scoring import describe
from nacre.serialization import encode
from nacre.types.access_tokens import AccessToken
from nacre.types.backups import Backup, BackupResult
from nacre.types.changes import ChangePage
from nacre.types.copying import Copied
from nacre.types.facts import Belief, Disagreement, Entity, Fact, RelatedEntity
from nacre.types.health import Health, Salvage
from nacre.types.memory import DEFAULT_IMPORTANCE, Event, Memory, Progress, Purged
from nacre.types.nodes import Member, Moved, NodeStatus
from nacre.types.recall_log import Receipt
from nacre.types.search import Hit, MatchedWord, RelationHit, SearchResult
from nacre.types.secrets import MemoryWithSecrets
from nacre.types.stats import Facets, Stats
from nacre.types.views import Context, Fetched, Timeline

if TYPE_CHECKING:
    from nacre.config.settings import Settings

Line: TypeAlias = Sequence[tuple[str, str]]  # (text, style) pieces

_DIM, _BOLD, _ID, _MATCH = "dim", "bold", "cyan", "bold yellow"
_MARGIN = "margin"  # the style of a first piece; on a terminal, the rest of the line wraps to the right of it
INDENT = ("   ", _MARGIN)
_MIN_TEXT_WIDTH = 20  # on terminals narrower than this and the margin, lines are cut by the terminal
_BAR_CHARS = 40
NOTES_LISTED = 20
_ERROR_CHARS_MAX = 2_000
# Escape sequences begin with one of the first three ranges. The others turn the direction of writing, or are halves
# of characters.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def show(lines: Iterable[Line]) -> None:
    """Print lines to stdout."""
    if not _styled(sys.stdout):
        printable = _needs_printable(sys.stdout)
        for line in lines:
            plain = "".join(text for text, _ in line)
            sys.stdout.write((_printable(plain) if printable else plain) + "\n")
        return
    from rich.console import Console
    from rich.text import Text
    from rich.theme import Theme

    console = Console(highlight=False, theme=Theme({_MARGIN: "bold"}))
    for line in lines:
        margin = line[0][0] if line and line[0][1] == _MARGIN else ""
        text = Text.assemble(*((_printable(text), style) for text, style in line[bool(margin) :]))
        if not margin:
            console.print(text)
            continue
        for number, part in enumerate(text.wrap(console, max(_MIN_TEXT_WIDTH, console.width - len(margin)))):
            part.rstrip()
            console.print(Text.assemble((margin if number == 0 else " " * len(margin), _MARGIN), part))


def show_json(text: str, stream: IO[str], *, printable: bool = False) -> None:
    """Print JSON. Where texts have their control characters replaced, JSON has them escaped, and says the same."""
    if printable or _needs_printable(stream):
        text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    stream.write(text + "\n")


def complain(message: str, *, printable: bool = False) -> None:
    """Print an error to stderr, in one line. `printable`: replace control characters in a pipe, too."""
    prefix = "\x1b[31merror:\x1b[0m " if _styled(sys.stderr) else "error: "
    line = _flat(message)
    line = line if len(line) <= _ERROR_CHARS_MAX else line[:_ERROR_CHARS_MAX] + "…"
    sys.stderr.write(f"{prefix}{_printable(line) if printable or sys.stderr.isatty() else line}\n")


def tell(line: str) -> None:
    """Print a line to stderr that is no error."""
    sys.stderr.write((_printable(line) if _needs_printable(sys.stderr) else line) + "\n")


def remark(notes: Iterable[str]) -> None:
    """Print notes to stderr: of commands whose answer is passed on as it is, or has no place for notes."""
    for note in notes:
        tell(f"note: {note}")


def remark_first(notes: Sequence[str]) -> None:
    """Print the first of many notes to stderr."""
    remark(notes[:NOTES_LISTED])
    if len(notes) > NOTES_LISTED:
        tell(f"… and {len(notes) - NOTES_LISTED:,} more notes")


@contextmanager
def progress(what: str) -> Iterator[Callable[[Progress], None]]:
    """A progress bar on a terminal, nothing in a pipe."""
    if not _styled(sys.stderr):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda state: shown.update(task, completed=state.done, total=state.total or None)


def _needs_printable(stream: IO[str]) -> bool:
    """On a terminal always, with colours or without: a stored text must not control it. In a pipe on request."""
    return stream.isatty() or wants_printable()


def _styled(stream: IO[str]) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# ---------------------------------------------------------------- lines


def search_lines(result: SearchResult, *, why: bool = False) -> Iterator[Line]:
    """Each hit with its rank, relevance, text, place and time; with `why` also its reasons and score."""
    several_spaces = len({hit.memory.space for hit in result.hits}) > 1
    relevances = ["" if hit.relevance is None else _percent(hit.relevance) for hit in result.hits]
    ranks, percents = len(str(len(result.hits))), max(map(len, relevances), default=0)  # widths
    for rank, (hit, relevance) in enumerate(zip(result.hits, relevances, strict=True), 1):
        margin = f"{rank:>{ranks}}. " + (f"{relevance:>{percents}}  " if percents else "")
        indent = (" " * len(margin), _MARGIN)
        yield [(margin, _MARGIN), *_snippet(hit)]
        yield [indent, (hit.id, _ID), ("  " + "  ".join(_place(hit, with_space=several_spaces)), _DIM)]
        if hit.superseded_by is not None:
            yield [indent, (_superseded(hit.superseded_by.id, _local(hit.superseded_by.since)[:10]), _BOLD)]
        for believed in hit.beliefs or ():
            yield [indent, *_believed(believed)]
        if why:
            for reason in hit.reasons:
                yield [indent, (describe(reason), _DIM)]
            yield [indent, (f"score {hit.score:.5f}, {hit.match_type}", _DIM)]
    if not result.hits:
        yield [("nothing found", _DIM)]
    yield from _footer_lines(result, why=why)


def _place(hit: Hit, *, with_space: bool) -> Iterator[str]:
    """Time, namespace, tags, source and session of a hit, and short marks such as `+1 similar`."""
    memory = hit.memory
    yield _local(memory.moment)
    yield " ".join([memory.namespace, *(f"#{tag}" for tag in memory.tags)])
    if memory.source:
        yield _flat(memory.source)
    if memory.session:
        yield f"session {_flat(memory.session)}"
    if with_space:
        yield f"space {memory.space}"
    if memory.importance != DEFAULT_IMPORTANCE:
        yield f"importance {memory.importance:g}"
    if hit.relation is not None:
        yield "relation"
    if hit.similar:
        yield f"+{len(hit.similar)} similar"
    if hit.delivered:
        yield "delivered before"


def _superseded(by: str, since: str) -> str:
    return f"superseded by {by} since {since}"


def _percent(relevance: float) -> str:
    """Relevance is a probability: no hit is shown as impossible or certain."""
    if relevance < 0.01:
        return "<1%"
    return ">99%" if relevance > 0.99 else f"{relevance:.0%}"


def _footer_lines(result: SearchResult, *, why: bool) -> Iterator[Line]:
    if result.hits and not result.answerable:
        yield [("none of these is likely to answer the question", _BOLD)]
    if result.relations_beside_hits:
        yield [("relations", _BOLD)]
        yield from relation_lines(result.relations_beside_hits, scores=why)
    if result.did_you_mean is not None:
        yield [("did you mean: ", _DIM), (result.did_you_mean.query, _BOLD)]
    if result.lens is not None:
        yield [(f"lens: {result.lens}", _DIM)]
    yield from _note_lines(result.notes)


def brief_lines(result: SearchResult, *, why: bool = False) -> Iterator[Line]:
    """One line per hit; with `why` followed by its reasons in a few words and its score."""
    brief = encode.brief(result)
    hits: Any = brief["hits"]
    for hit in hits:
        relevance = "" if hit["relevance"] is None else f"{_percent(hit['relevance']):>4}  "
        delivered = "delivered before  " if hit.get("delivered") else ""
        importance = f"importance {hit['importance']:g}  " if "importance" in hit else ""
        by = hit.get("superseded_by")
        superseded = f"{_superseded(by['id'], by['since'])}  " if by else ""
        reasons = f"  ({hit['why']}; score {hit['score']:g})" if why else ""
        yield [
            (hit["id"], _ID),
            (f"  {hit['date']}  {relevance}{importance}{delivered}{superseded}", _DIM),
            (hit["snippet"], ""),
            (reasons, _DIM),
        ]
        for stated in hit.get("facts", ()):
            yield [INDENT, (stated, _DIM)]
    if not hits:
        yield [("nothing found", _DIM)]
    yield from _footer_lines(result, why=why)


def context_lines(packed: Context) -> Iterator[Line]:
    """The text alone, so that a program can pass it on."""
    if packed.text:
        yield [(packed.text, "")]


def context_notes(packed: Context) -> Iterator[str]:
    """What is not in the text: notes, and why there is none if even that line does not fit into the budget."""
    if not packed.text:
        yield quoting.empty_line(packed.outcome, [each.id for each in packed.left_out if each.why == packed.outcome])
    yield from packed.notes


def _note_lines(notes: Sequence[str]) -> Iterator[Line]:
    for note in notes:
        yield [("note: " + note, _DIM)]


def facets_lines(facets: Facets) -> Iterator[Line]:
    number, match = counted(facets.total, "memory matches", "memories match").split(" ", 1)
    yield [(number, _BOLD), (f" {match}", "")]
    for name, counts in (
        ("kinds", facets.kinds),
        ("namespaces", facets.namespaces),
        ("tags", facets.tags),
        ("sources", facets.sources),
        ("months", facets.months),
    ):
        if counts:
            yield [(f"{name:<12}", _DIM), (", ".join(f"{value} {number:,}" for value, number in counts.items()), "")]
    yield from _note_lines(facets.notes)


def _snippet(hit: Hit) -> Iterator[tuple[str, str]]:
    """The snippet on one line. Matches are styled on a terminal and in [brackets] in plain text."""
    text, start = hit.snippet.text, hit.snippet.start
    marked = _styled(sys.stdout)
    if start:
        yield "…", ""
    at = 0
    for span in hit.snippet.highlights:
        yield _flat(text[at : span.start]), ""
        word = text[span.start : span.end]
        yield (word if marked else f"[{word}]"), _MATCH
        at = span.end
    yield _flat(text[at:]), ""
    if start + len(text) < len(hit.found_text):
        yield "…", ""


def memory_lines(memory: Memory) -> Iterator[Line]:
    yield from _full_lines(memory)
    yield []


def fetched_lines(fetched: Fetched) -> Iterator[Line]:
    for memory in fetched:
        yield from _full_lines(memory)
        for update in fetched.updates:
            if memory.id in (update.newer, update.older):
                says, other = ("updates ", update.older) if update.newer == memory.id else ("updated by ", update.newer)
                yield [INDENT, (says, _DIM), (other, _ID), (f"  {update.cue or 'given'}", _DIM)]
        entities = fetched.entities.get(memory.id, ())
        if entities:
            yield [INDENT, ("entities: ", _DIM), (", ".join(each.name for each in entities), "")]
        for each in fetched.neighbours.get(memory.id, ()):
            place = "" if each.position is None else f" at {each.position}"
            yield [INDENT, (each.id, _ID), (f"  {_local(each.created)}{place}  ", _DIM), (each.summary, "")]
        yield []


def _full_lines(memory: Memory) -> Iterator[Line]:
    pinned = "  pinned" if memory.pinned else ""
    yield [(memory.id, _ID), (f"  {_local(memory.created)}  {memory.kind} {memory.namespace}{pinned}", _DIM)]
    about = {
        "space": memory.space,
        "tags": " ".join(memory.tags),
        "source": memory.source,
        "session": memory.session and memory.session + ("" if memory.position is None else f" at {memory.position}"),
        "origin": memory.origin,
        "metadata": ", ".join(f"{key}={value}" for key, value in memory.metadata.items()),
        "happened": memory.happened and _local(memory.happened),
        "key": memory.key,
        "expires": memory.expires and _local(memory.expires),
        "language": memory.language,
        "forgotten": memory.deleted and _local(memory.deleted),
    }
    yield [("  ".join(f"{name}: {value}" for name, value in about.items() if value), _DIM)]
    yield [(memory.text, "")]
    for fact in memory.facts:
        yield [INDENT, (_stated(fact), ""), (f"  {fact.type}  {_validity(fact)}", _DIM)]


def belief_lines(beliefs: Sequence[Belief]) -> Iterator[Line]:
    for fact, effective in beliefs:
        yield [
            (fact.id, _ID),
            (f"  {_stated(fact)}", ""),
            (f"  {fact.type}  confidence {effective:.2f}  {_validity(fact)}  memory {fact.memory_id}", _DIM),
        ]
    if not beliefs:
        yield [("nothing found", _DIM)]


def _believed(belief: Belief) -> Line:
    fact, effective = belief
    mark = "  superseded" if fact.superseded_by is not None else ""
    return [("fact: ", _DIM), (_stated(fact), ""), (f"  {fact.type}  confidence {effective:.2f}{mark}", _DIM)]


def _stated(fact: Fact) -> str:
    return _flat(f"{fact.subject} · {fact.predicate} · {fact.object}")


def _validity(fact: Fact) -> str:
    ended = "" if fact.valid_to is None else f" until {_local(fact.valid_to)}"
    successor = "" if fact.superseded_by is None else f", superseded by {fact.superseded_by}"
    return f"since {_local(fact.valid_from)}{ended}{successor}"


def conflict_lines(conflicts: Sequence[Disagreement]) -> Iterator[Line]:
    for each in conflicts:
        yield [(f"{each.subject} · {each.predicate}", _BOLD)]
        for line in belief_lines(each.beliefs) if each.beliefs else ():
            yield [INDENT, *line]
        for memory in each.memories:
            about = (f"{_local(memory.since)}  memory {memory.memory_id}  ", _DIM)
            yield [INDENT, about, (_flat(memory.text), "")]
    if not conflicts:
        yield [("no conflicts", _DIM)]


def relation_lines(relations: Sequence[RelationHit], *, scores: bool = True) -> Iterator[Line]:
    for each in relations:
        score = f"  {each.score:.2f}" if scores else ""
        yield [INDENT, (_stated(each.fact), ""), (f"{score}  memory {each.fact.memory_id}", _DIM)]
    if not relations:
        yield [("nothing found", _DIM)]


def entity_lines(entities: Sequence[Entity]) -> Iterator[Line]:
    for each in entities:
        aliases = f"  also {', '.join(each.aliases)}" if each.aliases else ""
        yield [(each.name, _BOLD), (f"  {each.type}" if each.type else "", ""), (aliases, _DIM)]
    if not entities:
        yield [("nothing found", _DIM)]


def entity_page(entity: Entity, facts: Sequence[Belief], hits: Sequence[Hit]) -> Iterator[Line]:
    yield from entity_lines([entity])
    if facts:
        yield from belief_lines(facts)
    for number, hit in enumerate(hits, 1):
        yield [(f"{number}. ", _BOLD), (hit.id, _ID), (f"  {_local(hit.memory.created)}", _DIM)]
        yield [INDENT, *_snippet(hit)]


def related_lines(related: Sequence[RelatedEntity]) -> Iterator[Line]:
    for each in related:
        way = "; ".join(_stated(fact) for fact in each.path)
        yield [(each.name, _BOLD), (f"  {each.distance} away: {way}", _DIM)]
    if not related:
        yield [("no related entities", _DIM)]


def receipt_lines(receipts: Sequence[Receipt], memory_id: str | None = None) -> Iterator[Line]:
    for receipt in receipts:
        who = "".join(
            f"  {name} {value}" for name, value in (("session", receipt.session), ("lens", receipt.lens)) if value
        )
        yield [
            (receipt.id, _ID),
            (f"  {_local(receipt.at)}  ", _DIM),
            (_flat(receipt.query), ""),
            (f"  {receipt.mode}{who}", _DIM),
        ]
        for each in receipt.deliveries:
            if memory_id in (None, each.memory_id):
                marks = [name for name in ("opened", "used", "wrong") if getattr(each, name) is not None]
                yield [
                    INDENT,
                    (f"{each.rank}. {each.memory_id}", _ID),
                    (f"  {each.score:.5f}  {', '.join(marks)}".rstrip(), _DIM),
                ]
    if not receipts:
        yield [("nothing found", _DIM)]


def why_lines(why: Why) -> Iterator[Line]:
    if why.hit is None:
        yield from why_not_lines(why.left_out)
        return
    yield [(f"{why.rank}. " if why.rank else "not shown: ", _BOLD), (why.memory_id, _ID)]
    for reason in why.hit.reasons:
        yield [INDENT, (describe(reason), "")]
        if reason.signal == "maxsim":
            yield from (_matched(each, why.memory_id) for each in why.matched)
    yield [INDENT, (f"score {why.hit.score:.6f}, relevance {why.hit.relevance:.2f}", _BOLD)]
    if why.below is not None:
        yield [INDENT, (why.below, "")]
    if why.left_out.stage != "found":
        yield from why_not_lines(why.left_out)


def _matched(word: MatchedWord, memory_id: str) -> Line:
    where = "" if word.memory_id == memory_id else f" in {word.memory_id}"
    return [(2 * INDENT[0], _MARGIN), (f"{_flat(word.asked)} → {_flat(word.found)} {word.similarity:.2f}{where}", _DIM)]


def why_not_lines(why_not: WhyNot) -> Iterator[Line]:
    yield [(f"{why_not.stage}: ", _BOLD), (why_not.explanation, "")]
    if why_not.stage != "found":
        yield [("to include it: ", _DIM), (why_not.remedy, "")]


def lens_lines(lenses: Sequence[Lens]) -> Iterator[Line]:
    for each in lenses:
        yield [
            (each.name, _BOLD),
            ("  built in" if each.built_in else "", _DIM),
            (f"  {each.description}".rstrip(), ""),
        ]


def token_lines(tokens: Sequence[AccessToken]) -> Iterator[Line]:
    for each in tokens:
        spaces = "all spaces" if each.spaces is None else ", ".join(map(_flat, each.spaces))
        until = "" if each.expires is None else f"  until {_local(each.expires)}"
        yield [
            (each.id, _ID),
            (f"  {_local(each.created)}  ", _DIM),
            (f"{each.role}: {spaces}", ""),
            (f"{until}  {_flat(each.name)}".rstrip(), _DIM),
        ]
    if not tokens:
        yield [("no tokens", _DIM)]


def change_lines(page: ChangePage) -> Iterator[Line]:
    for each in page.changes:
        yield [
            (f"{each.seq}  {_local(each.at)}  ", _DIM),
            (f"{each.kind} {each.action}  ", ""),
            (_flat(each.name), _ID),
            (f"  {_flat(each.space)}", _DIM),
        ]
    yield [(f"{'next page' if page.more else 'to go on'}: --since {page.seq}", _DIM)]


def timeline_lines(timeline: Timeline) -> Iterator[Line]:
    yield from _histogram_lines(timeline.histogram)
    day = ""
    for entry in timeline.entries:
        if day != (day := _local(entry.created)[:10]):
            yield [(day, _BOLD)]
        clock = _local(entry.created)[11:]
        begin = (" → ", _MARGIN) if entry.anchor else INDENT
        yield [begin, (entry.id, _ID), (f"  {clock}  {entry.namespace}  ", _DIM), (entry.summary, "")]
    if not timeline.entries:
        yield [("nothing found", _DIM)]
    if timeline.next:
        yield [(f"next page: --cursor {timeline.next}", _DIM)]


def _histogram_lines(histogram: Mapping[str, int]) -> Iterator[Line]:
    """Counts, with bars on a terminal, followed by an empty line."""
    most = max(histogram.values(), default=0)
    for name, memories in histogram.items():
        bar = "█" * max(1, round(memories / most * _BAR_CHARS)) if _styled(sys.stdout) else ""
        yield [(name, _BOLD), (f"  {memories:>{len(f'{most:,}')},}", ""), (f"  {bar}".rstrip(), _MATCH)]
    if histogram:
        yield []


def purged_lines(done: Purged) -> Iterator[Line]:
    yield [("purged ", ""), (" ".join(done.ids), _ID)]
    if done.pending is not None:
        yield [(f"bytes of it may be left in the files ({done.pending}); the next write removes them", "")]


def history_lines(events: Sequence[Event]) -> Iterator[Line]:
    for event in events:
        yield [(_local(event.at), _DIM), (f"  {event.action}", _BOLD)]
        for field, value in event.before.items():
            yield [INDENT, (f"{field} was: {value}", "")]


def stats_lines(stats: Stats) -> Iterator[Line]:
    yield [("memories    ", _DIM), (f"{stats.memories:,}", _BOLD), (f"  ({stats.forgotten:,} forgotten)", _DIM)]
    yield [("passages    ", _DIM), (f"{stats.passages:,}", ""), (f"  ({count_memories(stats.pending)} pending)", _DIM)]
    lacking = f"  ({count_memories(stats.pending_tokens)} without)"
    yield [("tokens      ", _DIM), (f"{stats.token_bytes / 1e6:.1f} MB of vectors", ""), (lacking, _DIM)]
    for model, pending in stats.further_models.items():
        yield [("also by     ", _DIM), (model, ""), (f"  ({count_memories(pending)} pending)", _DIM)]
    yield [("events      ", _DIM), (f"{stats.events:,}", "")]
    for name, counts in (("spaces", stats.spaces), ("kinds", stats.kinds), ("namespaces", stats.namespaces)):
        listed = ", ".join(f"{value} {number:,}" for value, number in counts.items())
        yield [(f"{name:<12}", _DIM), (listed or "none", "")]
    for space, memories in stats.stored_memories.items():
        if stats.quotas:
            yield [("quota       ", _DIM), (f"{space} {_against_quota(stats, space, memories)}", "")]
    yield [("model       ", _DIM), (stats.model or "none yet", "")]
    beside = f"  schema {stats.schema_version}, {stats.index_bytes / 1e6:.1f} MB of index files"
    yield [("size        ", _DIM), (f"{stats.size_bytes / 1e6:.1f} MB", ""), (beside, _DIM)]
    if stats.vector_index is not None:
        yield [("vector index", _DIM), (f" {stats.vector_index}", "")]


def _against_quota(stats: Stats, space: str, memories: int) -> str:
    """What a space holds, of what it may hold."""
    held = (("quota_memories", memories, "memories"), ("quota_bytes", stats.stored_bytes.get(space, 0), "bytes"))
    return ", ".join(
        f"{number:,} of {stats.quotas[name]:,} {unit} ({number / stats.quotas[name]:.0%})"
        if name in stats.quotas
        else f"{number:,} {unit}"
        for name, number, unit in held
    )


_MARKS = {"fine": ("ok       ", _DIM), "note": ("note     ", "yellow"), "problem": ("problem  ", "bold red")}


def health_lines(health: Health) -> Iterator[Line]:
    for each in health.findings:
        yield [("fixed    ", "green") if each.fixed else _MARKS[each.level], (f"{each.check:<12}", ""), (each.text, "")]
        if each.remedy and not each.fixed:
            yield [(" " * 21, ""), (each.remedy, _DIM)]
    problems = len(health.problems)
    yield [(counted(problems, "problem") if problems else "no problems", "bold red" if problems else "")]


def member_lines(members: Sequence[Member]) -> Iterator[Line]:
    for each in members:
        yield [(f"{each.number:>3}  ", _DIM), (each.address, _ID)]


def node_lines(nodes: Sequence[NodeStatus]) -> Iterator[Line]:
    for each in nodes:
        counts = f"{counted(each.spaces, 'space')}, {counted(each.memories, 'memory', 'memories')}"
        yield [(f"{each.number:>3}  ", _DIM), (each.address, _ID), ("  ", ""), (each.problem or counts, "")]
        for space in each.arriving:
            yield [INDENT, (f"space {space} is being moved here, or its move was broken off", _DIM)]


def moved_lines(moved: Moved) -> Iterator[Line]:
    yield [("moved  ", _DIM), (moved.space, _ID), (f"  from {moved.source} to {moved.target}", "")]
    yield [INDENT, (f"{moved.copied:,} rows copied, {moved.compared:,} compared at the end", _DIM)]


def salvage_lines(salvaged: Salvage) -> Iterator[Line]:
    yield [("salvaged  ", _DIM), (str(salvaged.path), _ID)]
    for name, number in salvaged.copied.items():
        lost = salvaged.lost.get(name, 0)
        yield [INDENT, (f"{name}: {number:,} copied" + (f", {lost:,} lost" if lost else ""), _DIM)]
    for name, number in salvaged.lost.items():
        if name not in salvaged.copied:
            yield [INDENT, (f"{name}: {number:,} lost", _DIM)]
    if salvaged.lost_memories:
        yield [INDENT, (f"lost memories: {' '.join(salvaged.lost_memories)}", "")]
    yield from _note_lines(salvaged.notes)


def backup_lines(made: BackupResult) -> Iterator[Line]:
    backup = made.backup
    yield [(f"{backup.kind} backup  ", _DIM), (str(backup.path), _ID)]
    yield [INDENT, (f"{_held(backup)}, {backup.size_bytes / 1e6:.1f} MB, checked", _DIM)]
    for path in made.removed:
        yield [("removed  ", _DIM), (str(path), "")]
    yield from _note_lines(made.notes)


def copied_lines(copied: Copied) -> Iterator[Line]:
    yield [("copied  ", _DIM), (copied.source, _ID), ("  to  ", _DIM), (copied.target, _ID)]
    new = f"{count_memories(copied.added)} added, {copied.updated:,} changed"
    compared = "compared by counts and checksums" if copied.verified else "not compared: it has others, too"
    yield [INDENT, (f"{new}; {compared}", "")]
    held = [f"{sort.replace('_', ' ')} {number:,}" for sort, number in copied.counts.items() if number]
    if held:
        yield [INDENT, (", ".join(held), _DIM)]


def restored_lines(backup: Backup, store: str) -> Iterator[Line]:
    yield [("restored  ", _DIM), (store, _ID)]
    yield [INDENT, (f"{_held(backup)}, as of {_local(backup.created)}", _DIM)]


def _held(backup: Backup) -> str:
    return f"{count_memories(backup.memories)}, {backup.forgotten:,} forgotten, {counted(backup.seq, 'event')}"


def audit_lines(found: Iterable[MemoryWithSecrets]) -> Iterator[Line]:
    """Each memory that has secrets, and where."""
    for each in found:
        yield [(each.id, _ID), (f"  {each.space}{', forgotten' if each.forgotten else ''}", _DIM)]
        for place in each.places:
            yield [INDENT, (f"{place.field}: {place.kind}, {place.characters}", ""), (f"  {place.masked}", _DIM)]


def settings_lines(settings: Settings) -> Iterator[Line]:
    from nacre.config.settings import MEANINGS

    for name in settings.__dataclass_fields__:
        sourced = getattr(settings, name)
        shown = _setting(sourced.value, ":" if name == "namespace_weights" else "=")
        yield [(f"{name:<23}", _BOLD), (shown, ""), (f"  ({sourced.source}): {MEANINGS[name]}", _DIM)]


def _setting(value: object, joint: str) -> str:
    """A setting as the user writes it. `joint` stands between a name and its number."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{name}{joint}{rate:g}" for name, rate in value.items()) or "default"
    return str(value)


def _printable(text: str) -> str:
    """Replace control characters."""
    return _CONTROL.sub("\ufffd", text)


def _flat(text: str) -> str:
    return " ".join(text.splitlines())


def day(moment: datetime) -> str:
    return _local(moment)[:10]


def _local(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
