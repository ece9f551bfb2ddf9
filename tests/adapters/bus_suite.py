"""What every bus must do.

Subclass it, and give it a fixture ``bus``. No test sleeps: each waits for what must come.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptkstore.bus import Bus

WAIT = 30.0
Inbox = queue.Queue[tuple[str, dict[str, Any]]]


def listen(bus: Bus, pattern: str) -> Inbox:
    inbox: Inbox = queue.Queue()
    bus.subscribe(pattern, lambda topic, message: inbox.put((topic, message)))
    return inbox


def take(inbox: Inbox, count: int) -> list[tuple[str, dict[str, Any]]]:
    return [inbox.get(timeout=WAIT) for _ in range(count)]


class BusSuite:
    """The contract of `Bus`, on any backend."""

    def test_messages_come_in_order_to_everybody_who_listens(self, bus: Bus) -> None:
        first, second = listen(bus, "a"), listen(bus, "a")
        for number in range(100):
            bus.publish("a", {"n": number})
        expected = [("a", {"n": number}) for number in range(100)]
        assert take(first, 100) == expected
        assert take(second, 100) == expected

    @pytest.mark.parametrize(
        ("pattern", "heard"),
        [
            ("sage.state.p", ["sage.state.p"]),
            ("sage.state.*", ["sage.state.p", "sage.state.pq", "sage.state.a.b"]),
            ("sage.state.p?", ["sage.state.pq"]),
            ("*.p", ["sage.state.p", "sage.plan.p"]),
            ("sage.stateXp", ["sage.stateXp"]),
            (
                "*",
                ["sage.state.p", "sage.state.pq", "sage.state.a.b", "sage.plan.p", "sage.stateXp"],
            ),
        ],
    )
    def test_patterns(self, bus: Bus, pattern: str, heard: list[str]) -> None:
        inbox = listen(bus, pattern)
        for topic in (
            "sage.state.p",
            "sage.state.pq",
            "sage.state.a.b",
            "sage.plan.p",
            "sage.stateXp",
        ):
            bus.publish(topic, {})
        end = pattern.replace("*", "end").replace("?", "e")
        bus.publish(end, {"end": True})
        topics = []
        while True:
            topic, message = inbox.get(timeout=WAIT)
            if message:
                break
            topics.append(topic)
        assert topics == heard

    def test_every_listener_has_a_copy_of_its_own(self, bus: Bus) -> None:
        inbox: Inbox = queue.Queue()

        def spoil(topic: str, message: dict[str, Any]) -> None:
            message["list"].append(1)
            inbox.put((topic, message))

        bus.subscribe("a", spoil)
        bus.subscribe("a", spoil)
        sent: dict[str, Any] = {"list": []}
        bus.publish("a", sent)
        assert take(inbox, 2) == [("a", {"list": [1]})] * 2
        assert sent == {"list": []}

    def test_a_failing_listener_hears_the_next_message_and_harms_nobody(self, bus: Bus) -> None:
        heard: Inbox = queue.Queue()

        def fail(topic: str, message: dict[str, Any]) -> None:
            heard.put((topic, message))
            raise SystemExit(1) if message["n"] else RuntimeError

        bus.subscribe("a", fail)
        other = listen(bus, "a")
        for number in range(3):
            bus.publish("a", {"n": number})
        assert [message["n"] for _, message in take(heard, 3)] == [0, 1, 2]
        assert [message["n"] for _, message in take(other, 3)] == [0, 1, 2]

    def test_a_slow_listener_delays_nobody(self, bus: Bus) -> None:
        release = threading.Event()

        def slow(topic: str, message: dict[str, Any]) -> None:
            release.wait(WAIT)

        bus.subscribe("a", slow)
        other = listen(bus, "a")
        for number in range(50):
            bus.publish("a", {"n": number})
        assert len(take(other, 50)) == 50
        assert not release.is_set()
        release.set()

    def test_who_has_closed_hears_no_more(self, bus: Bus) -> None:
        gone: Inbox = queue.Queue()
        handle = bus.subscribe("a", lambda topic, message: gone.put((topic, message)))
        other = listen(bus, "a")
        bus.publish("a", {"n": 0})
        take(gone, 1)
        handle.close()
        handle.close()
        bus.publish("a", {"n": 1})
        assert [message["n"] for _, message in take(other, 2)] == [0, 1]
        assert gone.empty()

    def test_a_listener_may_close_itself_publish_and_subscribe(self, bus: Bus) -> None:
        answers = listen(bus, "answer")
        handles: Any = []
        ready = threading.Event()

        def once(topic: str, message: dict[str, Any]) -> None:
            assert ready.wait(WAIT)
            handles[0].close()
            bus.publish("answer", message)
            bus.subscribe("late", lambda topic, message: bus.publish("answer", message))
            bus.publish("answer", {"ready": True})

        handles.append(bus.subscribe("ask", once))
        ready.set()
        bus.publish("ask", {"n": 1})
        bus.publish("ask", {"n": 2})
        assert [message for _, message in take(answers, 2)] == [{"n": 1}, {"ready": True}]
        bus.publish("ask", {"n": 3})
        bus.publish("late", {"n": 4})
        assert take(answers, 1) == [("answer", {"n": 4})]

    def test_many_publishers_are_each_heard_in_order(self, bus: Bus) -> None:
        inboxes = [listen(bus, "*") for _ in range(2)]

        def publish(name: str) -> None:
            for number in range(100):
                bus.publish(name, {"n": number})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(publish, "abcd"))
        for inbox in inboxes:
            heard = take(inbox, 400)
            for name in "abcd":
                assert [message["n"] for topic, message in heard if topic == name] == list(
                    range(100)
                )

    @pytest.mark.parametrize("topic", ["", "a\nb", "x" * 1001, None])
    def test_topics_that_are_refused(self, bus: Bus, topic: str) -> None:
        with pytest.raises(InvalidInput, match="TOPIC_INVALID"):
            bus.publish(topic, {})
        with pytest.raises(InvalidInput, match="TOPIC_INVALID"):
            bus.subscribe(topic, print)

    @pytest.mark.parametrize("pattern", ["a[b]", "a\\*"])
    def test_patterns_that_are_refused(self, bus: Bus, pattern: str) -> None:
        with pytest.raises(InvalidInput, match="TOPIC_INVALID"):
            bus.subscribe(pattern, print)

    @pytest.mark.parametrize(
        "message", [[], "text", {"a": object()}, {"a": float("nan")}, {"a": "\ud800"}]
    )
    def test_messages_that_are_refused(self, bus: Bus, message: Any) -> None:
        with pytest.raises(InvalidInput, match="MESSAGE_INVALID"):
            bus.publish("a", message)
