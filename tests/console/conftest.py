"""A console over a small store, embedded and behind a server; and a browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from devtools.servers.cache import ServerMissing, tell
from ptkstore import Store
from ptkstore.console import DirectorySource, ServerSource
from ptkstore.engine.access.tokens import make_token
from tests.console.browsing import Browsing, axe_source
from tests.console.packages import chromium_program
from tests.console.running import Running, console
from tests.console.stores import lively
from tests.rpc.small import serving

ROLES = ("reader", "producer", "developer", "operator")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with some windows behind it. Nobody changes it."""
    with Store(tmp_path_factory.mktemp("console"), workers=0) as found:
        lively(found)
        yield found


@pytest.fixture
def empty_store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path, workers=0) as found:
        yield found


@pytest.fixture(scope="session")
def embedded(store: Store) -> Iterator[Running]:
    """The console of a directory."""
    with console(DirectorySource(store, "a directory")) as running:
        yield running


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    """A store like the other, behind a server that wants credentials, and its address."""
    with serving(tmp_path_factory.mktemp("served"), auth={"required": True}) as (server, behind):
        lively(behind)
        yield behind, server.address


@pytest.fixture(scope="session")
def tokens(served: tuple[Store, str]) -> dict[str, str]:
    """One for each role, and one of an operator who has one stream only."""
    parts = served[0].parts
    made = {
        role: make_token(parts.metadata, role, roles=[role], now_ms=parts.now_ms())[0]
        for role in ROLES
    }
    limited = make_token(
        parts.metadata, "limited", roles=["operator"], streams=["quiet"], now_ms=parts.now_ms()
    )[0]
    return made | {"limited": limited}


@pytest.fixture(scope="session")
def remote(served: tuple[Store, str], tokens: dict[str, str]) -> Iterator[Running]:
    """The console of a server, started by an operator."""
    with console(ServerSource(served[1], token=tokens["operator"])) as running:
        yield running


@pytest.fixture(params=["embedded", "remote"])
def running(request: pytest.FixtureRequest) -> Running:
    """Both of them."""
    found: Running = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["embedded", "remote"])
def shown(request: pytest.FixtureRequest) -> tuple[Running, Store]:
    """A console, and the very store that it shows: the noise in two stores is never the same."""
    if request.param == "embedded":
        return request.getfixturevalue("embedded"), request.getfixturevalue("store")
    return request.getfixturevalue("remote"), request.getfixturevalue("served")[0]


@pytest.fixture(scope="session")
def browse() -> Iterator[Callable[..., Browsing]]:
    """Opens a fresh browser (with options of a Playwright context) on a console."""
    from playwright.sync_api import BrowserContext, Error, sync_playwright

    def closed(context: BrowserContext) -> None:
        # A browser that is gone by now has closed it already; tests that needed it have failed by
        # themselves.
        with suppress(Error):
            context.close()

    try:
        program, axe = chromium_program(tell), axe_source(tell)
    except ServerMissing as missing:
        if os.environ.get("REQUIRE_SERVERS") == "1":
            pytest.fail(f"a server is missing, and REQUIRE_SERVERS=1: {missing}", pytrace=False)
        pytest.skip(f"a server is missing: {missing}")
    quiet = [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ]
    with sync_playwright() as playwright, ExitStack() as stack:
        # The sandbox does not start for root.
        arguments = [*quiet, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        browser = playwright.chromium.launch(executable_path=str(program), args=arguments)
        stack.callback(browser.close)

        def fresh(url: str, *, width: int = 1280, **options: object) -> Browsing:
            context = browser.new_context(viewport={"width": width, "height": 900}, **options)  # type: ignore[arg-type]
            stack.callback(closed, context)
            context.set_default_timeout(20_000)
            return Browsing(context.new_page(), url, axe)

        yield fresh
