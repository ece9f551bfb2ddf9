"""Who leads: never two at once, another when the leader is gone, and nothing written by one who
does not lead any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ptkstore import Store
from ptkstore.engine.leader import LeadLost, StoreLock
from ptkstore.engine.leadership.election import LEASE, Election
from ptkstore.engine.parts import Adapters
from ptkstore.engine.window.running import due_windows, run_window
from ptkstore.metadata import Metadata
from ptkstore.metadata.work.leases import LeaseRow
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec

LEASE_SECONDS = 12.0
WAIT = 30.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Candidate:
    """A server as the election sees it."""

    def __init__(self, store: Store, clock: Clock, address: str) -> None:
        self.store = store
        self.calls: list[str] = []
        self.election = Election(
            store.parts,
            address=address,
            lease_seconds=LEASE_SECONDS,
            gained=lambda: self.calls.append("gained"),
            lost=lambda: self.calls.append("lost"),
            clock=clock,
        )
        store.parts.lead = self.election

    def leads(self) -> bool:
        try:
            self.election.require_lease()
        except LeadLost:
            return False
        return self.election.wait(WAIT)


@contextmanager
def candidates(first: Path, second: Path, clock: Clock) -> Iterator[tuple[Candidate, Candidate]]:
    shared = Adapters(metadata=lambda: Metadata.open(first.parent / "shared.db"))
    with (
        Store(first, workers=0, adapters=shared) as one,
        Store(second, workers=0, adapters=shared) as two,
    ):
        yield Candidate(one, clock, "one:1"), Candidate(two, clock, "two:2")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def apart(tmp_path: Path, clock: Clock) -> Iterator[tuple[Candidate, Candidate]]:
    """On two machines whose locks do not know of each other."""
    with candidates(tmp_path / "a", tmp_path / "b", clock) as found:
        yield found


@pytest.fixture
def together(tmp_path: Path, clock: Clock) -> Iterator[tuple[Candidate, Candidate]]:
    """On one directory."""
    with candidates(tmp_path / "a", tmp_path / "a", clock) as found:
        yield found


def test_one_leads_and_tells_where(apart: tuple[Candidate, Candidate]) -> None:
    one, two = apart
    one.election.step()
    two.election.step()
    assert (one.leads(), two.leads()) == (True, False)
    assert (one.election.leader(), two.election.leader()) == (None, "one:1")
    assert (one.calls, two.calls) == (["gained"], [])
    with pytest.raises(LeadLost, match="LEAD_LOST"):
        two.store.parts.writer("rides")


def test_a_leader_that_renews_stays(apart: tuple[Candidate, Candidate], clock: Clock) -> None:
    one, two = apart
    for _ in range(40):
        clock.now += 1.0
        one.election.step()
        two.election.step()
        assert one.leads()
        assert not two.leads()


def test_never_two_at_once_when_the_leader_cannot_renew(
    apart: tuple[Candidate, Candidate], clock: Clock
) -> None:
    one, two = apart
    one.election.step()
    assert one.leads()
    history = []
    for _ in range(30):
        clock.now += 0.5
        two.election.step()
        history.append((one.leads(), two.leads()))
    assert (True, True) not in history
    assert history[0] == (True, False)
    assert history[-1] == (False, True)
    # There is a gap, and it is as long as it was meant to be.
    alone = history.count((True, False)) / 2
    assert LEASE_SECONDS * 0.6 <= alone <= LEASE_SECONDS * 0.75


def test_a_leader_that_was_replaced_writes_nothing_more_and_lets_go(
    apart: tuple[Candidate, Candidate], clock: Clock
) -> None:
    one, two = apart
    one.election.step()
    assert one.leads()
    one.store.create_stream(spec())
    one.store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.2)
    one.store.push("rides", day(0))
    (window,) = due_windows(one.store.parts, "rides", FIRST_MS + DAY_MS)

    def replaced(step: str, moment: str) -> None:
        # In the middle of a step, while the old leader still trusts its lease.
        if (step, moment) == ("planned", "begins"):
            with two.store.parts.metadata.write() as tx:
                seen = tx.leases.get(LEASE)
                assert tx.leases.take(
                    LEASE, seen, holder="x", address="x:1", place="elsewhere", lease_ms=1
                )

    one.store.parts.observers.add(replaced)
    with pytest.raises(LeadLost, match="LEAD_LOST"):
        run_window(one.store.parts, "rides", window)
    (cycle,) = one.store.cycles("rides")
    assert cycle.status == "RUNNING"
    assert cycle.steps == ("sealed", "profiled")
    clock.now += LEASE_SECONDS / 2
    one.election.step()
    assert one.calls == ["gained", "lost"]
    assert not one.store.parts.writers
    assert StoreLock(one.store.parts.path).take()


@pytest.mark.parametrize(
    "error", [LeadLost("LEAD_LOST", "not now"), RuntimeError("a defect")], ids=["ours", "another"]
)
def test_a_leader_that_cannot_begin_lets_go_when_it_is_replaced(
    apart: tuple[Candidate, Candidate],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    one, two = apart
    begun = threading.Event()

    def fail() -> None:
        begun.set()
        raise error

    monkeypatch.setattr(one.election, "_gained", fail)
    one.election.step()
    assert begun.wait(WAIT)
    assert not one.election.ready
    with two.store.parts.metadata.write() as tx:
        assert tx.leases.take(
            LEASE, tx.leases.get(LEASE), holder="x", address="x:1", place="elsewhere", lease_ms=1
        )
    clock.now += LEASE_SECONDS / 2
    step = threading.Thread(target=one.election.step, daemon=True)
    step.start()
    step.join(WAIT)
    assert not step.is_alive()
    assert one.calls == ["lost"]
    assert StoreLock(one.store.parts.path).take()


def test_a_directory_that_is_away_for_a_moment_keeps_nobody_from_leading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    take = StoreLock.take

    def away(lock: StoreLock) -> bool:
        tries.append("take")
        if len(tries) in (2, 3):
            raise OSError("Stale file handle")
        return len(tries) > 3 and take(lock)

    monkeypatch.setattr(StoreLock, "take", away)
    with Store(tmp_path, workers=0) as store:
        election = Candidate(store, time.monotonic, "one:1").election  # type: ignore[arg-type]
        election.start()
        try:
            assert election.wait(WAIT)
        finally:
            election.stop()


def test_a_step_is_not_begun_where_the_lease_is_not_trusted(
    apart: tuple[Candidate, Candidate], clock: Clock
) -> None:
    one, _ = apart
    one.election.step()
    assert one.leads()
    one.store.create_stream(spec())
    one.store.push("rides", day(0))
    (window,) = due_windows(one.store.parts, "rides", FIRST_MS + DAY_MS)
    begun: list[str] = []
    one.store.parts.observers.add(lambda step, _moment: begun.append(step))
    clock.now += LEASE_SECONDS * 0.8
    with pytest.raises(LeadLost, match="LEAD_LOST"):
        run_window(one.store.parts, "rides", window)
    assert not begun
    # It could not renew for a while, and nobody came: it goes on.
    one.election.step()
    assert run_window(one.store.parts, "rides", window).status == "DONE"


def test_on_one_machine_a_death_is_known_at_once(
    together: tuple[Candidate, Candidate], clock: Clock
) -> None:
    one, two = together
    one.election.step()
    assert one.leads()
    clock.now += LEASE_SECONDS * 10
    two.election.step()
    assert not two.leads(), "it stands still, and may go on"
    one.election._lock.release()  # as the operating system does
    one.store.parts.close_writers()
    two.election.step()
    assert two.leads()


def test_a_lease_that_is_given_back_is_taken_at_once(apart: tuple[Candidate, Candidate]) -> None:
    one, two = apart
    one.election.step()
    assert one.leads()
    one.election.stop()
    one.election.stop()
    assert one.calls == ["gained", "lost"]
    two.election.step()
    assert two.leads()
    assert two.election.leader() is None


class TestLeases:
    """The row."""

    def test_it_is_taken_from_exactly_what_was_seen(self, tmp_path: Path) -> None:
        with Metadata.open(tmp_path / "meta.db") as metadata, metadata.write() as tx:
            terms = {"holder": "a", "address": "a:1", "place": "p", "lease_ms": 5}
            assert tx.leases.get("lead") is None
            first = tx.leases.take("lead", None, **terms)  # type: ignore[arg-type]
            assert first == LeaseRow("lead", "a", "a:1", "p", 1, 0, 5)
            assert tx.leases.take("lead", None, **terms) is None  # type: ignore[arg-type]
            assert tx.leases.renew("lead", "a", 1)
            assert not tx.leases.renew("lead", "b", 1)
            assert not tx.leases.renew("lead", "a", 2)
            # It has beaten since it was seen.
            assert tx.leases.take("lead", first, **terms | {"holder": "b"}) is None  # type: ignore[arg-type]
            second = tx.leases.take("lead", tx.leases.get("lead"), **terms | {"holder": "b"})  # type: ignore[arg-type]
            assert second is not None
            assert (second.holder, second.term, second.beat) == ("b", 2, 0)
            tx.leases.release("lead", "a", 1)
            assert tx.leases.get("lead") == second
            tx.leases.release("lead", "b", 2)
            given = tx.leases.get("lead")
            assert given is not None
            assert (given.holder, given.term) == ("", 2)
