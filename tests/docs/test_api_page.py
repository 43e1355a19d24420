"""docs/api.md has every public name, with the signatures and fields of the code, and its examples run."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nacre

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
STUBS = dict(re.findall(r"^### (\w+)\n\n```python\n(def .*?)^```$", TEXT, re.DOTALL | re.MULTILINE))
VERBS = [name for name, _ in inspect.getmembers(nacre.Nacre, inspect.isfunction) if not name.startswith("_")]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "open": nacre.open,
    "add_node": nacre.add_node,
    "check_store": nacre.check_store,
    "copy_store": nacre.copy_store,
    "connect": nacre.connect,
    "connect_async": nacre.connect_async,
    "move_space": nacre.move_space,
    "node_status": nacre.node_status,
    "rekey_store": nacre.rekey_store,
    "restore_backup": nacre.restore_backup,
    "salvage_store": nacre.salvage_store,
}
ELSEWHERE = {"Nacre", "Recipe", "Limits"}  # their fields are documented on another page, or by the verbs


def values() -> Iterator[tuple[str, type]]:
    """Public dataclasses and named tuples."""
    for name in nacre.__all__:
        value = getattr(nacre, name)
        if inspect.isclass(value) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields")):
            yield name, value


def rows(heads: str) -> dict[str, list[str]]:
    """The cells of all tables with these heads, by the first."""
    tables = re.findall(rf"^{re.escape(heads)}\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for table in tables for line in table.splitlines()]
    return {first.strip("`"): rest for first, *rest in cells}


def test_every_verb_has_its_place() -> None:
    assert sorted(STUBS) == sorted([*VERBS, *FUNCTIONS])


@pytest.mark.parametrize("name", sorted(STUBS))
def test_a_signature_is_that_of_the_code(name: str) -> None:
    stub = ast.parse(STUBS[name]).body[0]
    assert isinstance(stub, ast.FunctionDef)
    assert stub.name == name
    code: Callable[..., Any] = FUNCTIONS.get(name) or getattr(nacre.Nacre, name)
    signature = inspect.signature(code)
    expected = [each for each in signature.parameters.values() if each.name != "self"]
    assert [(each.name, each.kind, each.annotation) for each in expected] == [
        (argument.arg, kind, _written(argument.annotation)) for argument, kind, _ in _arguments(stub.args)
    ]
    assert _written(stub.returns) == signature.return_annotation
    for each, (_, _, default) in zip(expected, _arguments(stub.args), strict=True):
        if default is None:
            assert each.default is inspect.Parameter.empty, each.name
        else:
            known = {"Limits": nacre.Limits, "Hnsw": nacre.Hnsw, "Quotas": nacre.Quotas}
            assert eval(ast.unparse(default), known) == each.default, each.name


def _written(annotation: ast.expr | None) -> str:
    assert annotation is not None
    return ast.unparse(annotation)


def _arguments(of: ast.arguments) -> Iterator[tuple[ast.arg, inspect._ParameterKind, ast.expr | None]]:
    missing = len(of.args) - len(of.defaults)
    for at, each in enumerate(of.args):
        yield each, inspect.Parameter.POSITIONAL_OR_KEYWORD, of.defaults[at - missing] if at >= missing else None
    for each, default in zip(of.kwonlyargs, of.kw_defaults, strict=True):
        yield each, inspect.Parameter.KEYWORD_ONLY, default
    if of.kwarg is not None:
        yield of.kwarg, inspect.Parameter.VAR_KEYWORD, None


def test_every_option_of_opening_is_explained() -> None:
    explained = {each.strip("` ") for options in rows("| option | meaning |") for each in options.split(",")}
    assert explained == set(inspect.signature(nacre.open).parameters)


def test_every_public_name_is_explained() -> None:
    explained = {*rows("| name | what it is | fields |"), *rows("| name | raised when |"), *FUNCTIONS}
    assert explained == set(nacre.__all__)


@pytest.mark.parametrize(("name", "value"), [each for each in values() if each[0] not in ELSEWHERE])
def test_a_value_has_these_fields(name: str, value: Any) -> None:
    named = re.findall(r"`(\w+)`", rows("| name | what it is | fields |")[name][1])
    fields = [each.name for each in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else value._fields
    assert named == list(fields)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made: dict[str, Any] = {}
    examples = [block for block in BLOCKS if not block.startswith("def ")]
    assert len(examples) > 8
    for block in examples:
        exec(compile(block, "docs/api.md", "exec"), made)
