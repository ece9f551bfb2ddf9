"""Those who follow PTKs hear of every state, in order and once, whatever happens to hints."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import Refused
from ptkstore.bus import LocalBus
from ptkstore.engine.following import Follower, Followers
from ptkstore.metadata import Metadata

DIGEST = "0" * 64
MANY = 40


class Shop:
    """Metadata with one PTK, and a bus."""

    def __init__(self, path: Path) -> None:
        self.metadata = Metadata.open(path)
        self.bus = LocalBus()
        with self.metadata.write() as tx:
            tx.streams.create("rides", {"name": "rides"}, at_ms=1)
            self.ptk = tx.ptks.create("busy", "rides", "counts", {}, 0.5, 1, at_ms=1).id

    def publish(self, *, hint: bool = True) -> int:
        with self.metadata.write_results("known") as tx:
            version = tx.states.next_version(self.ptk)
            cycle = tx.cycles.start("rides", version, at_ms=1)
            tx.states.add(self.ptk, version, DIGEST, {"version": version}, version, 1, cycle=cycle)
        if hint:
            self.bus.publish("sage.ptk.state.busy", {"subject": "busy"})
        return version

    def close(self) -> None:
        self.bus.close()
        self.metadata.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "meta.db")
    yield made
    made.close()


@pytest.fixture
def patient(shop: Shop) -> Iterator[Followers]:
    """Followers that never look without a hint."""
    made = Followers(shop.metadata, shop.bus, poll_seconds=3600)
    yield made
    made.close()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def listen(follower: Follower) -> tuple[list[int], threading.Thread]:
    heard: list[int] = []

    def run() -> None:
        while fresh := follower.next():
            heard.extend(row.version for row in fresh)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return heard, thread


def test_all_followers_hear_of_every_state_in_order_and_once(
    shop: Shop, patient: Followers
) -> None:
    lists = [listen(patient.follow("busy", 0))[0] for _ in range(20)]
    for _ in range(MANY):
        shop.publish()
    until(lambda: all(len(one) == MANY for one in lists))
    assert all(one == list(range(1, MANY + 1)) for one in lists)


def test_a_state_is_read_once_however_many_follow(
    shop: Shop, patient: Followers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = [listen(patient.follow("busy", 0))[0] for _ in range(50)]
    reads: list[None] = []
    read = shop.metadata.read

    def counted() -> Any:
        reads.append(None)
        return read()

    monkeypatch.setattr(shop.metadata, "read", counted)
    for version in range(1, 6):
        shop.publish()
        until(lambda version=version: all(one[-1:] == [version] for one in lists))  # type: ignore[misc]
    assert len(reads) < 20


def test_one_that_was_away_hears_what_it_missed(shop: Shop, patient: Followers) -> None:
    other, _ = listen(patient.follow("busy", 0))
    for _ in range(MANY):
        shop.publish()
    until(lambda: len(other) == MANY)
    late, _ = listen(patient.follow("busy", 3))
    until(lambda: len(late) == MANY - 3)
    assert late == list(range(4, MANY + 1))


def test_a_hint_that_got_lost_costs_a_delay_only(shop: Shop) -> None:
    followers = Followers(shop.metadata, shop.bus, poll_seconds=0.05)
    try:
        heard, _ = listen(followers.follow("busy", 0))
        shop.publish(hint=False)
        shop.publish(hint=False)
        until(lambda: heard == [1, 2])
    finally:
        followers.close()


def test_hints_about_others_do_not_keep_anybody_from_looking(shop: Shop) -> None:
    followers = Followers(shop.metadata, shop.bus, poll_seconds=0.2)
    over = threading.Event()

    def chatter() -> None:
        while not over.wait(0.01):
            shop.bus.publish("sage.ptk.state.other", {"subject": "other"})

    threading.Thread(target=chatter, daemon=True).start()
    try:
        heard, _ = listen(followers.follow("busy", 0))
        shop.publish(hint=False)
        until(lambda: heard == [1])
    finally:
        over.set()
        followers.close()


def test_closing_ends_those_who_wait(shop: Shop, patient: Followers) -> None:
    follower = patient.follow("busy", 0)
    _, one = listen(follower)
    _, other = listen(patient.follow("busy", 0))
    follower.close()
    one.join(10)
    assert not one.is_alive()
    assert other.is_alive()
    patient.close()
    other.join(10)
    assert not other.is_alive()
    assert patient.follow("busy", 0).next() == ()


def test_nobody_follows_what_does_not_exist(patient: Followers) -> None:
    with pytest.raises(Refused) as refusal:
        patient.follow("nothing", 0)
    assert refusal.value.reason == "PTK_UNKNOWN"
