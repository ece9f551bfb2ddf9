"""The suites over both stores, and what a remote one promises beyond it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptkstore import Store
from ptkstore.api import store as api
from ptkstore.client.store import RemoteStore
from ptkstore.local.store import LocalStore
from ptkstore.wire.faults import ServerUnavailable
from tests.engine.small import FIRST_MS, day
from tests.rpc.budgets_suite import BudgetsSuite
from tests.rpc.events_suite import EventsSuite
from tests.rpc.plans_suite import PlansSuite
from tests.rpc.ptks_suite import PtksSuite
from tests.rpc.small import serving
from tests.rpc.store_suite import StoreSuite, filled


class TestEmbedded(StoreSuite, PtksSuite, PlansSuite, BudgetsSuite, EventsSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with Store(tmp_path, workers=0) as store:
            yield store

    @pytest.fixture
    def twin(self, store: Store) -> Store:
        return store


class TestRemote(StoreSuite, PtksSuite, PlansSuite, BudgetsSuite, EventsSuite):
    @pytest.fixture
    def twin(self, tmp_path: Path) -> Iterator[Store]:
        with serving(tmp_path) as (server, store):
            self.address = server.address
            yield store

    @pytest.fixture
    def store(self, twin: Store) -> Iterator[Store]:
        with Store(self.address) as store:
            yield store


def test_an_address_is_remote_and_a_directory_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "host:1").mkdir()
    with Store("localhost:7", timeout_seconds=1) as remote:
        assert isinstance(remote, RemoteStore)
    with Store("host:1", workers=0) as here:
        assert type(here) is Store
    with pytest.raises(InvalidInput, match="ADDRESS_INVALID"):
        Store(tmp_path, token="sage_x")


def test_both_have_the_same_methods_with_the_same_parameters() -> None:
    verbs = {name for name in vars(api.Store) if not name.startswith("_")}
    # For those who serve an embedded store.
    assert {name for name in vars(LocalStore) if not name.startswith("_")} - {"parts"} == verbs
    assert {name for name in dir(RemoteStore) if not name.startswith("_")} == verbs
    for name in verbs:
        asked = inspect.signature(getattr(api.Store, name))
        assert inspect.signature(getattr(LocalStore, name)) == asked, name
        assert inspect.signature(getattr(RemoteStore, name)) == asked, name


def test_both_are_stores_for_the_type_checker_and_at_run_time(tmp_path: Path) -> None:
    kinds: tuple[type[api.Store], ...] = (LocalStore, RemoteStore)
    assert all(issubclass(kind, api.Store) for kind in kinds)
    with LocalStore(tmp_path, workers=0) as here, RemoteStore("127.0.0.1:1") as there:
        assert isinstance(here, api.Store)
        assert isinstance(there, api.Store)
    assert not isinstance(tmp_path, api.Store)


def test_nobody_there_is_an_error_of_ours_and_takes_no_longer_than_allowed() -> None:
    with (
        Store("127.0.0.1:1", timeout_seconds=0.5) as store,
        pytest.raises(ServerUnavailable) as error,
    ):
        store.streams()
    assert error.value.reason in ("SERVER_UNAVAILABLE", "DEADLINE_PASSED")


def test_a_closed_store_says_so() -> None:
    store = Store("127.0.0.1:1")
    store.close()
    with pytest.raises(ServerUnavailable, match="STORE_CLOSED"):
        store.streams()


@pytest.mark.parametrize(
    ("last", "act"),
    [
        (
            "ptkstore.client.pushing.rows_of",
            lambda store: store.push("rides", day(1), producer="depot", seq=1),
        ),
        ("ptkstore.client.streams.finished", lambda store: store.run("rides", until_ms=FIRST_MS)),
    ],
    ids=["push", "run"],
)
def test_so_does_one_that_is_closed_before_its_call_streams(
    tmp_path: Path, last: str, act: Callable[[Store], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path) as (server, _), Store(server.address) as store:
        filled(store)
        module, _, name = last.rpartition(".")
        real = getattr(import_module(module), name)

        def close_first(*asked: Any, **rest: Any) -> Any:
            store.close()
            return real(*asked, **rest)

        monkeypatch.setattr(last, close_first)
        with pytest.raises(ServerUnavailable, match="STORE_CLOSED"):
            act(store)


@pytest.mark.parametrize(
    "options", [{"token": "sage_x"}, {"cert_file": "a"}, {"cert_file": "a", "key_file": "b"}]
)
def test_a_token_never_leaves_the_machine_in_plain_text(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"TOKEN_UNPROTECTED|ADDRESS_INVALID"):
        Store("sage.example:7070", **options)
