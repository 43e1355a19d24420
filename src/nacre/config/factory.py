"""Opens a memory: the only place that joins a store, an embedder, a reranker and an engine.

The library, the command line and the MCP server all open memories here, so that the same question gives the same
ranking through each of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from nacre import validation
from nacre.config import custom_models, embedders, keys, nodes
from nacre.config.settings import data_folder
from nacre.engine.engine import Nacre, system_clock
from nacre.engine.recall_log import DELIVERED_MINUTES, LOG_DAYS, LOG_MEGABYTES
from nacre.errors import EmbedderMismatch, InvalidInput, StoreUnavailable
from nacre.intake import copying
from nacre.interfaces import Embedder, FurtherEmbedder, Reranker, Store
from nacre.runtime import private_files
from nacre.storage.sqlite import BUSY_TIMEOUT_MS, SqliteStore
from nacre.types.backups import Backup
from nacre.types.copying import Copied
from nacre.types.facts import FactType
from nacre.types.health import Health, Salvage
from nacre.types.hnsw import USUAL_HNSW, Hnsw
from nacre.types.key import Key
from nacre.types.location import (
    CONNECTIONS_MAX,
    CONNECTIONS_MOST,
    SCHEMA,
    STALENESS_MOST_S,
    STALENESS_S,
    Address,
    Location,
    Nodes,
    StoreName,
    address,
    named,
    replicas_of,
    schema_name,
)
from nacre.types.memory import DEFAULT_SPACE, Progress
from nacre.types.quotas import NO_QUOTAS, Quotas
from nacre.types.secrets import DEFAULT_SECRET_POLICY, SecretPolicy
from nacre.validation import LIMITS, Limits

if TYPE_CHECKING:
    from nacre.config.settings import Settings
    from nacre.storage.nodes import NodesStore
    from nacre.storage.postgres import PostgresNode

_NO_MEMORIES = "no memories yet"  # begins the note on a store that does not exist


@dataclass(frozen=True, slots=True)
class Models:
    """The models of an engine. Several engines may share them, so that each model is in memory once."""

    embedder: Embedder | None
    reranker: Reranker | None
    further: FurtherEmbedder | None = None


class _OfFiles(NamedTuple):
    """What only a store in a file is opened with."""

    hnsw: Hnsw
    page_checksums: bool
    key: Key | None


class _OfPostgres(NamedTuple):
    """What only a store in PostgreSQL is opened with."""

    schema: str = SCHEMA
    connections: int = CONNECTIONS_MAX
    replica: tuple[Address, ...] = ()
    staleness_s: float = STALENESS_S


def open_store(
    path: str | os.PathLike[str] | Sequence[str],
    *,
    space: str = DEFAULT_SPACE,
    confined: bool | Sequence[str] = False,
    embedder: str | Embedder | None = "minilm",
    reranker: Literal["auto"] | Reranker | None = "auto",
    multilingual: embedders.Multilingual | FurtherEmbedder = "auto",
    threads: int = 0,
    busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    limits: Limits = LIMITS,
    create: bool = True,
    switch_model: bool = False,
    time_zone: tzinfo | None = None,
    clock: Callable[[], datetime] | None = None,
    extract: bool = True,
    defer_embeddings: bool = False,
    token_vectors: bool = True,
    decay_rates: Mapping[FactType, float] | None = None,
    log: bool = True,
    log_days: int = LOG_DAYS,
    log_megabytes: int = LOG_MEGABYTES,
    delivered_minutes: int = DELIVERED_MINUTES,
    hnsw: Hnsw = USUAL_HNSW,
    page_checksums: bool = True,
    namespace_weights: Mapping[str, float] | None = None,
    secrets: SecretPolicy = DEFAULT_SECRET_POLICY,
    key: str | Key | None = None,
    quotas: Quotas = NO_QUOTAS,
    schema: str = SCHEMA,
    connections: int = CONNECTIONS_MAX,
    replica: str | Sequence[str] | None = None,
    staleness_s: float = STALENESS_S,
) -> Nacre:
    """Open a store. A missing one is created, unless `create=False`: then the store is empty, which searches note.

    Args:
        path: The file that holds the memories, or the address of a database of PostgreSQL, such as
            "postgresql://user@host/database". What the address leaves out comes from the environment (PGHOST, PGUSER,
            …), and the password from ~/.pgpass, as in other programs.
        space: The space to remember in and to search.
        confined: A confined engine can neither read nor change another space, even by id. True confines it to `space`;
            a list of spaces, of which `space` is one, confines it to these.
        embedder: "minilm", "minilm-cuda", "hashing" or "none"; "onnx:DIR" is a sentence-transformers style folder, and
            "http://127.0.0.1:11434/v1#MODEL" an endpoint like OpenAI's; or an object with the methods of
            `nacre.interfaces.Embedder`. None: keyword search only.
        reranker: An object with the methods of `nacre.interfaces.Reranker`, or None. "auto" is Nacre's own reranker
            where the embedder is MiniLM, a folder or an endpoint, and none for any other embedder.
        multilingual: A second model, which finds what was written in one language by a question in another. "auto" is
            the one of the extra `multilingual` beside MiniLM, where it is installed, and none beside any other
            embedder; "off" is none. An object with the methods of `nacre.interfaces.FurtherEmbedder` stands beside any.
        threads: Threads of each model; 0 means one for each core.
        busy_timeout_ms: How long a write waits for another process.
        limits: Sizes that are refused when exceeded.
        create: Whether a missing file or schema is created. If not, nothing can be remembered; open it again once it
            exists.
        switch_model: Open a store whose vectors come from another model, in order to call `reembed` on it.
        time_zone: The user's, for words like "yesterday"; None means the system's.
        clock: Gives the current time as an aware datetime; None means the system's clock. Tests and replays pass their
            own, to remember and to search as if at another time.
        extract: Whether facts are extracted from texts.
        defer_embeddings: Remember without vectors; `reembed` adds them later. Until then keyword search alone finds
            new memories, and searches say how many are waiting.
        token_vectors: Whether token vectors are stored with the vectors, and compared in searches.
        decay_rates: How fast facts of these types fade, per day, where it differs from the default.
        log: Whether searches are kept in the recall log, for `log_days` and in at most `log_megabytes` of the store.
        delivered_minutes: How long a context leaves out what its session was given; 0: nothing is left out.
        hnsw: Of a store in a file, parameters of the graphs of large spaces. Give all processes of a store the same.
        page_checksums: Whether a new file gets a checksum on each page, so that damage is an error and never a wrong
            answer. Only Nacre keeps them right: other programs may read such a file, but not write it.
        namespace_weights: Factors by namespace for searches whose recipe and lens have none.
        secrets: What becomes of keys, tokens, passwords, card and account numbers in what is to be stored: "warn"
            stores them and says so in the result, "redact" stores their kind in their place, "refuse" raises
            InvalidInput, "off" does not look for them.
        key: The key of an encrypted store, 64 hexadecimal digits. A new store is encrypted with it.
        quotas: How much a space may hold, and how fast a session may write. Each process checks its own, so give all
            of them the same.
        schema: In PostgreSQL, the schema that holds the tables. One database may have several stores.
        connections: In PostgreSQL, how many connections this store may have at once. A call that needs one more waits.
        replica: In PostgreSQL, the address of a standby that answers searches, or several, which take turns. One that
            is away or too far behind is left out; where all are, the primary answers.
        staleness_s: In PostgreSQL, by how many seconds a search on a replica may miss what other processes have
            written. What this one has written is always found.
    """
    location = _location(path)
    # Before a file exists.
    validation.opening(space, threads, busy_timeout_ms, limits, log_days, log_megabytes, delivered_minutes)
    validation.access(space, confined, limits)
    for name, flag in (
        ("create", create),
        ("switch_model", switch_model),
        ("extract", extract),
        ("defer_embeddings", defer_embeddings),
        ("token_vectors", token_vectors),
        ("log", log),
        ("page_checksums", page_checksums),
    ):
        validation.yes_or_no(name, flag)
    if time_zone is not None:
        validation.time_zone("time_zone", time_zone)
    rates = validation.decay_rates({} if decay_rates is None else decay_rates)
    parameters = validation.hnsw(hnsw)
    limited = validation.quotas(quotas)
    policy = validation.secret_policy("secrets", secrets)
    own_weights = {} if namespace_weights is None else namespace_weights
    weights = validation.namespace_weights("namespace_weights", own_weights, limits)
    now = system_clock if clock is None else _checked_clock(clock)
    key = _key("key", key)  # under the same name, so that a traceback with values does not show it
    validation.whole("connections", connections, 1, CONNECTIONS_MOST)
    validation.number("staleness_s", staleness_s, 0, STALENESS_MOST_S)
    of_postgres = _OfPostgres(
        schema_name("schema", schema), connections, replicas_of("replica", replica), float(staleness_s)
    )
    models = load_models(embedder, reranker, threads, multilingual)
    store, note = _store(
        location, busy_timeout_ms, create, limited, _OfFiles(parameters, page_checksums, key), of_postgres
    )
    try:
        embedder = models.embedder
        _check_model(location, store.model(), embedder, switch_model=switch_model)
        return Nacre(
            store,
            embedder.held_to(store, space) if isinstance(embedder, embedders.BesideTokens) else embedder,
            further=models.further,
            reranker=models.reranker,
            space=space,
            confined=confined,
            limits=limits,
            zone=time_zone,
            extract=extract,
            defer_embeddings=defer_embeddings,
            token_vectors=token_vectors,
            decay_rates=rates,
            log=log and note is None,
            log_days=log_days,
            log_megabytes=log_megabytes,
            delivered_minutes=delivered_minutes,
            namespace_weights=weights,
            secrets=policy,
            clock=now,
            notes=() if note is None else (note,),
        )
    except BaseException:
        store.close()
        raise


def restore_backup(
    backup: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
    key: str | Key | None = None,
) -> Backup:
    """Make a store of a backup, and of the backups beside it that it continues. Returns what the backup says of itself.

    Everything is checked before the store is put in its place. One that is there already is replaced only with
    `force`; processes that have it open go on with the restored one. `key` is that of an encrypted store, which its
    backups have as well.
    """
    key = _key("key", key)
    from nacre.storage.sqlite.backup.restore import restore

    source = validation.file_path("backup", backup)
    target = _checked_path(_only_file(path, "a backup is restored to a file; name one as the store"))
    return restore(source, target, force=force, progress=progress or (lambda _: None), key=key)


def check_store(
    path: str | os.PathLike[str] | Sequence[str],
    *,
    fix: bool = False,
    key: str | Key | None = None,
    schema: str = SCHEMA,
    replica: str | Sequence[str] | None = None,
) -> Health:
    """Check a store, however damaged. `fix` repairs what can be made from the memories.

    `path`, `schema` and `replica` are as in `open_store`. A file that cannot be opened is checked, too; a server has
    to answer.
    """
    key, fix = _key("key", key), validation.yes_or_no("fix", fix)
    location = _location(path)
    of_postgres = _OfPostgres(schema_name("schema", schema), replica=replicas_of("replica", replica))
    _check_options(location, _OfFiles(USUAL_HNSW, True, key), of_postgres)
    if not isinstance(location, Path):
        store = _postgres_store(location, BUSY_TIMEOUT_MS, create=False, quotas=NO_QUOTAS, of_postgres=of_postgres)
        if store is None:
            raise StoreUnavailable(f"store: {location} has no store in the schema {schema}; check both names")
        with closing(store):
            return Health(tuple(store.check(system_clock(), fix=fix)))
    from nacre.storage.sqlite.doctor import diagnose

    return Health(tuple(diagnose(location, key, system_clock(), fix=fix)))


def salvage_store(path: str | os.PathLike[str], to: str | os.PathLike[str], *, key: str | Key | None = None) -> Salvage:
    """Copy what can be read of a damaged store in a file into a new one. The damaged file stays as it is."""
    key = _key("key", key)
    from nacre.storage.sqlite.salvage import salvage

    source = _only_file(path, "only files are salvaged; restore the last backup of the database")
    return salvage(_checked_path(source), validation.file_path("to", to), key)


def copy_store(
    source: str | os.PathLike[str] | Sequence[str],
    target: str | os.PathLike[str] | Sequence[str],
    *,
    merge: bool = False,
    key: str | Key | None = None,
    target_key: str | Key | None = None,
    schema: str = SCHEMA,
    target_schema: str = SCHEMA,
    busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    progress: Callable[[Progress], None] | None = None,
) -> Copied:
    """Copy all of a store into another one, between files and databases, and compare both in the end.

    The copy is of one moment, while others write to the source. One that was interrupted goes on by repeating it, and
    repeating a finished one takes over what has changed since. A target that has other memories is refused, unless
    `merge` is given: then it keeps its own, as with an import. `key` and `schema` are those of the source.
    """
    validation.busy_timeout(busy_timeout_ms)
    merge = validation.yes_or_no("merge", merge)
    asked = (
        ("source", source, _key("key", key), schema_name("schema", schema)),
        ("target", target, _key("target_key", target_key), schema_name("target_schema", target_schema)),
    )
    stores: list[Store] = []
    names: list[str] = []
    with ExitStack() as stack:
        for field, path, its_key, its_schema in asked:
            location = address(field, path) or _checked_path(path)
            of_files, of_postgres = _OfFiles(USUAL_HNSW, True, its_key), _OfPostgres(its_schema, CONNECTIONS_MAX)
            store, note = _store(location, busy_timeout_ms, field == "target", NO_QUOTAS, of_files, of_postgres)
            stack.enter_context(closing(store))
            if note is not None and note.startswith(_NO_MEMORIES):
                raise StoreUnavailable(f"source: {note.removeprefix(_NO_MEMORIES + ': ')}; check the name")
            stores.append(store)
            names.append(str(location) if its_schema == SCHEMA else f"{location} (schema {its_schema})")
        work = copying.merge if merge else copying.copy
        return work(stores[0], stores[1], (names[0], names[1]), system_clock(), progress or (lambda _: None))


def _only_file(path: StoreName, remedy: str) -> StoreName:
    """The name of a store that has to be in a file."""
    location = address("path", path)
    if location is not None:
        raise InvalidInput("store", f"{location} is no file; {remedy}")
    return path


def _location(path: StoreName) -> Location:
    return address("path", path) or _checked_path(path)


def _checked_path(path: StoreName) -> Path:
    """The path of a store, if it can name a file at all."""
    named = validation.file_path("path", cast("str", path))  # anything else is refused there
    try:
        named.stat()
    except (FileNotFoundError, NotADirectoryError):  # it may be created, or the store says what is in the way
        pass
    except OSError as error:
        told = f"{validation.shown(str(named))} cannot be opened ({error.strerror})"
        raise StoreUnavailable(f"store: {told}; choose another path") from None
    return named


def _key(field: str, given: str | Key | None) -> Key | None:
    return given if given is None or isinstance(given, Key) else Key(given, field)


def rekey_store(
    path: str | os.PathLike[str],
    *,
    new_key: str | Key | None,
    key: str | Key | None = None,
    busy_timeout_ms: int = BUSY_TIMEOUT_MS,
) -> None:
    """Change the key of a store that no other process has open, encrypt a plain one, or decrypt it.

    It is safe to kill the process at any moment: the store then has the old key or the new one.

    Args:
        path: The file that holds the memories.
        new_key: The key to encrypt with; None decrypts it.
        key: The present key; None if the store is plain.
        busy_timeout_ms: How long to wait for other processes.
    """
    validation.busy_timeout(busy_timeout_ms)
    key, new_key = _key("key", key), _key("new_key", new_key)
    from nacre.storage.sqlite.rekey import rekey

    file = _only_file(path, "only files are encrypted by Nacre; encrypt the disk of the server")
    rekey(_checked_path(file), key, new_key, busy_timeout_ms)


def _store(
    location: Location,
    busy_timeout_ms: int,
    create: bool,
    quotas: Quotas,
    of_files: _OfFiles,
    of_postgres: _OfPostgres,
) -> tuple[Store, str | None]:
    """The store, and a note if nothing can be written to it."""
    _check_options(location, of_files, of_postgres)
    store: SqliteStore | PostgresNode | NodesStore | None
    if isinstance(location, Path):
        name = str(location)
        store = _file_store(location, busy_timeout_ms, create, quotas, of_files)
    else:
        name = f"{location} (schema {of_postgres.schema})"
        store = _postgres_store(location, busy_timeout_ms, create, quotas, of_postgres)
    if store is not None:
        return store, "the store is read-only: nothing is logged" if store.read_only else None
    from nacre.storage.reference.missing import MissingStore

    return MissingStore(name), f"{_NO_MEMORIES}: the store {name} does not exist"


def _check_options(location: Location, of_files: _OfFiles, of_postgres: _OfPostgres) -> None:
    """Raise InvalidInput for an option that would have no effect on a store of this kind."""
    if isinstance(location, Path):
        for name, given in of_postgres._asdict().items():
            if given != _OfPostgres._field_defaults[name]:
                raise InvalidInput(name, f"is for stores in PostgreSQL, and {location} is a file; leave it out")
        return
    if isinstance(location, Nodes) and of_postgres.replica:
        raise InvalidInput("replica", f"is for stores on one node, and {location} are several; leave it out")
    if of_files.key is not None:
        raise InvalidInput("key", f"is for stores in files, and {location} is none; encrypt the disk of the server")
    if of_files.hnsw != USUAL_HNSW:
        raise InvalidInput("hnsw", f"is for stores in files, and {location} is none; leave it out")
    if not of_files.page_checksums:
        raise InvalidInput(
            "page_checksums",
            f"is for stores in files, and {location} is none; PostgreSQL has checksums of its own (`data_checksums`)",
        )


def _file_store(
    path: Path, busy_timeout_ms: int, create: bool, quotas: Quotas, of_files: _OfFiles
) -> SqliteStore | None:
    """None if there is no file, and none is to be made. A path where no file can be created is refused."""
    if create or path.exists() or not (path.parent.is_dir() or path.parent == data_folder(os.environ)):
        return SqliteStore(path, busy_timeout_ms, create, of_files.hnsw, of_files.key, quotas, of_files.page_checksums)
    return None


def _postgres_store(
    location: Address | Nodes, busy_timeout_ms: int, create: bool, quotas: Quotas, of_postgres: _OfPostgres
) -> PostgresNode | NodesStore | None:
    """None if the schema has no store, and none is to be made."""
    opened = partial(
        nodes.open_node,
        schema=of_postgres.schema,
        create=create,
        busy_timeout_ms=busy_timeout_ms,
        connections=of_postgres.connections,
        quotas=quotas,
        replicas=of_postgres.replica,
        staleness_s=of_postgres.staleness_s,
    )
    try:
        if isinstance(location, Nodes):
            return nodes.open_nodes(location, opened, create=create, busy_timeout_ms=busy_timeout_ms)
        return nodes.alone(opened(location), location)
    except StoreUnavailable as error:
        if nodes.is_missing(error):
            return None
        raise


def open_from_settings(
    settings: Settings,
    *,
    models: Models | None = None,
    space: str | None = None,
    confined: bool | Sequence[str] = False,
    create: bool = True,
    switch_model: bool = False,
    defer_embeddings: bool = False,
    log: bool = True,
    creates: str | None = None,
) -> Nacre:
    """Open the store that the settings name.

    `models` are shared with other engines; without them the engine loads its own. `space` replaces the space of the
    settings; `confined` is as in `open_store`. `log=False` writes no recall log, whatever the settings say. The default
    data folder is created with the store; a folder that the user named must exist. `creates` completes the note on a
    missing store: what creates it.
    """
    if models is None:
        models = models_from_settings(settings)
    location = settings.store.value
    if create and isinstance(location, Path) and settings.store.source == "default":
        private_files.create_folder(location.parent, parents=True)
    memory = open_store(
        named(location),
        space=settings.space.value if space is None else space,
        confined=confined,
        embedder=models.embedder,
        reranker=models.reranker,
        multilingual=models.further or "off",
        threads=settings.threads.value,
        busy_timeout_ms=settings.busy_timeout_ms.value,
        create=create,
        switch_model=switch_model,
        extract=settings.extract.value,
        defer_embeddings=defer_embeddings,
        token_vectors=settings.token_vectors.value,
        decay_rates=settings.decay_rates.value,
        log=log and settings.log.value,
        log_days=settings.log_days.value,
        log_megabytes=settings.log_megabytes.value,
        delivered_minutes=settings.delivered_minutes.value,
        namespace_weights=settings.namespace_weights.value,
        secrets=settings.secrets.value,
        key=keys.of_settings(settings, os.environ),
        limits=replace(LIMITS, text_chars_max=settings.text_chars_max.value),
        quotas=Quotas(
            memories_max=settings.quota_memories.value,
            bytes_max=settings.quota_bytes.value,
            session_writes_max=settings.quota_session_writes.value,
        ),
        **(_file_options(settings) if isinstance(location, Path) else _postgres_options(settings)),
    )
    if creates is not None:
        memory.notes = tuple(f"{each}; {creates}" if each.startswith(_NO_MEMORIES) else each for each in memory.notes)
    return memory


def check_from_settings(settings: Settings, *, fix: bool = False) -> Health:
    """Check the store that the settings name."""
    location, key = settings.store.value, keys.of_settings(settings, os.environ)
    if isinstance(location, Path):
        return check_store(location, fix=fix, key=key)
    options = _postgres_options(settings)
    return check_store(named(location), fix=fix, key=key, schema=options["schema"], replica=options["replica"])


def _file_options(settings: Settings) -> dict[str, Any]:
    """Settings that only stores in files have. They may be there for another store than this."""
    hnsw = Hnsw(
        connectivity=settings.hnsw_connectivity.value,
        expansion_add=settings.hnsw_expansion_add.value,
        expansion_search=settings.hnsw_expansion_search.value,
    )
    return {"hnsw": hnsw, "page_checksums": settings.page_checksums.value}


def _postgres_options(settings: Settings) -> dict[str, Any]:
    """The same of stores in PostgreSQL."""
    return {
        "schema": settings.postgres_schema.value,
        "connections": settings.postgres_connections.value,
        "replica": [each.dsn for each in settings.postgres_replica.value],
        "staleness_s": settings.postgres_staleness_s.value,
    }


def models_from_settings(settings: Settings) -> Models:
    """The models that the settings name."""
    return load_models(settings.embedder.value, "auto", settings.threads.value, settings.multilingual.value)


def load_models(
    embedder: str | Embedder | None,
    reranker: Literal["auto"] | Reranker | None,
    threads: int,
    multilingual: embedders.Multilingual | FurtherEmbedder = "auto",
) -> Models:
    """The models of an engine. Their files are read when they are first needed."""
    chosen = embedders.named(embedder, threads) if isinstance(embedder, str) else embedder
    if chosen is not None and chosen is embedder:
        custom_models.check_embedder(chosen)
        custom_models.check_vectors(chosen)
    further = embedders.beside(chosen, multilingual, threads)
    if reranker == "auto":
        return Models(chosen, _reranker_for(chosen, threads), further)
    if isinstance(reranker, str):
        raise InvalidInput("reranker", f"{reranker!r} is unknown; allowed: auto, None, or a reranker of your own")
    if reranker is not None:
        custom_models.check_reranker(reranker)
    return Models(chosen, reranker, further)


def _reranker_for(embedder: Embedder | None, threads: int) -> Reranker | None:
    """Nacre's own reranker where the embedder is MiniLM, for which its weight was chosen, or one that settings name."""
    if embedder is None:
        return None
    from nacre.embedders.minilm import MiniLM

    if not isinstance(embedder, MiniLM | embedders.BesideTokens):
        return None
    from nacre.rerankers.nacre_rerank import NacreRerank

    return NacreRerank(threads=threads or None)


def _check_model(location: Location, stored: str | None, embedder: Embedder | None, *, switch_model: bool) -> None:
    """Vectors of two models cannot be compared."""
    if embedder is None or switch_model or stored in (None, embedder.fingerprint):
        return
    raise EmbedderMismatch(
        f"embedder: the vectors of {location} come from {stored}, not from {embedder.fingerprint}; "
        "run `nacre reembed` to compute them again, or open the store with the model it was written with"
    )


def _checked_clock(clock: Callable[[], datetime]) -> Callable[[], datetime]:
    """The clock in UTC. It is called once here, so that a wrong one is refused before a file is created."""

    def now() -> datetime:
        at = clock() if callable(clock) else None
        if not isinstance(at, datetime) or at.utcoffset() is None:
            raise InvalidInput(
                "clock",
                f"gives {validation.shown(at)}; it must be a callable that gives a datetime with a time zone, "
                "such as lambda: datetime.now(UTC)",
            )
        return at.astimezone(UTC)

    now()
    return now
