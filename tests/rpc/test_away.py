"""A part of the service that is away for a moment costs time: no window fails, no charge is wasted,
nothing stays reserved.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput, JournalUnavailable
from ptkstore import Store
from ptkstore.backoff import Backoff
from ptkstore.engine import retry as patience
from ptkstore.lake import LakeUnavailable
from ptkstore.metadata import Metadata, MetadataUnavailable
from ptkstore.metadata.work.operations import Operations
from ptkstore.rpc.background import running
from ptkstore.v1 import stream_pb2, stream_pb2_grpc
from ptkstore.wire import messages
from tests.engine.small import DAY_MS, FIRST_MS
from tests.rpc.small import PACE, serving
from tests.rpc.store_suite import filled
from tests.rpc.test_deliveries import Subscriber, listening, until

LAKE = LakeUnavailable("LAKE_UNAVAILABLE", "away")
LEDGER = JournalUnavailable("JOURNAL_UNAVAILABLE", "away")
METADATA = MetadataUnavailable("METADATA_UNAVAILABLE", "away")
TIMES = 3


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    soon = Backoff(first_seconds=0.01, longest_seconds=2)
    monkeypatch.setattr(patience, "SERVER_AWAY", soon)
    monkeypatch.setattr(running, "SERVER_AWAY", soon)


class Away:
    """Makes calls fail for a few times, from the moment it is armed."""

    def __init__(self, error: Exception, times: int = TIMES) -> None:
        self.error = error
        self.left = 0
        self.failed = 0
        self._times = times

    def arm(self) -> None:
        if not self.failed:
            self.left = self._times

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            if self.left > 0:
                self.left -= 1
                self.failed += 1
                raise self.error
            return call(*arguments, **named)

        return called


def windows(store: Store, remote: Store, *days: int) -> list[str]:
    """Close windows over the wire; what became of the PTK in each.

    Every charge must be spent, once.
    """
    lines = []
    for day in days:
        (cycle,) = remote.run("rides", until_ms=FIRST_MS + day * DAY_MS)
        lines.append(cycle.trained[0].outcome)
    ledger = store.parts.ledger
    charges = [entry for entry in ledger.history() if entry["kind"] == "reserve"]
    assert {ledger.fate(entry["charge"]) for entry in charges} == {"SPENT"}
    assert set(Counter(entry["key"] for entry in charges).values()) == {1}
    assert len(charges) == 2 * len(days)
    return lines


@contextmanager
def two_days(path: Path) -> Iterator[tuple[Store, Store]]:
    with serving(path) as (server, store), Store(server.address) as remote:
        filled(remote, 2)
        yield store, remote


@pytest.mark.parametrize(
    "moment",
    [("sealed", "begins"), ("sealed", "added"), ("train", "spent"), ("published", "begins")],
    ids="-".join,
)
def test_a_lake_that_is_away(tmp_path: Path, moment: tuple[str, str]) -> None:
    away = Away(LAKE)
    with two_days(tmp_path) as (store, remote):
        lake = store.parts.lake
        assert windows(store, remote, 1) == ["PUBLISHED"]
        lake.put = away.around(lake.put)  # type: ignore[method-assign]
        lake.get = away.around(lake.get)  # type: ignore[method-assign]
        store.parts.observers.add(lambda *now: away.arm() if now == moment else None)
        (second,) = remote.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        assert (second.trained[0].outcome, second.trained[0].version) == ("PUBLISHED", 2)
    assert away.failed == TIMES


MOMENTS = [
    *(
        (step, moment)
        for step in ("sealed", "planned", "trained", "published", "expired")
        for moment in ("begins", "worked")
    ),
    ("sealed", "added"),
    ("sealed", "counted"),
    ("train", "spent"),
]


@pytest.mark.parametrize("moment", MOMENTS, ids="-".join)
def test_metadata_that_is_away(
    tmp_path: Path, moment: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(METADATA)
    with two_days(tmp_path) as (store, remote):
        monkeypatch.setattr(Metadata, "write", away.around(Metadata.write))
        store.parts.observers.add(lambda *now: away.arm() if now == moment else None)
        assert windows(store, remote, 1) == ["PUBLISHED"]
    assert away.failed == TIMES


@pytest.mark.parametrize(
    ("call", "moment"),
    [
        ("add_blocks", ("sealed", "begins")),
        ("peak", ("planned", "begins")),
        ("reserve_all", ("sealed", "added")),
        ("reserve_all", ("reserved", "begins")),
        ("reserve_all", ("trained", "begins")),
        ("retire", ("expired", "begins")),
    ],
    ids=lambda one: one if isinstance(one, str) else "-".join(one),
)
def test_a_ledger_that_is_away(tmp_path: Path, call: str, moment: tuple[str, str]) -> None:
    away = Away(LEDGER)
    with two_days(tmp_path) as (store, remote):
        ledger = store.parts.ledger
        setattr(ledger, call, away.around(getattr(ledger, call)))
        store.parts.observers.add(lambda *now: away.arm() if now == moment else None)
        assert windows(store, remote, 1) == ["PUBLISHED"]
    assert away.failed == TIMES


def test_nobody_waits_for_the_lake_while_he_holds_up_those_who_write(tmp_path: Path) -> None:
    asked = []
    with two_days(tmp_path) as (store, remote):
        lake = store.parts.lake

        def spied(call: Callable[..., Any]) -> Callable[..., Any]:
            def called(*arguments: Any) -> Any:
                try:
                    with store.parts.metadata.write():
                        asked.append("free")
                except InvalidInput as nested:
                    asked.append(nested.reason)
                return call(*arguments)

            return called

        lake.put, lake.get = spied(lake.put), spied(lake.get)  # type: ignore[method-assign]
        assert windows(store, remote, 1, 2) == ["PUBLISHED", "PUBLISHED"]
    assert len(asked) >= 5
    assert set(asked) == {"free"}


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    away = Away(LAKE, times=10**9)
    away.arm()
    with pytest.raises(LakeUnavailable):
        patience.patiently(away.around(lambda: None), seconds=0.2)
    assert away.failed > TIMES
    with pytest.raises(InvalidInput):
        patience.patiently(away_for_good)


def away_for_good() -> None:
    raise InvalidInput("VALUE_INVALID", "asking again does not help")


def test_deliveries_and_hints_go_on_after_an_error_that_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(RuntimeError("a defect"), times=6)
    subscriber = Subscriber()
    heard: list[int] = []
    with two_days(tmp_path) as (store, remote), listening(subscriber) as endpoint:
        store.subscribe("hour-speed", lambda view: heard.append(view.version))
        with store.parts.metadata.write() as tx:
            one = tx.subscriptions.add(tx.ptks.named("hour-speed").id, endpoint)
            tx.notifications.set_mark(one.id, 0)
        for name in ("sage-deliveries", "sage-notifier"):
            assert any(thread.name == name for thread in threading.enumerate())
        with monkeypatch.context() as patch:
            read = away.around(Metadata.read)

            def only_in_threads(self: Metadata) -> Any:
                ours = threading.current_thread().name.startswith(("sage-deliver", "sage-notifier"))
                return (read if ours else plain)(self)

            plain = Metadata.read
            patch.setattr(Metadata, "read", only_in_threads)
            away.arm()
            store.parts.notifier.wake()
            until(lambda: away.failed == 6)
        remote.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        until(lambda: subscriber.told == [1, 2] and heard == [1, 2])


def test_windows_are_closed_after_an_error_that_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(RuntimeError("a defect"), times=1)
    with two_days(tmp_path) as (store, remote):
        streams = stream_pb2_grpc.StreamServiceStub(remote._connection.channel)  # type: ignore[attr-defined]

        def close(day: int) -> None:
            until_ms = messages.moment(FIRST_MS + day * DAY_MS)
            streams.CloseWindow(stream_pb2.CloseWindowRequest(stream="rides", until=until_ms))

        with monkeypatch.context() as patch:
            patch.setattr(Operations, "end", away.around(Operations.end))
            away.arm()
            close(1)
            until(lambda: away.failed == 1)
        close(2)
        until(lambda: [one.status for one in store.cycles("rides")] == ["DONE", "DONE"])


def test_the_log_is_json_and_quotes_nobody_else() -> None:
    code = """
import logging
from ptkstore.server import configure_logs
configure_logs()
logging.getLogger("ptkstore.bus.redis").warning("the connection is lost: %s", "TimeoutError")
try:
    raise ValueError("canary")
except ValueError:
    logging.getLogger("grpc").exception("calling %s", "canary")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours, theirs = (json.loads(line) for line in done.stderr.splitlines())
    assert (ours["event"], ours["level"]) == ("the connection is lost: TimeoutError", "warning")
    assert (theirs["logger"], theirs["level"]) == ("grpc", "error")
    assert "canary" not in done.stderr


def test_a_subscriber_is_not_flooded_while_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments: list[float] = []
    subscriber = Subscriber(lambda _: bool(moments.append(time.monotonic())))  # type: ignore[func-returns-value]
    with two_days(tmp_path) as (store, remote), listening(subscriber) as endpoint:
        with store.parts.metadata.write() as tx:
            one = tx.subscriptions.add(tx.ptks.named("hour-speed").id, endpoint)
            tx.notifications.set_mark(one.id, 0)
        away = Away(METADATA, times=3)
        plain, failing = Metadata.write, away.around(Metadata.write)

        def write(self: Metadata) -> Any:
            return (
                failing if threading.current_thread().name.startswith("sage-deliver") else plain
            )(self)

        monkeypatch.setattr(Metadata, "write", write)
        away.arm()
        remote.run("rides", until_ms=FIRST_MS + DAY_MS)
        until(lambda: away.failed == 3 and len(subscriber.told) == 4)
        # Each time it waited for the next look, unless a hint came between.
        assert moments[-1] - moments[0] > PACE.poll_seconds
    assert subscriber.told == [1, 1, 1, 1]
