"""A database with the roles of docs/postgres.md: its SQL is carried out as it stands there, under other names."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nacre.storage.postgres import PostgresStore
from postgres_server import PostgresServer, shared_server

PAGE = (Path(__file__).parents[1] / "docs" / "postgres.md").read_text("utf-8")
ADMIN = "postgres"
_numbers = itertools.count(1)


def section(heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return found[1]


def blocks(heading: str, language: str = "sql") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", section(heading), re.DOTALL)


class Roles:
    """The users of one database: owner, server, team_a, report."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.prefix = f"t{os.getpid()}_{next(_numbers)}_"
        self.database = f"{self.prefix}agents"

    def dsn(self, user: str) -> str:
        name = user if user == ADMIN else f"{self.prefix}{user}"
        return f"postgresql://{name}@127.0.0.1:{self._server.port}/{self.database}"

    def execute(self, sql: str, user: str, *parameters: Any) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.dsn(user), autocommit=True, options="-c search_path=nacre,public") as db:
            found = db.execute(sql, parameters or None)
            return found.fetchall() if found.description else []

    def make(self) -> None:
        import psycopg

        with psycopg.connect(self._server.dsn, autocommit=True) as db:
            db.execute(f'CREATE DATABASE "{self.database}"')
        roles, rights, users = (
            re.sub(r"\bnacre_", self.prefix, block).replace("DATABASE agents", f'DATABASE "{self.database}"')
            for block in blocks("Roles")
        )
        self.execute(roles, ADMIN)
        PostgresStore(self.dsn("owner")).close()
        self.execute(rights, "owner")
        made, granted = users.split("INSERT", 1)
        self.execute(made, ADMIN)
        self.execute("INSERT" + granted, "owner")

    def drop(self) -> None:
        import psycopg

        with psycopg.connect(self._server.dsn, autocommit=True) as db:
            db.execute(f'DROP DATABASE "{self.database}" WITH (FORCE)')
            named = db.execute("SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", (self.prefix,)).fetchall()
            for (name,) in named:
                db.execute(f'DROP ROLE "{name}"')


@contextmanager
def fresh_roles() -> Iterator[Roles]:
    roles = Roles(shared_server())
    try:
        roles.make()
        yield roles
    finally:
        roles.drop()
