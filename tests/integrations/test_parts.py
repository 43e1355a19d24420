"""What all integrations share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nacre
from nacre.integrations import parts


def test_a_missing_package_is_an_error_that_says_what_to_install() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, parts.needs("langgraph"):
        import no_such_framework  # type: ignore[import-not-found]  # noqa: F401
    assert "pip install 'nacre-memory[langgraph]'" in str(caught.value)
    assert "no_such_framework" in str(caught.value)
    assert caught.value.name == "no_such_framework"


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
