"""What all integrations share."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import nacre
from nacre.integrations import parts

PROJECT: dict[str, list[str]] = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))[
    "project"
]["optional-dependencies"]
EXTRAS = set(PROJECT)
FRAMEWORKS = {"haystack", "langchain", "langgraph", "llamaindex", "openai-agents", "pydantic-ai"}


def test_a_missing_package_is_an_error_that_says_what_to_install() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, parts.needs("langgraph"):
        import no_such_framework  # type: ignore[import-not-found]  # noqa: F401
    assert "pip install 'nacre-memory[langgraph]'" in str(caught.value)
    assert "no_such_framework" in str(caught.value)
    assert caught.value.name == "no_such_framework"


@pytest.mark.parametrize("module", sorted((Path(parts.__file__).parent).glob("*.py")), ids=lambda path: path.stem)
def test_what_a_module_needs_is_an_extra_with_a_page(module: Path) -> None:
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for name in re.findall(r"^with needs\(\"(.+?)\"", module.read_text("utf-8"), re.MULTILINE):
        assert name == module.stem
        extra = name.replace("_", "-")
        assert extra in extras
        assert f"nacre-memory[{extra}]" in (root / "docs" / "integrations" / f"{extra}.md").read_text("utf-8")


def test_no_framework_is_loaded_before_its_module_is() -> None:
    code = (
        "import sys, nacre, nacre.integrations.parts as parts\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'langgraph', 'langchain_core', 'pydantic'}, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_path_is_opened_with_options_and_an_engine_is_taken_as_it_is(tmp_path: Path) -> None:
    engine, ours = parts.opened(tmp_path / "agent.db", embedder=None, space="work")
    with engine:
        assert ours
        assert engine.remember("A note").id
        assert parts.opened(engine) == (engine, False)
        with pytest.raises(TypeError, match="space"):
            parts.opened(engine, space="other")
    assert nacre.open(tmp_path / "agent.db", embedder=None, space="work").stats().memories == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "framework"),
    [
        ("haystack", "haystack"),
        ("langchain", "langchain_core"),
        ("langgraph", "langgraph"),
        ("llamaindex", "llama_index"),
        ("openai_agents", "agents"),
        ("pydantic_ai", "pydantic_ai"),
    ],
)
def test_without_its_framework_a_module_says_what_to_install(module: str, framework: str) -> None:
    code = f"import sys\nsys.modules[{framework!r}] = None\nimport nacre.integrations.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("ModuleNotFoundError")]
    assert f"nacre.integrations.{module} needs the package {framework}" in said
    (extra,) = re.findall(r"pip install 'nacre-memory\[([\w-]+)\]'", said)
    assert extra.replace("_", "-") in EXTRAS


def test_extras_of_frameworks_are_tested_versions() -> None:
    """Whoever tests has what the extras need."""
    needed = [each.partition(">")[0] for name in sorted(EXTRAS & FRAMEWORKS) for each in PROJECT[name]]
    tested = [each.partition(">")[0] for each in PROJECT["dev"]]
    assert set(needed) - set(tested) <= {"langchain-core", "langgraph-checkpoint"}  # which others bring
