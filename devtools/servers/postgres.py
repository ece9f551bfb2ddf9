"""PostgreSQL: a cluster of its own with one role and a password; every test can have a database of
its own.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from devtools.servers.cache import Say, ServerMissing
from devtools.servers.recipes import get
from devtools.servers.running import LocalServer, new_directory, new_secret, running

__all__ = ["Postgres", "start_postgres"]

USER = "sage"


@dataclass(frozen=True)
class Postgres:
    """A running cluster."""

    server: LocalServer
    password: str
    spare: list[str] = field(default_factory=list)

    def url(self, database: str = "postgres") -> str:
        """The URL of a database."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.server.port}/{database}"

    def execute(self, statement: str | sql.Composed, database: str = "postgres") -> None:
        """Run one statement by itself."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database, for one user at a time; emptied again at the end, whoever
        still uses it.
        """
        name = self.spare.pop() if self.spare else self._new_database()
        yield self.url(name)
        self._empty(name)
        self.spare.append(name)

    def _new_database(self) -> str:
        name = f"test_{next(_NUMBERS)}"
        self.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return name

    def _empty(self, name: str) -> None:
        """Far quicker than dropping the database and making another."""
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            rows = connection.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> "
                "'information_schema'"
            ).fetchall()
            for (schema,) in rows:
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
            connection.execute("CREATE SCHEMA public")


_NUMBERS = itertools.count()


def start_postgres(say: Say) -> Postgres:
    """A new cluster.

    PostgreSQL refuses to run as root: then it runs as nobody, on copies nobody can read.
    """
    programs = get("postgres", say)
    password = new_secret()
    server = running(lambda port: _server(programs, password, port))
    return Postgres(server, password)


def _server(programs: Path, password: str, port: int) -> LocalServer:
    directory = new_directory("postgres")
    try:
        user = group = None
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            user, group = nobody.pw_uid, nobody.pw_gid
            # A cache in root's home cannot be entered by anybody else.
            shutil.copytree(programs.parent, directory / "programs", symlinks=True)
            programs = directory / "programs" / programs.name
        _initdb(programs, directory, password, user, group)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise

    def answers() -> None:
        psycopg.connect(
            f"postgresql://{USER}:{password}@127.0.0.1:{port}/postgres", connect_timeout=5
        ).close()

    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "max_connections": 200,
    }
    return LocalServer(
        name="postgres",
        port=port,
        directory=directory,
        command=[
            str(programs / "postgres"),
            *("-D", str(directory / "data")),
            *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
        ],
        answers=answers,
        stop_signal=signal.SIGINT,  # ends sessions; SIGTERM would wait for them
        drop_signal=signal.SIGQUIT,  # leaves no shared memory behind, as SIGKILL would
        user=user,
        group=group,
    )


def _initdb(
    programs: Path, directory: Path, password: str, user: int | None, group: int | None
) -> None:
    secret = directory / "password"
    secret.write_text(password)
    secret.chmod(0o600)
    if user is not None and group is not None:
        for path in (directory, secret):
            os.chown(path, user, group)
    made = subprocess.run(
        [
            str(programs / "initdb"),
            *("--pgdata", str(directory / "data"), "--username", USER, "--pwfile", str(secret)),
            *(
                "--auth",
                "scram-sha-256",
                "--encoding",
                "UTF8",
                "--locale",
                "C",
                "--no-sync",
                "--no-instructions",
            ),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        user=user,
        group=group,
        extra_groups=None if user is None else [],
    )
    if made.returncode:
        raise ServerMissing(f"initdb failed with {made.returncode}: {made.stderr.strip()[-500:]}")
    secret.unlink()
