"""Watchers: a few threads tell everybody, in order, and nobody is held up by a peer that reads
nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import SageError
from ptkstore.engine.following import Followers
from ptkstore.rpc.feeds.hub import Hub
from ptkstore.rpc.feeds.watching import THREADS, Watchers
from tests.engine.test_following import Shop, until


class Peer:
    """The other end of a call, as gRPC shows it."""

    def __init__(self) -> None:
        self.heard: list[bytes | None] = []
        self.reads = threading.Event()
        self.reads.set()
        self.status: Any = None
        self._over: list[Callable[[], None]] = []

    def send(self, message: bytes | None) -> None:
        self.reads.wait(20)
        self.heard.append(message)
        if message is None:
            self.leave()

    def add_callback(self, callback: Callable[[], None]) -> bool:
        self._over.append(callback)
        return True

    def abort_with_status(self, status: Any) -> None:
        self.status = status
        raise RuntimeError("aborted")

    def leave(self) -> None:
        for callback in self._over:
            callback()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "meta.db")
    yield made
    made.close()


@pytest.fixture
def hub(shop: Shop) -> Iterator[Hub]:
    made = Hub(shop.bus, most=100)
    yield made
    made.close()


@pytest.fixture
def watchers(shop: Shop, hub: Hub) -> Iterator[Watchers]:
    followers = Followers(shop.metadata, shop.bus, poll_seconds=3600)
    made = Watchers(followers, hub, lambda name, row: f"{name}@{row.version}".encode())
    yield made
    hub.stop()
    made.close()
    followers.close()


def watch(watchers: Watchers, peer: Peer, who: str | None = None) -> Peer:
    """A call of somebody who has no other."""
    watchers.watch(who or f"caller {id(peer)}", "busy", 0, peer, peer.send)
    return peer


def test_everybody_is_told_in_order_by_a_few_threads(shop: Shop, watchers: Watchers) -> None:
    before = threading.active_count()
    shop.publish()
    peers = [watch(watchers, Peer()) for _ in range(90)]
    assert threading.active_count() < before + THREADS + 4
    for _ in range(10):
        shop.publish()
    expected = [f"busy@{version}".encode() for version in range(1, 12)]
    until(lambda: all(len(peer.heard) == len(expected) for peer in peers))
    assert all(peer.heard == expected for peer in peers)


def test_peers_that_read_nothing_do_not_stop_the_others(shop: Shop, watchers: Watchers) -> None:
    stuck = [watch(watchers, Peer()) for _ in range(2 * THREADS)]
    for peer in stuck:
        peer.reads.clear()
    shop.publish()
    others = [watch(watchers, Peer()) for _ in range(5)]
    until(lambda: all(peer.heard == [b"busy@1"] for peer in others))
    assert not any(peer.heard for peer in stuck)
    for peer in stuck:
        peer.reads.set()
    until(lambda: all(peer.heard == [b"busy@1"] for peer in stuck))


def test_stopping_ends_every_call_with_a_status(shop: Shop, hub: Hub, watchers: Watchers) -> None:
    peers = [watch(watchers, Peer()) for _ in range(20)]
    hub.stop()
    until(lambda: all(peer.heard == [None] for peer in peers))
    assert {peer.status.code.name for peer in peers} == {"UNAVAILABLE"}
    with pytest.raises(SageError) as refusal:
        watch(watchers, Peer())
    assert refusal.value.reason == "SERVER_STOPPING"


def test_there_is_a_limit_and_those_who_leave_make_room(hub: Hub, watchers: Watchers) -> None:
    peers = [watch(watchers, Peer()) for _ in range(100)]
    with pytest.raises(SageError) as refusal:
        watch(watchers, Peer())
    assert refusal.value.reason == "TOO_MANY_WATCHERS"
    peers[0].leave()
    watch(watchers, Peer())


def test_one_caller_leaves_half_to_others_and_they_leave_some_to_the_next(
    watchers: Watchers,
) -> None:
    held: dict[str, list[Peer]] = {}
    for who in ("greedy", "second", "third"):
        held[who] = []
        reason = ""
        while not reason:
            try:
                held[who].append(watch(watchers, Peer(), who))
            except SageError as refusal:
                reason = refusal.reason
        assert reason == "TOO_MANY_WATCHERS"
    assert [len(peers) for peers in held.values()] == [50, 25, 13]
    watch(watchers, Peer(), "late and modest")
    with pytest.raises(SageError, match="50 calls of yours"):
        watch(watchers, Peer(), "greedy")


def test_what_a_caller_gives_back_it_may_take_again(watchers: Watchers) -> None:
    peers = [watch(watchers, Peer(), "greedy") for _ in range(50)]
    for _ in range(3):
        with pytest.raises(SageError):
            watch(watchers, Peer(), "greedy")
        # Once: an end that is told twice frees one place.
        peers[0].leave()
        peers[0].leave()
        peers = [*peers[1:], watch(watchers, Peer(), "greedy")]


def test_one_who_left_is_told_nothing(shop: Shop, watchers: Watchers) -> None:
    gone, here = watch(watchers, Peer()), watch(watchers, Peer())
    gone.leave()
    shop.publish()
    until(lambda: here.heard == [b"busy@1"])
    assert gone.heard == []


def test_trouble_with_the_metadata_ends_the_call_so_that_it_is_made_again(
    shop: Shop, watchers: Watchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.publish()

    def broken(*_: object) -> None:
        raise SageError("METADATA_UNAVAILABLE", "not now")

    peer = Peer()
    monkeypatch.setattr("ptkstore.engine.following.Followers.fresh", broken)
    watch(watchers, peer)
    until(lambda: peer.heard == [None])
    assert peer.status is not None
