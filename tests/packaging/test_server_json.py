"""server.json, by which the MCP registry lists the server: it says what the package is and how it is started."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import nacre
from nacre.config import settings

ROOT = Path(__file__).parents[2]
SERVER = json.loads((ROOT / "server.json").read_text("utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_it_is_of_the_schema_that_it_names() -> None:
    """The limits are those of the schema of this date."""
    assert SERVER["$schema"] == "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    assert SERVER.keys() == {"$schema", "name", "title", "description", "version", "packages"}
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", SERVER["name"])
    assert 1 <= len(SERVER["description"]) <= 100
    assert 1 <= len(SERVER["title"]) <= 100


def test_it_is_of_this_version() -> None:
    (package,) = SERVER["packages"]
    assert SERVER["version"] == package["version"] == PROJECT["version"] == nacre.__version__
    assert package["identifier"] == PROJECT["name"]


def test_the_package_starts_the_server() -> None:
    """`uvx` runs the program that has the name of the package, and installs no extra: the SDK is named beside it."""
    (package,) = SERVER["packages"]
    assert (package["registryType"], package["runtimeHint"]) == ("pypi", "uvx")
    assert package["transport"] == {"type": "stdio"}
    assert PROJECT["scripts"][package["identifier"]] == PROJECT["scripts"]["nacre"]
    (sdk,) = PROJECT["optional-dependencies"]["mcp"]
    assert [(each["name"], each["value"]) for each in package["runtimeArguments"]] == [("--with", sdk)]
    assert [each["value"] for each in package["packageArguments"]] == ["mcp"]


def test_its_variables_are_settings() -> None:
    (package,) = SERVER["packages"]
    variables = {settings.variable(each) for each in settings.MEANINGS}
    assert {each["name"] for each in package["environmentVariables"]} <= variables
