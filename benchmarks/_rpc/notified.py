"""From publishing a state to the subscriber's callback, beside a bare Redis publish with as many
subscribers.

Ours: a server with a Redis bus in a process of its own publishes as the window cycle does (the
state and its event in one transaction, then the outbox to Redis); subscribers watch over gRPC, each
with a stream of its own, in another process. The clock starts before the transaction. Bare: one
client publishes 200 bytes on the same Redis, and as many connections listen in another process,
read by one thread. p99 over all subscribers and rounds; the machine's monotonic clock is the same
for all processes.

Subscribers come in two sorts. ``sdk``: `Store.subscribe`, a thread for each. ``asyncio``: the
generated stub on asyncio channels (docs/reference/rpc.md), all read by one thread as the bare
connections are; who has a thousand of them in one process takes these.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import selectors
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import redis
import structlog

from benchmarks.ingest import batch, spec
from devtools.servers.redis import start_redis
from ptkstore import LocalStore, Store
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc

__all__ = ["compare"]

BEGINS_MS = 1_767_225_600_000
DAY_MS = 86_400_000
PER_STORE = 100
WARM = 3
# A caller may have half of the places, and stores of one process may share a connection, which is
# the caller where nobody has a name.
WATCHERS = 2_400
_HEARD_SECONDS = 60
_CHANNEL = "bare"


def compare(say: Callable[[str], None], sort: str, subscribers: int, rounds: int) -> dict[str, Any]:
    """p50 and p99 of ours and of a bare publish, in milliseconds. ``sort``: sdk or asyncio."""
    listen = {"sdk": _listen, "asyncio": _listen_asyncio}[sort]
    with ExitStack() as stack:
        running = start_redis(say)
        stack.callback(running.server.close)
        server = stack.enter_context(_child(_serve, running.url))
        listeners = stack.enter_context(_child(listen, server.recv(), subscribers))
        bare_listeners = stack.enter_context(_child(_listen_bare, running.url, subscribers))
        client = stack.enter_context(redis.Redis.from_url(running.url))
        listeners.recv()
        bare_listeners.recv()
        ours: list[float] = []
        bare: list[float] = []
        for number in range(WARM + rounds):
            server.send("publish")
            begin = server.recv()
            heard = [one - begin for one in _heard(listeners, subscribers)]
            begin = time.monotonic()
            client.publish(_CHANNEL, b"x" * 200)
            bare_heard = [one - begin for one in _heard(bare_listeners, subscribers)]
            assert len(heard) == len(bare_heard) == subscribers
            if number >= WARM:
                ours += heard
                bare += bare_heard
    found: dict[str, Any] = {"subscribers": subscribers, "sort": sort, "rounds": rounds}
    for name, times in (("", ours), ("bare_", bare)):
        found[name + "p50_ms"] = round(float(np.percentile(times, 50)) * 1e3, 2)
        found[name + "p99_ms"] = round(float(np.percentile(times, 99)) * 1e3, 2)
    return found


@contextmanager
def _child(work: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=work, args=(theirs, *arguments))
    child.start()
    try:
        yield ours
    finally:
        ours.close()
        child.join(20)
        if child.is_alive():
            child.kill()


def _serve(pipe: Connection, redis_url: str) -> None:
    """A server whose store publishes a state whenever it is told to, until the pipe ends."""
    from ptkstore.server import Server, open_store
    from ptkstore.settings import Settings

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    settings = Settings.checked(
        {
            "server": {"address": "127.0.0.1:0", "watchers": WATCHERS, "threads": WATCHERS + 256},
            "bus": {"url": redis_url},
            "workers": {"processes": 0},
        },
        "benchmark",
    )
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = stack.enter_context(open_store(Path(folder), settings))
        server = stack.enter_context(Server(store, settings))
        publish = _publisher(store)
        pipe.send(server.address)
        while _told(pipe):
            begin = time.monotonic()
            publish()
            pipe.send(begin)


def _publisher(store: LocalStore) -> Callable[[], None]:
    """What publishes the next version of a PTK, as the window cycle does; its first one comes from
    a real window.
    """
    store.create_stream(spec())
    config = {
        "keys": [{"kind": "integers", "column": "passengers", "first": 0, "last": 9}],
        "statistics": ["count"],
    }
    store.register("busy", stream="rides", kind="statistics", config=config, target=0.5)
    store.push("rides", pa.table(batch(1 << 15)))
    store.run("rides", until_ms=BEGINS_MS + DAY_MS)
    parts = store.parts
    with parts.metadata.read() as tx:
        ptk = tx.ptks.named("busy").id
        first = tx.states.get(ptk, 1)

    def publish() -> None:
        with parts.journal.writing() as tx:
            version = tx.states.next_version(ptk)
            cycle = tx.cycles.start("rides", version, at_ms=parts.now_ms())
            tx.states.add(
                ptk, version, first.digest, first.manifest, version, parts.now_ms(), cycle=cycle
            )
            body = {"ptk": "busy", "version": version, "digest": first.digest, "window": version}
            tx.events.add_all([("ptk.state", "busy", body)], at_ms=parts.now_ms())
        parts.notifier.drain()

    return publish


def _listen(pipe: Connection, address: str, subscribers: int) -> None:
    """So many subscriptions of the SDK; sends when each of them heard of a version, once all
    have.
    """
    heard: dict[int, list[float]] = {}
    lock = threading.Lock()

    def callback(state: Any) -> None:
        now = time.monotonic()
        with lock:
            times = heard.setdefault(state.version, [])
            times.append(now)
            if len(times) == subscribers:
                pipe.send(heard.pop(state.version))

    with ExitStack() as stack:
        for place in range(0, subscribers, PER_STORE):
            store = stack.enter_context(Store(address))
            for _ in range(min(PER_STORE, subscribers - place)):
                stack.callback(store.subscribe("busy", callback))
        time.sleep(2)  # until the server has all of them
        pipe.send("ready")
        _told(pipe)


def _listen_asyncio(pipe: Connection, address: str, subscribers: int) -> None:
    """As `_listen`, with so many streams in one event loop."""
    heard: dict[int, list[float]] = {}

    async def follow(channel: grpc.aio.Channel, after: int) -> None:
        async for one in ptk_pb2_grpc.PtkServiceStub(channel).WatchPtk(
            ptk_pb2.WatchPtkRequest(name="busy", after_version=after)
        ):
            now = time.monotonic()
            times = heard.setdefault(one.state.version, [])
            times.append(now)
            if len(times) == subscribers:
                pipe.send(heard.pop(one.state.version))

    async def follow_all() -> None:
        async with AsyncExitStack() as stack:
            # A channel of its own for each PER_STORE, as stores have.
            options = [("grpc.use_local_subchannel_pool", 1)]
            channels = [
                await stack.enter_async_context(grpc.aio.insecure_channel(address, options=options))
                for _ in range(0, subscribers, PER_STORE)
            ]
            tasks = [
                asyncio.create_task(follow(channels[k // PER_STORE], 1)) for k in range(subscribers)
            ]
            await asyncio.sleep(2)  # until the server has all of them
            pipe.send("ready")
            await asyncio.to_thread(_told, pipe)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(follow_all())


def _listen_bare(pipe: Connection, redis_url: str, subscribers: int) -> None:
    """So many connections; sends when each of them heard of a message, once all have."""
    chosen = selectors.DefaultSelector()
    with ExitStack() as stack:
        for _ in range(subscribers):
            client = stack.enter_context(redis.Redis.from_url(redis_url))
            pubsub: Any = client.pubsub(ignore_subscribe_messages=True)
            pubsub.subscribe(_CHANNEL)
            while pubsub.get_message(timeout=5) is not None:
                pass
            chosen.register(pubsub.connection._sock, selectors.EVENT_READ, pubsub)
        chosen.register(pipe, selectors.EVENT_READ, None)
        pipe.send("ready")
        heard: list[float] = []
        while True:
            for key, _ in chosen.select():
                if key.data is None:
                    return
                if key.data.get_message(timeout=0) is not None:
                    heard.append(time.monotonic())
            if len(heard) == subscribers:
                pipe.send(heard)
                heard = []


def _heard(listeners: Connection, subscribers: int) -> list[float]:
    """When each of them heard; an error where not all of them do."""
    if not listeners.poll(_HEARD_SECONDS):
        raise TimeoutError(f"not all of {subscribers} subscribers heard within {_HEARD_SECONDS} s")
    heard: list[float] = listeners.recv()
    return heard


def _told(pipe: Connection) -> bool:
    """True for a word, False when the other end is gone."""
    try:
        pipe.recv()
    except EOFError:
        return False
    return True
