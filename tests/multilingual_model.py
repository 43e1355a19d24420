"""The multilingual model for tests. An archive of the sources has none, and then its tests are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.embedders import use_multilingual

SOURCES = Path(__file__).parents[1] / "models" / use_multilingual.DISTRIBUTION

_found = use_multilingual.installed()
if _found is None and not SOURCES.exists():
    pytest.skip("the multilingual model is not installed", allow_module_level=True)
assert _found is not None, "the model is in models/, and not installed: run `make test`"
FOLDER = _found
