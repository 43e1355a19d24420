"""The shape of the code: imports point down only, heavy packages load late, values mirror each other."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import ForwardRef

import pytest

import nacre
from layers import LAYERS
from nacre import errors
from nacre.runtime import native_packages
from nacre.types import facts, memory, recall_log, recipe, search, stats, views

SOURCE = Path(nacre.__file__).parent
LINES_MAX = 800

# Neighbours in one layer that do not know each other.
APART = (
    "cli", "client", "http_api", "mcp_server", "hooks", "integrations", "storage.nodes", "storage.postgres",
    "storage.reference", "storage.sqlite", "embedders", "rerankers", "importers",
)  # fmt: skip
# The command line starts the servers; hooks are commands, and servers answer them; one port serves agents, too.
STARTS = {
    ("cli", "http_api"), ("cli", "mcp_server"), ("cli", "hooks"), ("mcp_server", "hooks"), ("http_api", "hooks"),
    ("http_api", "mcp_server"),
}  # fmt: skip
FREE = ("", "__main__")  # the package itself, and `python -m nacre`

HEAVY = (
    "mcp", "httpx", "pydantic", "numpy", "onnxruntime", "usearch", "numkong", "rich", "tokenizers", "uvicorn",
    "prometheus_client", "psycopg",
)  # fmt: skip


def module_name(path: Path) -> str:
    """`storage.sqlite.store` of …/nacre/storage/sqlite/store.py; the package itself is empty."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def within(module: str, name: str) -> bool:
    return module == name or module.startswith(f"{name}.")


def layer_of(module: str) -> str | None:
    """The layer whose name for the module is the longest: `query.ast` is a value, `query.parser` is not."""
    names = [(len(name), layer) for layer, several in LAYERS.items() for name in several if within(module, name)]
    return max(names)[1] if names else None


def imports_of(module: str) -> Iterator[tuple[int, str]]:
    """Every module of ours that this one imports, anywhere in it, with the line."""
    path = FILES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ["nacre", *(package.split(".") if package else [])]
                base = ".".join([*above[: len(above) - node.level + 1], *([base] if base else [])])
            named = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in named:
            if within(name, "nacre"):
                yield node.lineno, _known(name.removeprefix("nacre").removeprefix("."))


def _known(name: str) -> str:
    """The module that a dotted name is, or is in."""
    while name not in FILES:
        name = name.rpartition(".")[0]
    return name


def wrong_imports(module: str) -> Iterator[str]:
    order = list(LAYERS)
    layer = layer_of(module)
    assert layer is not None
    family = next((name for name in APART if within(module, name)), None)
    for line, other in imports_of(module):
        other_layer = layer_of(other)
        if other_layer is None:
            if layer != "doors":  # the package itself joins everything, so only what stands above may know it
                yield f"{module}:{line} imports nacre itself"
            continue
        if order.index(other_layer) < order.index(layer):
            yield f"{module}:{line} ({layer}) imports {other} ({other_layer}), which is above it"
        relative = next((name for name in APART if within(other, name)), None)
        if other_layer == layer and family != relative and (family, relative) not in STARTS:
            yield f"{module}:{line} imports its sibling {other}"


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 20
    assert _known("query.ast.Question") == "query.ast"


@pytest.mark.parametrize("module", [name for name in FILES if name not in FREE])
def test_a_module_has_a_layer_and_imports_point_down(module: str) -> None:
    assert layer_of(module) is not None, f"{module} stands in no layer: place it in LAYERS"
    assert list(wrong_imports(module)) == []


def test_a_wrong_import_would_be_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check itself: imports inside functions, under TYPE_CHECKING and relative ones count."""
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from nacre.engine.engine import Nacre\n"
        "def late():\n    from nacre.config import factory\n"
        "    import nacre.storage.reference\n"
        "from ...config import settings\n"
        "from ...ranking import fusion\n"
    )
    monkeypatch.setitem(FILES, "storage.sqlite.bad", bad)
    found = " ".join(wrong_imports("storage.sqlite.bad"))
    assert all(f":{line} " in found for line in (3, 5, 6, 7))
    assert "bad:8 " not in found


def test_tree_is_a_value() -> None:
    found = {other for _, other in imports_of("query.ast")}
    assert found == {"types.memory", "types.recipe", "types.search", "types.times"}


@pytest.mark.parametrize("module", FILES)
def test_a_file_is_short(module: str) -> None:
    assert len(FILES[module].read_text("utf-8").splitlines()) < LINES_MAX


# ---------------------------------------------------------------- the way of a search

FILES_PASSED_MAX = 30

WALK = """
import sys, threading
from nacre.cli import run

passed = set()

def note(frame, event, called):
    if event == "c_call" and getattr(called, "__name__", "") == "execute":
        while frame is not None:
            passed.add(frame.f_code.co_filename)
            frame = frame.f_back

arguments = sys.argv[1:]
threading.setprofile(note)
sys.setprofile(note)
run(["search", "which fruit is in the pie?", *arguments])
sys.setprofile(None)
print(*sorted(each for each in passed if "nacre" in each), sep="\\n")
"""


def test_a_search_passes_few_files_from_the_command_line_to_the_disk(path: Path) -> None:
    """The files with a function on the stack whenever SQLite is asked, receipts in the background included."""
    with nacre.open(path, embedder="hashing") as memory:
        memory.remember_many(["apple pie", "plum cake", "an apple a day"])
    store = ["--store", str(path), "--embedder", "hashing"]
    done = subprocess.run([sys.executable, "-c", WALK, *store], capture_output=True, text=True, timeout=60, check=True)
    passed = {module_name(Path(line)) for line in done.stdout.splitlines() if line.startswith(str(SOURCE))}
    assert {"cli.search", "engine.pipeline", "storage.sqlite.keyword_search", "storage.sqlite.vector_search"} <= passed
    assert len(passed) <= FILES_PASSED_MAX, sorted(passed)


# ---------------------------------------------------------------- heavy packages


def loaded_by(code: str) -> list[str]:
    """Which heavy packages a fresh process has loaded after this code."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def modules_of(code: str) -> list[str]:
    """Which modules of ours a fresh process has loaded after this code."""
    script = f"{code}\nimport sys\nprint('loaded', *[name for name in sys.modules if name.split('.')[0] == 'nacre'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


def test_importing_nacre_loads_nothing_heavy() -> None:
    assert loaded_by("import nacre\nnacre.open") == []


@pytest.mark.slow
def test_a_keyword_search_loads_nothing_heavy(path: Path) -> None:
    """Not even to compare two notes that are much alike, and of which one may be fresher."""
    with nacre.open(path) as memory:
        memory.remember("apple pie is on the shelf", created=datetime(2026, 1, 1, tzinfo=UTC))
        memory.remember("apple pie is in the fridge", created=datetime(2026, 2, 1, tzinfo=UTC))
    code = f"""
import nacre
with nacre.open({str(path)!r}) as memory:
    hit, _ = memory.search("apple", mode="keyword").hits
    memory.timeline()
    memory.get(hit.id)
    memory.stats()
"""
    assert loaded_by(code) == []


@pytest.mark.slow
def test_native_packages_live_together_in_every_order() -> None:
    """A process that loaded usearch before onnxruntime crashed."""
    for first, second in (("usearch_index", "onnxruntime"), ("onnxruntime", "usearch_index")):
        loaded_by(f"from nacre.runtime import native_packages as n\nn.{first}()\nn.{second}()")


@pytest.mark.parametrize(
    "importing", [native_packages.numpy, native_packages.onnxruntime, native_packages.usearch_index]
)
def test_native_packages_are_imported_one_at_a_time(importing: Callable[[], object]) -> None:
    """Two threads that imported packages on top of numpy at once saw it half initialized."""
    other = threading.Thread(target=importing)
    with native_packages._importing:
        other.start()
        other.join(0.05)
        assert other.is_alive()
    other.join(60)
    assert not other.is_alive()


def test_importing_nacre_imports_none_of_its_modules() -> None:
    """The first name that is asked for does, so that the command line can begin to load a model before."""
    assert modules_of("import nacre") == ["nacre"]
    assert "nacre.errors" in modules_of("import nacre\nnacre.NacreError")
    assert "nacre.engine.engine" not in modules_of("from nacre import Filter, SearchRequest")


@pytest.mark.parametrize("arguments", [["--version"], ["search", "--help"]])
def test_help_needs_no_engine(arguments: list[str]) -> None:
    assert "nacre.engine.engine" not in modules_of(f"from nacre.cli import run\nrun({arguments!r})")


def test_names_are_imported_from_where_type_checkers_see_them() -> None:
    tree = ast.parse(FILES[""].read_text("utf-8"))
    declared = {
        alias.asname or alias.name: (node.module or "").removeprefix("nacre.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nacre.")
        for alias in node.names
    }
    assert declared == nacre._HOME_OF
    assert sorted(nacre.__all__) == sorted([*declared, "__version__"])


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'nacre' has no attribute 'xyz'"):
        nacre.xyz  # type: ignore[attr-defined]  # noqa: B018
    assert nacre.errors is errors
    assert {"open", "Filter"} <= set(dir(nacre))


# ---------------------------------------------------------------- errors

ERRORS = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.NacreError)]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_in_the_tree_and_exported(error: type[errors.NacreError]) -> None:
    assert error.__name__ in nacre.__all__
    assert getattr(nacre, error.__name__) is error
    assert errors.__doc__ is not None
    lines = errors.__doc__.splitlines()
    (line,) = [each for each in lines if each.lstrip(" │├└─").split(" ")[0] == error.__name__]
    if error is not errors.NacreError:
        parent = error.__bases__[0].__name__
        (parent_line,) = [each for each in lines if each.lstrip(" │├└─").split(" ")[0] == parent]
        assert line.index(error.__name__) == parent_line.index(parent) + 4
        assert lines.index(parent_line) < lines.index(line)


def test_everything_exported_is_there() -> None:
    assert sorted(nacre.__all__) == sorted(set(nacre.__all__))
    assert all(hasattr(nacre, name) for name in nacre.__all__)


# ---------------------------------------------------------------- values that mirror each other


def dataclass_fields(of: type) -> dict[str, str]:
    return {field.name: str(field.type) for field in dataclasses.fields(of)}


def typed_dict_fields(of: type) -> dict[str, str]:
    """As written: annotations are not evaluated, so both sides are compared as text."""
    return {
        name: kind.__forward_arg__ if isinstance(kind, ForwardRef) else str(kind)
        for name, kind in of.__annotations__.items()
    }


@pytest.mark.parametrize(
    ("options", "request_type", "given_apart"),
    [
        (search.SearchOptions, search.SearchRequest, {"query"}),
        (views.TimelineOptions, views.TimelineRequest, {"start", "end"}),
        (search.RelatedOptions, search.RelatedRequest, {"memory_id"}),
        (facts.FactOptions, facts.FactQuery, set[str]()),
        (memory.NewMemoryFields, memory.NewMemory, {"text"}),
    ],
)
def test_options_are_the_fields_of_the_request(options: type, request_type: type, given_apart: set[str]) -> None:
    expected = {name: kind for name, kind in dataclass_fields(request_type).items() if name not in given_apart}
    assert typed_dict_fields(options) == expected


# What a new memory says, and whether it is read for more. That is kept beside the memory, with verbs of its own:
# an update changes none of it, and a memory is given with what became of it, its facts as they are settled.
SAID = {"facts", "entities", "extract", "supersedes"}


def test_changes_are_fields_of_a_new_memory() -> None:
    changes, fields = typed_dict_fields(memory.Changes), dataclass_fields(memory.NewMemory)
    assert changes.items() <= fields.items()
    assert fields.keys() - changes.keys() == {"space", "created", *SAID}


def test_a_memory_has_every_field_of_a_new_one() -> None:
    new, kept = dataclass_fields(memory.NewMemory), dataclass_fields(memory.Memory)
    assert new.keys() - kept.keys() == SAID - {"facts"}
    assert kept.keys() - new.keys() == {"id", "updated", "deleted", "notes"}
    assert (new["facts"], kept["facts"]) == ("Sequence[NewFact]", "tuple[Fact, ...]")


VALUES = [
    each
    for module in (memory, recipe, search, views, facts, recall_log, stats)
    for _, each in inspect.getmembers(module, dataclasses.is_dataclass)
    if inspect.isclass(each) and each.__module__ == module.__name__
]


@pytest.mark.parametrize("value", VALUES)
def test_values_are_frozen(value: type) -> None:
    assert value.__dataclass_params__.frozen  # type: ignore[attr-defined]
