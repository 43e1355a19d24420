"""The files for operators in examples/postgres say what their programs understand, and no password."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from nacre.cli.group import nacre as commands
from nacre.config import settings
from nacre.types.location import Address, address

FOLDER = Path(__file__).parents[2] / "examples" / "postgres"
UNITS = sorted(FOLDER.glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def unit(path: Path) -> RawConfigParser:
    """A unit in which no name is given twice."""
    found = RawConfigParser(delimiters="=", comment_prefixes="#", interpolation=None)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(path.read_text("utf-8"))
    return found


def check_command(arguments: list[str]) -> None:
    """Raise what the command line would say of these arguments."""
    name, *options = arguments
    command = commands.commands.get(name) or commands.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None, name
    command.make_context(name, options, obj={})


def variables_of(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines)}


def test_all_are_here() -> None:
    assert [path.name for path in UNITS] == ["nacre-server.service", "nacre-worker@.service"]
    assert SERVICES.keys() == {"database", "server", "worker"}


def test_no_file_has_a_password() -> None:
    for path in FOLDER.iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r"://[^/@\s]*:[^/@\s]+@", text), path
        for given in re.findall(r"PASSWORD[\"']?\s*[:=]\s*(\S+)", text):
            assert given.startswith(("${POSTGRES_PASSWORD:?", "…")), path


# ---------------------------------------------------------------- Compose


@pytest.mark.parametrize("name", ["server", "worker"])
def test_compose_starts_commands_that_exist(name: str) -> None:
    program, *arguments = SERVICES[name]["command"]
    assert program == "nacre"
    check_command(arguments)


def test_compose_names_one_store_for_all_and_settings_that_exist() -> None:
    for name in ("server", "worker"):
        environment = SERVICES[name]["environment"]
        found = settings.load({}, {"NACRE_CONFIG": os.devnull, **environment})
        store = found.store.value
        assert isinstance(store, Address)
        assert store.dsn == "postgresql://nacre@database/agents"
        ours = {each for each in environment if each.startswith("NACRE_")}
        assert ours <= {settings.variable(each) for each in settings.MEANINGS}
    database = SERVICES["database"]["environment"]
    assert (database["POSTGRES_USER"], database["POSTGRES_DB"]) == ("nacre", "agents")


def test_compose_waits_for_the_tables_and_opens_no_port_to_others() -> None:
    assert SERVICES["server"]["depends_on"]["database"]["condition"] == "service_healthy"
    assert SERVICES["worker"]["depends_on"]["server"]["condition"] == "service_healthy"
    assert SERVICES["worker"]["deploy"]["replicas"] == 2
    assert [port for each in SERVICES.values() for port in each.get("ports", [])] == ["127.0.0.1:8642:8642"]
    assert "--require-token" in SERVICES["server"]["command"]
    used = {volume.split(":")[0] for each in SERVICES.values() for volume in each.get("volumes", [])}
    assert used == COMPOSE["volumes"].keys()


# ---------------------------------------------------------------- systemd


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists(path: Path) -> None:
    program, *arguments = shlex.split(unit(path)["Service"]["ExecStart"])
    assert Path(program).name == "nacre"
    check_command(arguments)
    assert unit(path)["Service"]["EnvironmentFile"] == "/etc/nacre/environment"


def test_the_environment_of_the_units_has_settings_that_exist() -> None:
    text = (FOLDER / "environment").read_text("utf-8")
    for given in (text, text.replace("\n#NACRE", "\nNACRE")):
        found = settings.load({}, {"NACRE_CONFIG": os.devnull, **variables_of(given)})
        assert isinstance(found.store.value, Address)
        assert variables_of(given).keys() <= {settings.variable(each) for each in settings.MEANINGS}
    (standby,) = found.postgres_replica.value
    assert address("replica", standby.dsn) == standby


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_understands_a_unit(path: Path, tmp_path: Path) -> None:
    """Its program and its user are not on this machine, so others stand in for them."""
    text = path.read_text("utf-8").replace("/opt/nacre/bin/nacre", "/bin/true").replace("User=nacre", "User=root")
    copy = tmp_path / path.name
    copy.write_text(text, "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if path.name in line]
    assert said == []
