"""Encrypted stores: no byte of a memory is in any file, a key is never shown, and no key is ever lost on the way.

`test_encryption.py` runs this file in a process of its own that has SQLite3 Multiple Ciphers in place of SQLite.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

import nacre
from command_line import Cli
from index_files import QUESTIONS, by_words, flower_texts, found, live_memories, low_thresholds, settled, space_of
from nacre.config import keys
from nacre.embedders.hashing import Hashing
from nacre.storage.sqlite import encryption
from nacre.storage.sqlite.index import segment
from nacre.storage.sqlite.index.segment import MAIN
from nacre.types.search import Mode
from purged_bytes import RandomStore
from store_checks import check_derived_tables, check_integrity

KEY, OTHER = nacre.Key("1f" * 32), nacre.Key("2e" * 32)
MARKER = "zxqvjwk"  # stands nowhere else; it is its own stem
QUERY = "wjkqvxz"
NOTE = nacre.NewMemory(
    text=f"The {MARKER} opens the door.",
    summary=f"{MARKER} summary",
    tags=(f"{MARKER}-tag",),
    source=f"{MARKER}.md",
    session=f"{MARKER} session",
    position=1,
    namespace=f"{MARKER}-space",
    metadata={MARKER: MARKER},
)


@contextmanager
def opened(path: Path, key: nacre.Key | None = KEY, **options: Any) -> Iterator[nacre.Nacre]:
    with nacre.open(path, embedder=Hashing(), key=key, **options) as memory:
        yield memory


def texts(memory: nacre.Nacre) -> list[str]:
    return sorted(each.text for each in live_memories(memory))


def revealing(folder: Path) -> list[str]:
    """Files with a word of the memory or of the query, or with the hash that an index has of it."""
    wanted = [form for word in (MARKER, QUERY) for form in (word.encode(), word.upper().encode())]
    wanted += [segment.hashed(word).to_bytes(8, sys.byteorder) for word in (MARKER, QUERY)]
    return sorted(
        str(each.relative_to(folder))
        for each in folder.rglob("*")
        if each.is_file() and any(word in each.read_bytes() for word in wanted)
    )


# ---------------------------------------------------------------- what is on disk


@pytest.fixture(params=[KEY, None], ids=["encrypted", "plain"])
def key(request: pytest.FixtureRequest) -> nacre.Key | None:
    """The same with and without a key, so that a test which looks for bytes is seen to find them."""
    given: nacre.Key | None = request.param
    return given


@pytest.mark.usefixtures("uncached")
def test_no_file_has_a_byte_of_a_memory(path: Path, key: nacre.Key | None, monkeypatch: pytest.MonkeyPatch) -> None:
    low_thresholds(monkeypatch, GRAPH_PASSAGES_MIN=30, GRAPH_BEHIND_MAX=10)

    def look() -> None:
        shown = revealing(path.parent)
        assert (shown == []) is (key is not None), shown

    with opened(path, key) as memory:
        memory.remember_many(flower_texts(40))
        note = memory.remember(NOTE).id
        look()
        memory.update(note, text=f"The {MARKER} is {QUERY}, and opens two doors.")
        memory.search(f"{QUERY} door", session="s")
        memory.context(f"{QUERY} door")
        settled(memory)
        look()
        memory.forget([note])
        look()
    look()
    assert (path.parent / f"{path.name}-cache").exists() is (key is None)
    with opened(path, key) as memory:
        memory.purge([note])
        memory.remember(NOTE)
        memory.rebuild()
        look()


def test_a_purge_leaves_nothing_for_one_who_has_the_key(path: Path) -> None:
    """Encrypted pages are not changed in place: the file is written again."""
    with opened(path) as memory:
        store = RandomStore(memory, seed=1)
        store.remember(40)
        gone = store.purge(10)
        assert store.pending is None
        with memory._store._connections.exclusive() as db:  # type: ignore[attr-defined]
            decrypted = db.serialize("main").lower()
        assert [word for word in gone.words if word.encode() in decrypted] == []
        assert len(texts(memory)) == 30


def test_an_encrypted_store_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with its index and its graph in memory alone."""
    low_thresholds(monkeypatch, GRAPH_PASSAGES_MIN=30, GRAPH_BEHIND_MAX=10)
    answers = []
    for each in (KEY, None):
        with opened(tmp_path / f"{each}.db", each, log=False) as memory:
            memory.remember_many(flower_texts(50))
            found(memory, "tulip lily")
            settled(memory)
            assert space_of(memory).graphs.get(MAIN) is not None
            memory.forget([entry.id for entry in memory.timeline(limit=3).entries])
            hits = [memory.search(query, mode=mode).hits for query in QUESTIONS for mode in get_args(Mode)]
            answers.append([[(hit.text, round(hit.score, 9)) for hit in each] for each in hits])
            assert by_words(memory, "rose")
    assert answers[0] == answers[1]


def test_a_damaged_page_is_noticed(path: Path) -> None:
    with opened(path) as memory:
        memory.remember_many(flower_texts(50))
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 + 100] ^= 1
    path.write_bytes(data)
    with pytest.raises(nacre.StoreCorrupt), opened(path) as memory:
        texts(memory)


def test_a_copy_is_encrypted_with_a_key_of_its_own(path: Path) -> None:
    other, back, its_key = path.with_name("other.db"), path.with_name("back.db"), nacre.Key.random()
    with opened(path) as memory:
        memory.remember("the zebra sleeps")
    nacre.copy_store(path, other, key=KEY, target_key=its_key)
    assert b"zebra" not in other.read_bytes()
    with pytest.raises(nacre.WrongKey):
        nacre.copy_store(other, back, key=KEY)
    assert nacre.copy_store(other, back, key=its_key).verified
    assert b"zebra" in b"".join(each.read_bytes() for each in path.parent.glob("back.db*"))  # its log may be there


# ---------------------------------------------------------------- keys


def test_a_key_that_does_not_fit_is_said(tmp_path: Path) -> None:
    secret, plain, other = tmp_path / "secret.db", tmp_path / "plain.db", tmp_path / "other.db"
    with opened(secret) as memory:
        memory.remember("a")
    with opened(plain, None) as memory:
        memory.remember("a")
    other.write_text("something else, that is long enough to be a header")
    for path, given, said in (
        (secret, None, "is encrypted; give its key with --key-file"),
        (secret, OTHER, "the key does not open"),
        (plain, KEY, "is not encrypted, and a key was given; encrypt it with `nacre rekey"),
    ):
        with pytest.raises(nacre.WrongKey, match=said), opened(path, given):
            pass
    for given in (KEY, None):
        with pytest.raises(nacre.StoreCorrupt, match="is not a database"), opened(other, given):
            pass


@pytest.mark.parametrize("given", [OTHER, None, KEY])
def test_nothing_shows_a_key(path: Path, given: nacre.Key | None, caplog: pytest.LogCaptureFixture) -> None:
    """No error, also where values of variables are shown with it."""
    with opened(path) as memory:
        memory.remember("a")
        assert KEY.digits not in repr(vars(memory)) + repr(vars(memory._store)) + repr(KEY) + f"{KEY!s}{[KEY]}"
    if given is KEY:
        path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(nacre.StoreError) as raised, opened(path, given):
        pass
    told = "".join(traceback.TracebackException.from_exception(raised.value, capture_locals=True).format())
    assert "encryption.py" in told
    assert not any(each.digits in told + caplog.text for each in (KEY, OTHER))
    with pytest.raises(TypeError):
        pickle.dumps(KEY)
    with pytest.raises(nacre.InvalidInput) as refused:
        nacre.Key("a0b1c2")
    assert "a0b1c2" not in str(refused.value)


@pytest.mark.skipif(os.name != "posix", reason="a process is stopped in the middle of its work")
def test_after_a_kill_another_key_destroys_nothing(path: Path) -> None:
    """SQLite with another key, or without one, would take the write-ahead log for empty and delete it."""
    with opened(path):
        pass
    killed(path, f"memory = nacre.open(path, key={KEY.digits!r}, embedder='none'); memory.remember('{MARKER}')")
    log = path.with_name(f"{path.name}-wal")
    assert log.stat().st_size > 0
    assert revealing(path.parent) == []
    for given in (OTHER, None):
        with pytest.raises(nacre.WrongKey), opened(path, given):
            pass
    assert log.stat().st_size > 0
    with opened(path) as memory:
        assert texts(memory) == [MARKER]


def killed(path: Path, code: str, *, ready: str = "") -> None:
    """Run code in a process that kills itself: at the end, or where `ready`, code that comes first, says so."""
    code = f"import os, signal, pathlib, nacre\npath = pathlib.Path({str(path)!r})\n{ready}\n{code}\n"
    code += "os.kill(os.getpid(), signal.SIGKILL)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


# ---------------------------------------------------------------- changing the key


def test_the_key_of_a_store_changes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    low_thresholds(monkeypatch)
    with opened(path, None) as memory:
        memory.remember_many(flower_texts(40))
        memory.remember(NOTE)
        memory.search("rose")
        kept, uses = texts(memory), memory.stats()
    path.chmod(0o640)
    assert revealing(path.parent) != []
    for old, new in ((None, KEY), (KEY, OTHER), (OTHER, None)):
        nacre.rekey_store(path, key=old, new_key=new)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640 or os.name != "posix"
        assert (revealing(path.parent) == []) is (new is not None)
        assert [each.name for each in path.parent.iterdir()] == [path.name]
        with pytest.raises(nacre.WrongKey), opened(path, old):
            pass
        with opened(path, new) as memory:
            assert texts(memory) == kept
            assert memory.stats().events == uses.events
            assert memory.search(MARKER, mode="keyword", limit=1).hits[0].text == NOTE.text
    check_integrity(path)
    check_derived_tables(path)


def test_nobody_loses_a_store_whose_key_changes(path: Path, tmp_path: Path) -> None:
    """Who has it open goes on, and the change is refused, also if the same process has opened and closed it twice."""
    keys.create(str(tmp_path / "key"))
    with opened(path) as memory:
        memory.remember("before")
        with opened(path) as again:
            again.remember("between")
        code = f"import nacre; nacre.rekey_store({str(path)!r}, key='{KEY.digits}', new_key=None, busy_timeout_ms=100)"
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "StoreBusy" in ended.stderr
        assert "is open in another process; nothing was changed" in ended.stderr
        memory.remember("after")
    with opened(path) as memory:
        assert texts(memory) == ["after", "before", "between"]
    with pytest.raises(nacre.WrongKey):
        nacre.rekey_store(path, key=OTHER, new_key=None)
    with pytest.raises(nacre.WrongKey, match="give its key"):
        nacre.rekey_store(path, new_key=OTHER)


def test_a_backup_has_the_key_of_its_store(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    with opened(path) as memory:
        memory.remember(NOTE)
        memory.backup(folder)
        made = memory.backup(folder, since="last")
        memory.remember("later")
    assert (made.backup.kind, made.backup.memories) == ("full", 1)
    assert "encrypted" in made.notes[0]
    assert revealing(tmp_path) == []
    copy = tmp_path / "copy.db"
    for given in (None, OTHER):
        with pytest.raises(nacre.WrongKey):
            nacre.restore_backup(made.backup.path, copy, key=given)
    for target in (copy, path):
        nacre.restore_backup(made.backup.path, target, key=KEY, force=True)
        with opened(target) as memory:
            assert texts(memory) == [NOTE.text]
    assert revealing(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="a process is stopped in the middle of its work")
@pytest.mark.parametrize(
    ("old", "new", "moment", "changed"),
    [
        (None, KEY, "_copy", False),
        (KEY, None, "_compare", False),
        (KEY, OTHER, "integrity_problems", False),
        (None, KEY, "shutil.rmtree", True),
    ],
)
def test_a_change_that_is_killed_is_whole_or_not_there(
    path: Path, old: nacre.Key | None, new: nacre.Key | None, moment: str, changed: bool
) -> None:
    """Killed after this step, or before it removes the caches. What a plain copy had is gone when it is opened next."""
    with opened(path, old) as memory:
        memory.remember(NOTE)
    (path.parent / f"{path.name}-cache").mkdir()
    (path.parent / f"{path.name}-cache" / "old.segment").write_text(MARKER)
    stop = "*a, **k: os.kill(os.getpid(), signal.SIGKILL)" if changed else "*a: (done(*a), os.kill(os.getpid(), 9))"
    ready = f"from nacre.storage.sqlite import rekey\ndone = rekey.{moment}\nrekey.{moment} = lambda {stop}"
    given = [None if each is None else each.digits for each in (old, new)]
    killed(path, f"nacre.rekey_store(path, key={given[0]!r}, new_key={given[1]!r})", ready=ready)
    now, not_now = (new, old) if changed else (old, new)
    with pytest.raises(nacre.WrongKey), opened(path, not_now):
        pass
    with opened(path, now) as memory:
        assert texts(memory) == [NOTE.text]
    assert not encryption.aside(path).exists()
    assert (revealing(path.parent) == []) is (now is not None)


# ---------------------------------------------------------------- doors


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    keys.create(str(tmp_path / "my.key"))
    return str(tmp_path / "my.key")


def test_commands_take_a_key(cli: Cli, path: Path, key_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("remember", NOTE.text, "--key-file", key_file).code == 0
    assert revealing(path.parent) == []
    wanted = cli("search", MARKER, "--key-file", key_file).out
    assert MARKER in wanted
    assert cli("search", MARKER).code == 3
    assert json.loads(cli("search", MARKER, "--json").err)["error"]["type"] == "WrongKey"
    monkeypatch.setenv("NACRE_KEY", Path(key_file).read_text())
    assert cli("search", MARKER).out == wanted
    monkeypatch.setenv("NACRE_KEY", OTHER.digits)
    assert cli("search", MARKER).code == 3
    assert cli("--key-file", key_file, "search", MARKER).out == wanted
    monkeypatch.delenv("NACRE_KEY")
    Path(os.environ["NACRE_CONFIG"]).write_text(f"key_file = {json.dumps(key_file)}")
    assert cli("search", MARKER).out == wanted
    assert cli("demo", "--embedder", "hashing", "--json").code == 0
    assert cli("rekey", "--decrypt").out == f"decrypted {path}; open it without a key from now on\n"
    assert "is not encrypted" in cli("search", MARKER).err
    assert cli("rekey", "--new-key-file", key_file, "--json").json == {"store": str(path), "encrypted": True}
    assert cli("search", MARKER).out == wanted


def test_an_export_is_no_longer_encrypted(cli: Cli, key_file: str, tmp_path: Path) -> None:
    """And says so; what is imported into an encrypted store is."""
    out = tmp_path / "all.jsonl"
    assert cli("remember", "the kettle is green", "--key-file", key_file).code == 0
    said = cli("export", str(out), "--key-file", key_file)
    assert (said.code, said.err) == (
        0,
        "the store is encrypted, and an export is not: keep it where nobody else can read it\n",
    )
    assert "the kettle is green" in out.read_text("utf-8")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    copy = tmp_path / "copy" / "memories.db"
    copy.parent.mkdir()
    assert cli("import", str(out), "--store", str(copy), "--key-file", key_file).code == 0
    assert not any(b"kettle" in each.read_bytes() for each in copy.parent.iterdir())
    assert cli("search", "kettle", "--store", str(copy), "--key-file", key_file).out != ""


def ran(*arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nacre", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def test_hooks_and_servers_take_a_key(cli: Cli, path: Path, key_file: str, tmp_path: Path) -> None:
    event = {
        "type": "agent-turn-complete",
        "thread-id": "t1",
        "input-messages": [f"What about the {MARKER}?"],
        "last-assistant-message": f"The {MARKER} is blue.",
        "cwd": str(tmp_path),
    }
    flags = ("--key-file", key_file, "--space", "work")
    assert ran("hook", "remember", *flags, stdin=json.dumps(event)).stderr == ""
    until = time.monotonic() + 30
    while time.monotonic() < until and MARKER not in cli("search", MARKER, *flags).out:
        time.sleep(0.1)
    said = {"hook_event_name": "UserPromptSubmit", "prompt": f"is the {MARKER} blue?", "session_id": "s2"}
    assert MARKER in cli("hook", "context", *flags, stdin=json.dumps(said | {"cwd": str(tmp_path)})).out
    assert revealing(path.parent) == []
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    asked["params"] = {"name": "search_memories", "arguments": {"query": MARKER}}
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
    begin["params"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    served = ran("mcp", *flags, stdin="".join(f"{json.dumps(each)}\n" for each in (begin, ready, asked)))
    assert f"[{MARKER}]" in served.stdout or f"{MARKER} is blue" in served.stdout, served.stderr
    assert revealing(path.parent) == []
