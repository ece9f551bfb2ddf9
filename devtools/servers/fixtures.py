"""Fixtures: a server for the tests that ask for one, started by the first of them and stopped at
the end of the session.

Every worker of a parallel run has servers of its own. Tests that need a server come last, and while
the others run what is missing is fetched and built. A server that cannot be had skips its tests,
loudly; with REQUIRE_SERVERS=1 they fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pytest

from devtools.servers.cache import Say, ServerMissing, tell
from devtools.servers.recipes import is_cached
from devtools.servers.running import LocalServer

# The clients are imported when a server is wanted: most runs want none.
if TYPE_CHECKING:
    from devtools.servers.postgres import Postgres
    from devtools.servers.redis import Redis
    from devtools.servers.s3 import S3

__all__ = ["minio", "postgres", "postgres_url", "redis_server", "servers_of", "versity"]

_SERVERS = {"minio": "minio", "postgres": "postgres", "redis_server": "redis", "versity": "versity"}
_MISSING = "a server is missing"
_GETTING = pytest.StashKey["subprocess.Popen[bytes]"]()


class _Running(Protocol):
    @property
    def server(self) -> LocalServer: ...


Running = TypeVar("Running", bound=_Running)


@pytest.hookimpl(trylast=True)  # when it is known which tests will run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests that need servers last, and start to get the servers that are not there."""
    wanted = sorted({_SERVERS[name] for item in items for name in servers_of(item)})
    items.sort(key=lambda item: bool(servers_of(item)))
    missing = [name for name in wanted if not is_cached(name)]
    first_worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
    if missing and first_worker and not config.option.collectonly:
        tell(f"getting servers meanwhile: {', '.join(missing)}")
        command = [sys.executable, "-m", "devtools.servers", "get", *missing]
        config.stash[_GETTING] = subprocess.Popen(
            command, cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let nothing go on after us."""
    getting = config.stash.get(_GETTING, None)
    if getting is not None:
        getting.terminate()
        getting.wait()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly which tests did not run."""
    reasons = [
        str(report.longrepr[2])
        for report in terminalreporter.stats.get("skipped", [])
        if report.longrepr
    ]
    missing = [reason for reason in reasons if _MISSING in reason]
    if missing:
        terminalreporter.section("servers that could not be had", red=True)
        terminalreporter.line(f"{len(missing)} tests did not run:")
        for reason in sorted(set(missing)):
            terminalreporter.line(reason)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL cluster."""
    from devtools.servers.postgres import start_postgres

    yield from _started(start_postgres)


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The URL of an empty database."""
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """A Redis."""
    from devtools.servers.redis import start_redis

    yield from _started(start_redis)


@pytest.fixture(scope="session")
def minio() -> Iterator[S3]:
    """A MinIO."""
    from devtools.servers.s3 import start_minio

    yield from _started(start_minio)


@pytest.fixture(scope="session")
def versity() -> Iterator[S3]:
    """A Versity gateway."""
    from devtools.servers.s3 import start_versity

    yield from _started(start_versity)


def _started(start: Callable[[Say], Running]) -> Iterator[Running]:
    try:
        running = start(tell)
    except ServerMissing as missing:
        if os.environ.get("REQUIRE_SERVERS") == "1":
            pytest.fail(f"{_MISSING}, and REQUIRE_SERVERS=1: {missing}", pytrace=False)
        pytest.skip(f"{_MISSING}: {missing}")
    yield running
    running.server.close()


def servers_of(item: pytest.Item) -> list[str]:
    """The fixtures of servers that a test asks for, by name or as a parameter."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    names = [
        *getattr(item, "fixturenames", ()),
        *(parameter for parameter in parameters if isinstance(parameter, str)),
    ]
    return [name for name in names if name in _SERVERS]
