"""Settings, and where each came from. The first of flag, environment, config file and default counts.

The config file is TOML with the names below, for example

    store = "~/notes/agent.db"  # or an address: "postgresql://user@host/database"
    space = "work"
    embedder = "minilm"
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from nacre.analysis import encodings
from nacre.config import project_space
from nacre.errors import InvalidInput

# The command line reads the embedder's name before the rest of Nacre is imported, so imports of Nacre are late here.
if TYPE_CHECKING:
    from nacre.config.embedders import Multilingual
    from nacre.types.facts import FactType
    from nacre.types.location import Address, Location
    from nacre.types.secrets import SecretPolicy

T = TypeVar("T")

EMBEDDER = "minilm"  # unless another is named
FOLDER, ENDPOINT = "onnx:", ("http://", "https://")  # what the names of other models begin with
_APP = "nacre"  # the name of its folders


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value and where it came from."""

    value: T
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    store: Sourced[Location]
    space: Sourced[str]
    embedder: Sourced[str]
    multilingual: Sourced[Multilingual]
    threads: Sourced[int]
    busy_timeout_ms: Sourced[int]
    key_file: Sourced[str]
    postgres_schema: Sourced[str]
    postgres_connections: Sourced[int]
    postgres_replica: Sourced[tuple[Address, ...]]
    postgres_staleness_s: Sourced[float]
    token_vectors: Sourced[bool]
    extract: Sourced[bool]
    decay_rates: Sourced[Mapping[FactType, float]]
    log: Sourced[bool]
    log_days: Sourced[int]
    log_megabytes: Sourced[int]
    delivered_minutes: Sourced[int]
    hnsw_connectivity: Sourced[int]
    hnsw_expansion_add: Sourced[int]
    hnsw_expansion_search: Sourced[int]
    page_checksums: Sourced[bool]
    namespace_weights: Sourced[Mapping[str, float]]
    secrets: Sourced[SecretPolicy]
    text_chars_max: Sourced[int]
    quota_memories: Sourced[int]
    quota_bytes: Sourced[int]
    quota_session_writes: Sourced[int]


MEANINGS: Mapping[str, str] = {
    "store": "the file that holds the memories, or the address of a database: postgresql://user@host/database",
    "space": "the space to remember in and to search; folder:PATH is the space of a project",
    "embedder": "the model that embeds texts: minilm, minilm-cuda (on a GPU), hashing, none, onnx:DIR, or an endpoint http://…#MODEL",
    "multilingual": "a second model for other languages than English: auto uses the installed one, off uses none",
    "threads": "threads of the embedder and of the reranker; 0: one for each core",
    "busy_timeout_ms": "how long a write waits for another process, in milliseconds",
    "key_file": "the file of the key of an encrypted store, or keyring:NAME",
    "postgres_schema": "in PostgreSQL, the schema that holds the tables",
    "postgres_connections": "in PostgreSQL, how many connections a process may have at most",
    "postgres_replica": "in PostgreSQL, addresses of standbys that answer searches, with spaces between them",
    "postgres_staleness_s": "in PostgreSQL, by how many seconds a search on a replica may lag behind",
    "token_vectors": "whether token vectors are stored and compared in searches: on or off",
    "extract": "whether facts are extracted from texts: on or off",
    "decay_rates": "how fast types of facts fade per day, where not the default: state=0.2,kv=0.01",
    "log": "whether searches are kept in the recall log: on or off",
    "log_days": "how long searches stay in the recall log, in days",
    "log_megabytes": "how much of the store the recall log may take; the first searches go first",
    "delivered_minutes": "how long a context leaves out what its session was given, in minutes; 0: nothing",
    "hnsw_connectivity": "in a file, neighbours of a passage in the vector graph of a large space",
    "hnsw_expansion_add": "in a file, candidates looked at for each passage that is added to it",
    "hnsw_expansion_search": "in a file, candidates looked at in each search of it",
    "page_checksums": "whether a new file gets a checksum on each page: on or off",
    "namespace_weights": "factors on the scores of namespaces, from 0.5 to 2: decisions:1.5,config:0.8",
    "secrets": "what becomes of keys, tokens and passwords in new memories: warn, redact, refuse or off",
    "text_chars_max": "the longest text that is stored, in characters",
    "quota_memories": "how many memories a space may hold, forgotten ones included; 0: any number",
    "quota_bytes": "how many bytes of text, metadata and history a space may hold; 0: any number",
    "quota_session_writes": "how many memories a session may write in a minute; 0: any number",
}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"NACRE_{name.upper()}"


def option(name: str) -> str:
    """The option of a setting on the command line."""
    return f"--{name.replace('_', '-')}"


def load(flags: Mapping[str, object], environment: Mapping[str, str]) -> Settings:
    """All settings. `flags` are those of the command line; None means not given."""
    from nacre import validation
    from nacre.config import keys
    from nacre.engine.recall_log import DELIVERED_MINUTES, LOG_DAYS, LOG_MEGABYTES
    from nacre.storage.sqlite import BUSY_TIMEOUT_MS
    from nacre.types import location
    from nacre.types.hnsw import USUAL_HNSW
    from nacre.types.memory import DEFAULT_SPACE
    from nacre.types.quotas import NO_QUOTAS
    from nacre.types.secrets import DEFAULT_SECRET_POLICY

    path = config_path(environment)
    file = _read(path)
    readers: dict[str, tuple[Callable[[str, Any], Any], object]] = {
        "store": (_store, data_folder(environment) / "nacre.db"),
        "space": (_space, DEFAULT_SPACE),
        "embedder": (_embedder, EMBEDDER),
        "multilingual": (_multilingual, "auto"),
        "threads": (_count, 0),
        "busy_timeout_ms": (_count, BUSY_TIMEOUT_MS),
        "key_file": (_key_file, ""),
        "postgres_schema": (location.schema_name, location.SCHEMA),
        "postgres_connections": (_within(1, location.CONNECTIONS_MOST), location.CONNECTIONS_MAX),
        "postgres_replica": (location.replicas_of, ()),
        "postgres_staleness_s": (_seconds, location.STALENESS_S),
        "token_vectors": (_switch, True),
        "extract": (_switch, True),
        "decay_rates": (_rates, ""),
        "log": (_switch, True),
        "log_days": (_within(1, validation.LOG_DAYS_MAX), LOG_DAYS),
        "log_megabytes": (_within(1, validation.LOG_MEGABYTES_MAX), LOG_MEGABYTES),
        "delivered_minutes": (_within(0, validation.DELIVERED_MINUTES_MAX), DELIVERED_MINUTES),
        **{
            f"hnsw_{name}": (_within(*bounds), getattr(USUAL_HNSW, name))
            for name, bounds in validation.HNSW_BOUNDS.items()
        },
        "page_checksums": (_switch, True),
        "namespace_weights": (_namespace_weights, ""),
        "secrets": (_secrets, DEFAULT_SECRET_POLICY),
        "text_chars_max": (_within(1, validation.TEXT_CHARS_MOST), validation.LIMITS.text_chars_max),
        "quota_memories": (_count, NO_QUOTAS.memories_max),
        "quota_bytes": (_count, NO_QUOTAS.bytes_max),
        "quota_session_writes": (_count, NO_QUOTAS.session_writes_max),
    }
    unknown = sorted(set(file) - readers.keys())
    if unknown:
        raise InvalidInput(f"{path}: {unknown[0]}", f"is not a setting; allowed: {', '.join(readers)}")
    found: dict[str, Any] = {}
    for name, (read, default) in readers.items():
        field, value, source = _given(name, flags, environment, file, path) or (name, default, "default")
        found[name] = Sourced(read(field, value), source)
    if environment.get(keys.VARIABLE) and not found["key_file"].source.startswith("flag"):
        found["key_file"] = Sourced("", f"environment {keys.VARIABLE}")  # a setting is shown, a key is not
    assert found.keys() == {field.name for field in fields(Settings)}
    return Settings(**found)


def models(flags: Mapping[str, object], environment: Mapping[str, str]) -> tuple[object, bool]:
    """The name of the embedder, not checked, and whether token vectors are stored and compared."""
    path = config_path(environment)
    file = _read(path)
    embedder = _given("embedder", flags, environment, file, path)
    tokens = _given("token_vectors", flags, environment, file, path)
    return EMBEDDER if embedder is None else embedder[1], tokens is None or _switch(*tokens[:2])


def _given(
    name: str, flags: Mapping[str, object], environment: Mapping[str, str], file: Mapping[str, object], path: Path
) -> tuple[str, object, str] | None:
    """The name of a setting where it is given, its value, and its source; None if it is not given."""
    if flags.get(name) is not None:
        return option(name), flags[name], f"flag {option(name)}"
    if environment.get(variable(name)):
        return variable(name), environment[variable(name)], f"environment {variable(name)}"
    if name in file:
        return f"{path}: {name}", file[name], f"file {path}"
    return None


def config_path(environment: Mapping[str, str]) -> Path:
    """The config file: NACRE_CONFIG, or config.toml in the platform's folder for configuration."""
    given = environment.get("NACRE_CONFIG")
    if given:
        return Path(given).expanduser()
    return _folder(environment, "config") / "config.toml"


def data_folder(environment: Mapping[str, str]) -> Path:
    """The platform's folder for data."""
    return _folder(environment, "data")


def _folder(environment: Mapping[str, str], purpose: Literal["config", "data"]) -> Path:
    """The folder that a variable names, or the platform's. XDG variables count on macOS, too."""
    windows = "APPDATA" if purpose == "config" else "LOCALAPPDATA"
    named = environment.get(windows if sys.platform == "win32" else f"XDG_{purpose.upper()}_HOME")
    if named:
        return Path(named) / _APP
    if sys.platform == "linux":  # as platformdirs says, which takes 5 ms to import
        return Path.home() / (".config" if purpose == "config" else ".local/share") / _APP
    import platformdirs

    if purpose == "config":
        return platformdirs.user_config_path(_APP, appauthor=False, roaming=True)
    return platformdirs.user_data_path(_APP, appauthor=False)


def _read(path: Path) -> dict[str, object]:
    try:
        text = encodings.decoded(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"config file {path}", f"cannot be read: {error}") from None
    import tomllib  # most users have no such file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"config file {path}", f"cannot be read: {error}") from None


def _store(field: str, value: object) -> Location:
    from nacre.types import location

    return location.address(field, value) or _path(field, value)


def _path(field: str, value: object) -> Path:
    return Path(os.path.expandvars(_text(field, os.fspath(value) if isinstance(value, Path) else value))).expanduser()


def _key_file(field: str, value: object) -> str:
    from nacre.config.keys import KEYRING

    return str(value) if not value or str(value).startswith(KEYRING) else str(_path(field, value))


def _text(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(field, "must be a text that is not blank")
    return value


def _space(field: str, value: object) -> str:
    """A name, or `folder:PATH` for the space of the project that a folder is in."""
    said = _text(field, value)
    if not said.startswith(project_space.PREFIX):
        return said
    return project_space.space_of(_path(field, said.removeprefix(project_space.PREFIX)))


def _embedder(field: str, value: object) -> str:
    from nacre.config import embedders

    return embedders.checked(field, value)


def _multilingual(field: str, value: object) -> Multilingual:
    said = "off" if value is False else str(value)  # TOML has a word of its own for off
    if said not in ("auto", "off"):
        raise InvalidInput(field, f"is {value!r}; auto or off is allowed")
    return cast("Multilingual", said)


def _secrets(field: str, value: object) -> SecretPolicy:
    from nacre import validation

    return validation.secret_policy(field, "off" if value is False else value)  # TOML has a word of its own for off


def _switch(field: str, value: object) -> bool:
    said = str(value).strip().lower()
    if said not in ("on", "off", "true", "false", "1", "0"):
        raise InvalidInput(field, f"is {value!r}; on or off is allowed")
    return said in ("on", "true", "1")


def _rates(field: str, value: object) -> dict[str, float]:
    """`state=0.2,kv=0.01`, or a TOML table."""
    pairs = value.items() if isinstance(value, Mapping) else (each.split("=") for each in _parts(value))
    rates: dict[str, float] = {}
    try:
        for name, rate in pairs:
            rates[name.strip()] = float(rate)
    except (TypeError, ValueError):
        raise InvalidInput(field, f"is {value!r}; write it like state=0.2,kv=0.01") from None
    from nacre import validation

    try:
        validation.decay_rates(rates)
    except InvalidInput as error:
        name = error.field.removeprefix("decay_rates").lstrip(".")
        raise InvalidInput(field, f"{name}: {error.problem}" if name else error.problem) from None
    return rates


def _namespace_weights(field: str, value: object) -> dict[str, float]:
    """`decisions:1.5,config:0.8`, as in a recipe, or a TOML table."""
    from nacre import validation
    from nacre.types.recipe import parse_weight

    try:
        weights = value if isinstance(value, Mapping) else parse_weight("namespace_weights", str(value))
        return dict(validation.namespace_weights("recipe.namespace_weights", weights, validation.LIMITS))
    except InvalidInput as error:
        namespace = error.field.removeprefix("recipe.namespace_weights").strip("[]'")
        raise InvalidInput(field, f"{namespace}: {error.problem}" if namespace else error.problem) from None


def _seconds(field: str, value: object) -> float:
    from nacre import validation
    from nacre.types.location import STALENESS_MOST_S

    try:
        seconds = float(str(value))
    except ValueError:
        raise InvalidInput(field, f"is {value!r}; a number of seconds is allowed") from None
    validation.number(field, seconds, 0, STALENESS_MOST_S)
    return seconds


def _parts(value: object) -> list[str]:
    return [each for each in str(value).split(",") if each.strip()]


def _within(least: int, most: int) -> Callable[[str, object], int]:
    """A reader of whole numbers in these bounds."""

    def read(field: str, value: object) -> int:
        try:
            number = int(str(value))
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise InvalidInput(field, f"is {value!r}; a whole number from {least:,} to {most:,} is allowed")
        return number

    return read


def _count(field: str, value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if number < 0:
        raise InvalidInput(field, f"is {value!r}; a whole number from 0 up is allowed")
    return number
