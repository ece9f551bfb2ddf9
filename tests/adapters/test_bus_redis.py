"""The bus on Redis: the suite, what the channels carry, and a Redis that goes away and comes
back.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from devtools.servers.cache import tell
from devtools.servers.redis import Redis, start_redis
from devtools.servers.running import free_port
from ptklib.errors import InvalidInput
from ptkstore.bus import BusUnavailable, RedisBus
from ptkstore.engine.following import Followers
from ptkstore.engine.notifier import Notifier
from ptkstore.metadata import Metadata
from tests.adapters.bus_suite import WAIT, BusSuite, listen, take

ROOT = Path(__file__).parents[2]
_PREFIXES = itertools.count()


@pytest.fixture
def prefix() -> str:
    return f"test{next(_PREFIXES)}."


@pytest.fixture
def bus(redis_server: Redis, prefix: str) -> Iterator[RedisBus]:
    with RedisBus(redis_server.url, prefix=prefix) as bus:
        yield bus


@pytest.fixture
def own_redis(redis_server: Redis) -> Iterator[Redis]:
    """A Redis that a test may stop.

    It depends on the other one, so that it is skipped where there is none.
    """
    mine = start_redis(tell)
    yield mine
    mine.server.close()


def until(condition: Any) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class TestRedis(BusSuite):
    """Everything any backend must do."""


def test_any_client_can_hear_a_ptk_by_its_name(redis_server: Redis) -> None:
    with (
        redis.Redis.from_url(redis_server.url) as client,
        client.pubsub() as pubsub,
        RedisBus(redis_server.url) as bus,
    ):
        pubsub.subscribe("ptk.hour-speed", "ptk.odd topic")
        until(lambda: pubsub.get_message(timeout=1) and pubsub.get_message(timeout=1))
        event = {"id": 7, "kind": "ptk.state", "subject": "hour-speed", "body": {"version": 3}}
        bus.publish("sage.ptk.state.hour-speed", event)
        bus.publish("odd topic", {"n": 1})
        told = [pubsub.get_message(timeout=WAIT) for _ in range(2)]
        assert [json.loads(one["data"]) for one in told if one] == [
            {"topic": "sage.ptk.state.hour-speed", "message": event},
            {"topic": "odd topic", "message": {"n": 1}},
        ]


def test_processes_hear_each_other_and_stores_with_other_prefixes_do_not(
    bus: RedisBus, redis_server: Redis
) -> None:
    prefix = bus._prefix
    inbox = listen(bus, "sage.*")
    with RedisBus(redis_server.url, prefix="other.") as other:
        other.publish("sage.state.p", {"n": 0})
    code = (
        "import sys; from ptkstore.bus import RedisBus\n"
        "with RedisBus(sys.argv[1], prefix=sys.argv[2]) as bus:\n"
        "    bus.publish('sage.state.p', {'n': 1})\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code, redis_server.url, prefix], cwd=ROOT, check=True
    )
    assert take(inbox, 1) == [("sage.state.p", {"n": 1})]


def test_what_others_write_on_our_channels_harms_nobody(
    bus: RedisBus, redis_server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = listen(bus, "*")
    with redis.Redis.from_url(redis_server.url) as client:
        for data in (
            "",
            "text",
            "[1]",
            "{}",
            '{"topic":"a"}',
            '{"topic":"","message":{}}',
            '{"topic":"a","message":[]}',
        ):
            client.publish(bus._prefix + "p", data)
    bus.publish("a", {"n": 1})
    assert take(inbox, 1) == [("a", {"n": 1})]
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 7


def test_a_redis_that_is_away_refuses_at_once_and_holds_up_nobody(redis_server: Redis) -> None:
    with RedisBus(
        f"redis://127.0.0.1:{free_port()}",
        timeout_seconds=0.2,
        first_delay_seconds=60.0,
        longest_delay_seconds=60.0,
    ) as bus:
        inbox = listen(bus, "*")
        assert not bus.connected
        for _ in range(1000):
            with pytest.raises(BusUnavailable, match="BUS_UNAVAILABLE"):
                bus.publish("a", {})
        assert inbox.empty()


def test_a_notifier_delivers_once_redis_is_back(own_redis: Redis, tmp_path: Path) -> None:
    with (
        Metadata.open(tmp_path / "meta.db") as metadata,
        RedisBus(own_redis.url, longest_delay_seconds=0.1) as bus,
        Notifier(metadata, bus, first_delay_seconds=0.01, longest_delay_seconds=0.05) as notifier,
    ):
        inbox = listen(bus, "sage.*")

        def add(number: int) -> None:
            with metadata.write() as tx:
                tx.events.add("state", "p", number)
            notifier.wake()

        add(0)
        assert take(inbox, 1)[0][1]["body"] == 0
        own_redis.server.kill()
        until(lambda: not bus.connected)
        add(1)  # the service goes on
        with metadata.read() as tx:
            assert tx.events.delivered("bus") < tx.events.newest()
        own_redis.server.start()
        with metadata.read() as tx:
            newest = tx.events.newest()

        def delivered() -> bool:
            with metadata.read() as tx:
                return tx.events.delivered("bus") == newest

        until(delivered)
        until(lambda: bus.connected)
        add(2)
        assert take(inbox, 1)[-1][1]["body"] in {1, 2}


def test_every_connection_is_told(own_redis: Redis) -> None:
    moments: queue.Queue[bool] = queue.Queue()
    with RedisBus(own_redis.url, longest_delay_seconds=0.1) as bus:
        bus.on_connect(lambda: moments.put(bus.connected))
        assert moments.get(timeout=WAIT)
        for _ in range(2):
            own_redis.server.stop()
            until(lambda: not bus.connected)
            own_redis.server.start()
            assert moments.get(timeout=WAIT)


def test_a_connection_that_went_silent_is_noticed(own_redis: Redis) -> None:
    """As when a cable is pulled: nobody says goodbye."""
    with RedisBus(
        own_redis.url, timeout_seconds=0.3, silence_seconds=0.1, longest_delay_seconds=0.1
    ) as bus:
        inbox = listen(bus, "*")
        assert bus.connected
        pid = _pid(own_redis)
        os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: not bus.connected)
            with pytest.raises(BusUnavailable, match="BUS_UNAVAILABLE"):
                bus.publish("a", {})
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: bus.connected)

        def heard() -> bool:
            try:
                bus.publish("a", {"n": 1})
            except BusUnavailable:
                return False
            return True

        until(heard)
        assert take(inbox, 1) == [("a", {"n": 1})]


def _pid(running: Redis) -> int:
    with redis.Redis.from_url(running.url) as client:
        return int(client.info("server")["process_id"])


def test_a_follower_misses_nothing_while_redis_is_away(own_redis: Redis, tmp_path: Path) -> None:
    seen = queue.Queue[int]()
    with (
        closing(Metadata.open(tmp_path / "meta.db")) as metadata,
        RedisBus(own_redis.url, longest_delay_seconds=0.1) as bus,
    ):
        with metadata.write() as tx:
            tx.streams.create("rides", {"name": "rides"}, at_ms=1)
            ptk = tx.ptks.create("p", "rides", "counts", {}, 0.5, 1, at_ms=1).id

        def publish(version: int) -> None:
            with metadata.write_results("known") as tx:
                cycle = tx.cycles.start("rides", version, at_ms=1)
                tx.states.add(ptk, version, "0" * 64, {"version": version}, version, 1, cycle=cycle)

        # It looks when it is told to, and never by itself.
        with closing(Followers(metadata, bus, poll_seconds=3600)) as followers:
            follower = followers.follow("p", 0)

            def tell() -> None:
                while fresh := follower.next():
                    for row in fresh:
                        seen.put(row.version)

            threading.Thread(target=tell, daemon=True).start()
            until(lambda: bus.connected)
            publish(1)
            bus.publish("sage.ptk.state.p", {"subject": "p"})
            assert seen.get(timeout=WAIT) == 1
            own_redis.server.kill()
            until(lambda: not bus.connected)
            publish(2)
            publish(3)
            own_redis.server.start()
            assert [seen.get(timeout=WAIT) for _ in range(2)] == [2, 3]
            assert seen.empty()


def test_closing_ends_every_thread(redis_server: Redis) -> None:
    bus = RedisBus(redis_server.url)
    listen(bus, "*")
    bus.close()
    bus.close()
    for thread in threading.enumerate():
        if thread.name.startswith("sage-bus"):
            thread.join(WAIT)
            assert not thread.is_alive()
    for act in (
        lambda: bus.publish("a", {}),
        lambda: listen(bus, "a"),
        lambda: bus.on_connect(print),
    ):
        with pytest.raises(BusUnavailable, match="BUS_CLOSED"):
            act()


@pytest.mark.parametrize("url", ["http://user:secret@host", "secret", "redis://:secret@host:port"])
def test_urls_that_are_refused_without_telling_passwords(url: str) -> None:
    with pytest.raises(InvalidInput, match="BUS_URL_INVALID") as refusal:
        RedisBus(url)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"prefix": "a*"}, "TOPIC_INVALID"),
        ({"prefix": ""}, "TOPIC_INVALID"),
        ({"capacity": 0}, "VALUE_INVALID"),
        ({"timeout_seconds": 0}, "VALUE_INVALID"),
        ({"first_delay_seconds": 9, "longest_delay_seconds": 1}, "VALUE_INVALID"),
    ],
)
def test_settings_that_are_refused(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        RedisBus("redis://127.0.0.1", **wrong)


def test_the_client_is_imported_only_when_a_bus_is_made() -> None:
    code = "import sys; import ptkstore.bus; assert 'redis' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, check=True)
