"""The bus inside one process: the suite, and what a full queue does."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ptklib.errors import InvalidInput
from ptkstore.bus import BusUnavailable, LocalBus
from tests.adapters.bus_suite import WAIT, BusSuite


@pytest.fixture
def bus() -> Iterator[LocalBus]:
    with LocalBus() as bus:
        yield bus


class TestLocal(BusSuite):
    """Everything any backend must do."""


def test_a_full_queue_drops_the_oldest_and_counts_them() -> None:
    entered, release = threading.Event(), threading.Event()
    heard: list[int] = []

    def slow(topic: str, message: dict[str, int]) -> None:
        entered.set()
        release.wait(WAIT)
        heard.append(message["n"])

    with LocalBus(capacity=3) as bus:
        subscription = bus.subscribe("a", slow)
        bus.publish("a", {"n": 0})
        assert entered.wait(WAIT)
        for number in range(1, 11):
            bus.publish("a", {"n": number})
        assert not bus.settle(0)
        release.set()
        assert bus.settle(WAIT)
    assert heard == [0, 8, 9, 10]
    assert (subscription.handled, subscription.dropped, subscription.failed) == (4, 7, 0)


def test_failures_are_counted() -> None:
    with LocalBus() as bus:
        subscription = bus.subscribe("a", lambda topic, message: message["missing"])
        bus.publish("a", {})
        bus.publish("a", {"missing": 1})
        assert bus.settle(WAIT)
        assert (subscription.handled, subscription.dropped, subscription.failed) == (1, 0, 1)


def test_closing_ends_every_thread_even_from_a_callback() -> None:
    bus = LocalBus()
    done = threading.Event()

    def close(topic: str, message: object) -> None:
        bus.close()
        done.set()

    bus.subscribe("a", close)
    bus.subscribe("b", close)
    bus.publish("a", {})
    assert done.wait(WAIT)
    for thread in threading.enumerate():
        if thread.name.startswith("sage-bus"):
            thread.join(WAIT)
            assert not thread.is_alive()
    bus.close()
    with pytest.raises(BusUnavailable, match="BUS_CLOSED"):
        bus.publish("a", {})
    with pytest.raises(BusUnavailable, match="BUS_CLOSED"):
        bus.subscribe("a", close)


@pytest.mark.parametrize("capacity", [0, -1, True, 1.5])
def test_capacities_that_are_refused(capacity: int) -> None:
    with pytest.raises(InvalidInput, match="VALUE_INVALID"):
        LocalBus(capacity=capacity)
