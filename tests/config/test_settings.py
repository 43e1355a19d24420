"""The folders of the config file and of the store, on each platform."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nacre.cli import run
from nacre.config import settings
from nacre.errors import InvalidInput

HOME = Path("/home/me")
XDG = {"XDG_CONFIG_HOME": "/xdg/config", "XDG_DATA_HOME": "/xdg/data"}
WINDOWS = {"APPDATA": "/users/me/Roaming", "LOCALAPPDATA": "/users/me/Local", "USERPROFILE": "/users/me"}


@pytest.mark.skipif(os.name != "posix", reason="paths of POSIX")
@pytest.mark.parametrize(
    ("platform", "environment", "config", "data"),
    [
        ("linux", {}, "/home/me/.config/nacre/config.toml", "/home/me/.local/share/nacre"),
        ("linux", {"XDG_CONFIG_HOME": ""}, "/home/me/.config/nacre/config.toml", "/home/me/.local/share/nacre"),
        ("linux", XDG, "/xdg/config/nacre/config.toml", "/xdg/data/nacre"),
        ("freebsd14", {}, "/home/me/.config/nacre/config.toml", "/home/me/.local/share/nacre"),
        (
            "darwin",
            {},
            "/home/me/Library/Application Support/nacre/config.toml",
            "/home/me/Library/Application Support/nacre",
        ),
        ("darwin", XDG, "/xdg/config/nacre/config.toml", "/xdg/data/nacre"),
        ("win32", WINDOWS, "/users/me/Roaming/nacre/config.toml", "/users/me/Local/nacre"),
        ("win32", XDG | WINDOWS, "/users/me/Roaming/nacre/config.toml", "/users/me/Local/nacre"),
    ],
)
def test_each_platform_has_its_folders(
    monkeypatch: pytest.MonkeyPatch, platform: str, environment: dict[str, str], config: str, data: str
) -> None:
    for name in [*XDG, *WINDOWS, "NACRE_CONFIG"]:
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": str(HOME)} | environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setitem(sys.modules, "ctypes", None)  # by which platformdirs asks Windows; it has other ways
    for name in [each for each in sys.modules if each.split(".")[0] == "platformdirs"]:
        monkeypatch.delitem(sys.modules, name)  # it looks at the platform when it is imported
    assert settings.config_path(os.environ).as_posix() == config
    assert settings.data_folder(os.environ).as_posix() == data
    if platform == "win32":  # what Windows itself says, where the variables are missing
        assert settings.config_path({}).as_posix() == config
        assert settings.data_folder({}).as_posix() == data
    for name in [each for each in sys.modules if each.split(".")[0] == "platformdirs"]:
        monkeypatch.delitem(sys.modules, name)


def test_the_config_file_may_be_named(tmp_path: Path) -> None:
    assert settings.config_path({"NACRE_CONFIG": str(tmp_path / "x.toml")} | XDG) == tmp_path / "x.toml"
    assert settings.config_path({"NACRE_CONFIG": "~/x.toml"}) == Path.home() / "x.toml"


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms need it")
def test_a_command_on_linux_imports_neither_platformdirs_nor_tomlkit(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom nacre.cli import run\nrun(['config', '--json'])\nrun(['stats', '--json'])\n"
        "assert not {'platformdirs', 'tomlkit'} & sys.modules.keys(), 'imported'"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NACRE_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=plain | {"HOME": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("hnsw_connectivity", "3", "from 4 to 128"),
        ("hnsw_connectivity", "many", "from 4 to 128"),
        ("hnsw_expansion_add", "5000", "from 8 to 4,096"),
        ("hnsw_expansion_search", "7", "from 8 to 4,096"),
    ],
)
def test_graph_parameters_have_bounds(tmp_path: Path, name: str, given: str, allowed: str) -> None:
    environment = {"NACRE_CONFIG": str(tmp_path / "none.toml"), f"NACRE_{name.upper()}": given}
    with pytest.raises(InvalidInput, match=allowed) as caught:
        settings.load({}, environment)
    assert caught.value.field == f"NACRE_{name.upper()}"


def test_graph_parameters_come_from_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("hnsw_connectivity = 24\nhnsw_expansion_add = 256\n", "utf-8")
    found = settings.load({}, {"NACRE_CONFIG": str(file), "NACRE_HNSW_EXPANSION_SEARCH": "64"})
    given = (found.hnsw_connectivity.value, found.hnsw_expansion_add.value, found.hnsw_expansion_search.value)
    assert given == (24, 256, 64)


@pytest.mark.parametrize("given", ["decisions:1.5, config:0.8", '{"decisions": 1.5, "config": 0.8}'])
def test_namespace_weights_come_from_the_settings(tmp_path: Path, given: str) -> None:
    environment = {"NACRE_CONFIG": str(tmp_path / "none.toml"), "NACRE_NAMESPACE_WEIGHTS": given}
    assert settings.load({}, environment).namespace_weights.value == {"decisions": 1.5, "config": 0.8}
    file = tmp_path / "config.toml"
    file.write_text("[namespace_weights]\ndecisions = 1.5\n", "utf-8")
    assert settings.load({}, {"NACRE_CONFIG": str(file)}).namespace_weights.value == {"decisions": 1.5}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("decisions", "write it like decisions:1.5,config:0.8"),
        ("decisions:9", "decisions: is 9.0; a number from 0.5 to 2 is allowed"),
        ("5", "must be a mapping"),
    ],
)
def test_wrong_namespace_weights_are_refused(tmp_path: Path, given: str, problem: str) -> None:
    environment = {"NACRE_CONFIG": str(tmp_path / "none.toml"), "NACRE_NAMESPACE_WEIGHTS": given}
    with pytest.raises(InvalidInput, match=problem) as caught:
        settings.load({}, environment)
    assert caught.value.field == "NACRE_NAMESPACE_WEIGHTS"


PRIMARY = "postgresql://nacre@primary/agents"
REPLICAS = ("postgresql://nacre:geheim@one/agents", "postgresql://nacre@two/agents?sslpassword=geheim")


def test_replicas_come_from_the_settings_and_show_no_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"postgres_replica = {list(REPLICAS)}\npostgres_staleness_s = 1.5\n", "utf-8")
    found = settings.load({"store": PRIMARY}, {"NACRE_CONFIG": str(file)})
    assert tuple(each.dsn for each in found.postgres_replica.value) == REPLICAS
    assert found.postgres_staleness_s.value == 1.5
    given = {"NACRE_CONFIG": str(file), "NACRE_POSTGRES_REPLICA": REPLICAS[1], "NACRE_POSTGRES_STALENESS_S": "60"}
    found = settings.load({"store": PRIMARY}, given)
    assert tuple(each.dsn for each in found.postgres_replica.value) == REPLICAS[1:]
    assert found.postgres_staleness_s.value == 60.0
    monkeypatch.setenv("NACRE_CONFIG", str(file))
    for arguments in (["config"], ["config", "--json"]):
        assert run([*arguments, "--store", PRIMARY]) == 0
        shown = capsys.readouterr().out
        assert "postgresql://nacre:***@one/agents" in shown
        assert "geheim" not in shown + repr(found)


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("postgres_replica", "replica.db", "must be an address like postgresql://user@host/database"),
        ("postgres_replica", f"{PRIMARY} replica.db", "must be addresses of PostgreSQL"),
        ("postgres_replica", f"{PRIMARY} {PRIMARY}", "names one address twice"),
        ("postgres_replica", " ".join(f"{PRIMARY}{each}" for each in range(17)), "up to 16 are allowed"),
        ("postgres_staleness_s", "soon", "a number of seconds is allowed"),
        ("postgres_staleness_s", "-1", "a number from 0 to 3600 is allowed"),
        ("postgres_staleness_s", "nan", "a number from 0 to 3600 is allowed"),
        ("postgres_staleness_s", "3601", "a number from 0 to 3600 is allowed"),
    ],
)
def test_wrong_settings_of_replicas_are_refused(tmp_path: Path, name: str, given: str, problem: str) -> None:
    environment = {"NACRE_CONFIG": str(tmp_path / "none.toml"), f"NACRE_{name.upper()}": given}
    with pytest.raises(InvalidInput, match=problem) as caught:
        settings.load({}, environment)
    assert caught.value.field == f"NACRE_{name.upper()}"
