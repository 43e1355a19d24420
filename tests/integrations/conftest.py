"""What tests of adapters share."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """The suites of LangChain use markers of plugins that this test run does not load."""
    config.addinivalue_line("markers", "benchmark: a test that a plugin measures")
    config.addinivalue_line("markers", "vcr: a test that a plugin gives recorded answers")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
