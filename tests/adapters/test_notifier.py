"""From the outbox to the bus: in order for each subject, at least once, through refusals and
crashes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptkstore.bus import BusUnavailable, LocalBus
from ptkstore.engine.notifier import Notifier
from ptkstore.metadata import Metadata, MetadataUnavailable
from tests.adapters.bus_suite import WAIT, listen, take


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[Metadata]:
    with Metadata.open(tmp_path / "meta.db") as metadata:
        yield metadata


class Recorder:
    """A bus that writes down what it took, and refuses what it is told to."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.subjects: dict[int, str] = {}
        self.tries: list[int] = []
        self.refused: set[str] = set()
        self.broken = False

    def publish(self, topic: str, message: Mapping[str, Any]) -> None:
        self.tries.append(message["id"])
        if self.broken or message["subject"] in self.refused:
            raise BusUnavailable("BUS_CLOSED", "not now")
        self.taken.append(message["id"])
        self.subjects[message["id"]] = message["subject"]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def add(metadata: Metadata, subjects: str) -> list[int]:
    with metadata.write() as tx:
        return [tx.events.add("state", subject, {"n": n}) for n, subject in enumerate(subjects)]


def mark(metadata: Metadata, subscriber: str = "bus") -> int:
    with metadata.read() as tx:
        return tx.events.delivered(subscriber)


def test_events_become_messages_once_and_in_order(metadata: Metadata) -> None:
    with LocalBus() as bus:
        inbox = listen(bus, "sage.state.*")
        ids = add(metadata, "pqp")
        notifier = Notifier(metadata, bus, now_ms=lambda: 77)
        assert notifier.drain().delivered == 3
        assert notifier.drain().delivered == 0
        assert take(inbox, 3) == [
            (
                f"sage.state.{subject}",
                {"id": ids[n], "kind": "state", "subject": subject, "body": {"n": n}},
            )
            for n, subject in enumerate("pqp")
        ]
        assert bus.settle(WAIT)
        assert inbox.empty()
    assert mark(metadata) == ids[-1]
    with metadata.read() as tx:
        assert tx.events.deliveries()[0].at_ms == 77


def test_more_events_than_a_batch(metadata: Metadata) -> None:
    bus = Recorder()
    ids = add(metadata, "pq" * 25)
    assert Notifier(metadata, bus, batch=7).drain().delivered == 50
    assert bus.taken == ids


def test_a_subject_that_is_refused_holds_up_itself_only(metadata: Metadata) -> None:
    bus, clock = Recorder(), Clock()
    notifier = Notifier(metadata, bus, clock=clock, first_delay_seconds=1, longest_delay_seconds=4)
    ids = add(metadata, "qpqpr")
    bus.refused = {"p"}
    drained = notifier.drain()
    assert (drained.delivered, drained.waiting, drained.retry_seconds) == (3, 2, 1)
    assert bus.taken == [ids[0], ids[2], ids[4]]
    assert mark(metadata) == ids[0]
    bus.refused = set()
    clock.now = 0.99
    assert notifier.drain().delivered == 0
    clock.now = 1.0
    assert notifier.drain().delivered == 2
    assert bus.taken == [ids[0], ids[2], ids[4], ids[1], ids[3]]
    assert mark(metadata) == ids[4]


def test_order_holds_even_when_the_wait_ends_while_others_are_served(metadata: Metadata) -> None:
    clock = Clock()

    class SlowRecorder(Recorder):
        def publish(self, topic: str, message: Mapping[str, Any]) -> None:
            clock.now += 10
            self.broken = not self.tries
            super().publish(topic, message)

    bus = SlowRecorder()
    notifier = Notifier(metadata, bus, clock=clock, first_delay_seconds=1)
    ids = add(metadata, "pqp")
    assert notifier.drain().waiting == 2
    assert notifier.drain().waiting == 0
    assert bus.taken == [ids[1], ids[0], ids[2]]


def test_retries_wait_longer_each_time_up_to_a_limit_and_start_anew_after_success(
    metadata: Metadata,
) -> None:
    bus, clock = Recorder(), Clock()
    notifier = Notifier(metadata, bus, clock=clock, first_delay_seconds=1, longest_delay_seconds=5)
    add(metadata, "p")
    bus.broken = True
    waits = []
    for _ in range(5):
        retry = notifier.drain().retry_seconds
        assert retry is not None
        waits.append(retry)
        clock.now += retry
    assert waits == [1, 2, 4, 5, 5]
    bus.broken = False
    assert notifier.drain().delivered == 1
    bus.broken = True
    add(metadata, "p")
    assert notifier.drain().retry_seconds == 1


def test_a_crash_before_the_mark_repeats_and_loses_nothing(
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = Recorder()
    ids = add(metadata, "pq")

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    notifier = Notifier(metadata, bus)
    monkeypatch.setattr(notifier, "_move_mark", die)
    with pytest.raises(KeyboardInterrupt):
        notifier.drain()
    assert mark(metadata) == 0
    Notifier(metadata, bus).drain()
    assert bus.taken == ids * 2
    Notifier(metadata, bus).drain()
    assert bus.taken == ids * 2


@pytest.mark.parametrize("seed", range(20))
def test_whatever_fails_every_event_comes_and_each_subject_in_order(
    metadata: Metadata, seed: int
) -> None:
    choose = random.Random(seed)
    bus, clock = Recorder(), Clock()
    ids: list[int] = []
    notifier = Notifier(metadata, bus, clock=clock, batch=choose.choice([2, 5, 100]))
    for _ in range(30):
        ids += add(metadata, "".join(choose.choices("pqr", k=choose.randrange(3))))
        bus.refused = set(choose.sample("pqr", choose.randrange(3)))
        clock.now += choose.random() * 5
        notifier.drain()
        delivered = mark(metadata)
        assert set(bus.taken) >= {one for one in ids if one <= delivered}
        if choose.random() < 0.2:  # a crash: only the mark is known to the next one
            notifier = Notifier(metadata, bus, clock=clock, batch=choose.choice([2, 5, 100]))
    bus.refused = set()
    clock.now += 1000
    notifier.drain()
    assert set(bus.taken) == set(ids)
    for subject in "pqr":
        first = list(dict.fromkeys(one for one in bus.taken if bus.subjects[one] == subject))
        assert first == sorted(first)
    assert mark(metadata) == (ids[-1] if ids else 0)


def test_subscribers_have_marks_of_their_own(metadata: Metadata) -> None:
    bus = Recorder()
    ids = add(metadata, "p")
    Notifier(metadata, bus, subscriber="a").drain()
    assert (mark(metadata, "a"), mark(metadata, "b")) == (ids[0], 0)
    Notifier(metadata, bus, subscriber="b").drain()
    assert bus.taken == ids * 2


def test_the_thread_hears_of_commits_and_outlives_a_store_that_is_away(metadata: Metadata) -> None:
    away = threading.Event()
    refused = threading.Event()

    class Unsteady:
        def read(self) -> Any:
            if away.is_set():
                refused.set()
                raise MetadataUnavailable("METADATA_UNAVAILABLE", "away")
            return metadata.read()

        def write(self) -> Any:
            return metadata.write()

    with LocalBus() as bus:
        inbox = listen(bus, "*")
        with Notifier(
            Unsteady(), bus, first_delay_seconds=0.001, longest_delay_seconds=0.01, poll_seconds=60
        ) as notifier:
            notifier.start()
            (first,) = add(metadata, "p")
            notifier.wake()
            assert take(inbox, 1)[0][1]["id"] == first
            away.set()
            (second,) = add(metadata, "p")
            notifier.wake()
            assert refused.wait(WAIT)
            away.clear()
            assert take(inbox, 1)[0][1]["id"] == second
        notifier.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "sage-notifier"]


def test_the_thread_writes_one_mark_for_many_events_and_the_last_one_when_it_stops(
    metadata: Metadata,
) -> None:
    clock, writes = Clock(), []

    class Counted:
        def read(self) -> Any:
            return metadata.read()

        def write(self) -> Any:
            writes.append(1)
            return metadata.write()

    with LocalBus() as bus:
        inbox = listen(bus, "*")
        with Notifier(Counted(), bus, clock=clock, poll_seconds=60) as notifier:
            for _ in range(20):
                (event,) = add(metadata, "p")
                notifier.wake()
                assert take(inbox, 1)[0][1]["id"] == event
            assert (mark(metadata), writes) == (0, [])
        assert (mark(metadata), writes) == (event, [1])


def test_commits_of_others_are_found_without_waking(metadata: Metadata) -> None:
    with LocalBus() as bus:
        inbox = listen(bus, "*")
        with Notifier(metadata, bus, poll_seconds=0.005):
            (first,) = add(metadata, "p")
            assert take(inbox, 1)[0][1]["id"] == first


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0},
        {"first_delay_seconds": 0},
        {"first_delay_seconds": 9, "longest_delay_seconds": 1},
        {"poll_seconds": 0},
    ],
)
def test_settings_that_are_refused(metadata: Metadata, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="VALUE_INVALID"):
        Notifier(metadata, Recorder(), **wrong)
