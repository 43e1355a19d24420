"""What tests of adapters share."""

from __future__ import annotations

import os

import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # tests use no network


def pytest_configure(config: pytest.Config) -> None:
    """The suites of LangChain and Haystack use markers of plugins that this test run does not load."""
    config.addinivalue_line("markers", "asyncio: a coroutine, which anyio runs")
    config.addinivalue_line("markers", "benchmark: a test that a plugin measures")
    config.addinivalue_line("markers", "vcr: a test that a plugin gives recorded answers")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
