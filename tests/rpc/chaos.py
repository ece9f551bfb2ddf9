"""The service under load while its server, Redis, S3 server and PostgreSQL are killed (SIGKILL) in
turn.

`chaos` runs everything: real servers, ``sage serve`` as a process, two producers, subscribers of
both kinds, windows that are closed, states that are read; one victim after the other is killed and
started again a moment later on the same port and data. Afterwards everything is stopped, and
`tests.rpc.chaos_verdict` compares what the store holds with what was acknowledged.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc

from devtools.servers.running import LocalServer
from ptkstore import Store
from ptkstore.v1 import (
    operation_pb2,
    operation_pb2_grpc,
    ptk_pb2,
    ptk_pb2_grpc,
    stream_pb2,
    stream_pb2_grpc,
)
from ptkstore.wire.faults import error_of
from tests.rpc.chaos_backends import Backends, sage_server, troubles_in_log
from tests.rpc.chaos_child import PATIENCE_SECONDS, Child
from tests.rpc.chaos_load import ARCHIVE, DAY_MS, FIRST_MS, RIDES, is_unavailable
from tests.rpc.chaos_told import LATE_PTK, PTKS, Told

__all__ = ["ENDPOINTS", "FOLLOWERS", "VICTIMS", "chaos"]

Say = Callable[[str], None]

VICTIMS = ("server", "redis", "minio", "postgres")
FOLLOWERS, ENDPOINTS = 5, 2
_CALL_SECONDS = 40.0
# How many windows may wait to be worked on while the next is filled.
_WAITING_WINDOWS = 3


def chaos(
    folder: Path,
    backends: Backends,
    *,
    seconds: float,
    seed: int,
    say: Say,
    victims: Sequence[str] = VICTIMS,
    window_seconds: float = 0.8,
) -> Told:
    """Run it all for so many seconds, and at least one round of kills; what everybody saw.

    The server is stopped then.
    """
    told = Told()
    sage = sage_server(folder, backends)
    with ExitStack() as stack:
        stack.callback(sage.stop)
        sage.start()
        address = f"127.0.0.1:{sage.port}"
        store = stack.enter_context(Store(address))
        for spec in (RIDES, ARCHIVE):
            store.create_stream(spec)
        for name, config in PTKS.items():
            store.register(name, stream="rides", kind="statistics", config=config, target=0.1)
        listeners = Child(
            "subscribers", "subscribers", address, ",".join(PTKS), str(FOLLOWERS), str(ENDPOINTS)
        )
        stack.callback(listeners.close)
        run = _Run(told, address, sage, backends, chosen=victims, rng=random.Random(seed), say=say)
        stack.callback(run.close)
        run.subscribe(listeners)
        producers = [
            Child(f"producer {number}", "producer", address, str(number), style)
            for number, style in enumerate(("streams", "one by one"))
        ]
        for one in producers:
            stack.callback(one.close)
        run.go(seconds, window_seconds, producers)
        run.settle(store, listeners)
    told.wrong += troubles_in_log(sage)
    return told


class _Run:
    """The threads that use the service while the main one kills."""

    def __init__(
        self,
        told: Told,
        address: str,
        sage: LocalServer,
        backends: Backends,
        *,
        chosen: Sequence[str],
        rng: random.Random,
        say: Say,
    ) -> None:
        self._told = told
        self._sage = sage
        self._victims = {
            "server": sage,
            "redis": backends.redis.server,
            "minio": backends.minio.server,
            "postgres": backends.postgres.server,
        }
        self._random = rng
        self._late_seconds = rng.uniform(1, 6)
        self._chosen = chosen
        self._say = say
        self._channel = grpc.insecure_channel(
            address, options=[("grpc.enable_retries", 0), ("grpc.max_reconnect_backoff_ms", 500)]
        )
        self._ptks = ptk_pb2_grpc.PtkServiceStub(self._channel)
        self._streams = stream_pb2_grpc.StreamServiceStub(self._channel)
        self._operations = operation_pb2_grpc.OperationServiceStub(self._channel)
        self._over = threading.Event()
        self._endpoints: dict[str, str] = {}

    def close(self) -> None:
        self._over.set()
        self._channel.close()

    def subscribe(self, listeners: Child) -> None:
        """Wait until everybody listens, and let the endpoints be called."""
        for number in range(ENDPOINTS):
            who = f"endpoint-{number}"
            one = listeners.wait_for(lambda line, who=who: line.get("who") == who)  # type: ignore[misc]
            self._told.follows[who] = one["ptk"]
            self._endpoints[one["ptk"]] = f"127.0.0.1:{one['port']}"
        for ptk in self._endpoints:
            self._change(ptk)
        for number in range(FOLLOWERS):
            who = f"follower-{number}"
            self._told.follows[who] = listeners.wait_for(
                lambda line, who=who: line.get("who") == who  # type: ignore[misc]
            )["ptk"]

    def go(self, seconds: float, window_seconds: float, producers: list[Child]) -> None:
        """Load and kills, from the moment at which records flow."""
        for one in producers:
            one.wait_for(lambda line: line.get("day") == 0)
        threads = [
            threading.Thread(
                target=self._guarded, args=(self._close_windows, window_seconds, producers)
            ),
            threading.Thread(target=self._guarded, args=(self._read_states,)),
            threading.Thread(target=self._guarded, args=(self._register,)),
        ]
        for thread in threads:
            thread.start()
        try:
            self._kill(seconds)
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def settle(self, store: Store, listeners: Child) -> None:
        """Wait until every subscriber is on the newest version."""
        told = self._told
        told.newest = {name: len(store.states(name)) for name in PTKS}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            told.heard = {who: [] for who in told.follows}
            for line in listeners.lines():
                if line.get("version"):
                    told.heard[line["who"]].append(line["version"])
            late = [
                who
                for who, ptk in told.follows.items()
                if told.heard[who][-1:] != [told.newest[ptk]]
            ]
            if not late or time.monotonic() > deadline:
                return
            time.sleep(0.1)

    def _kill(self, seconds: float) -> None:
        """One after the other, in an order of its own each round."""
        end = time.monotonic() + seconds
        while time.monotonic() < end or not self._told.kills:
            for victim in self._random.sample(self._chosen, len(self._chosen)):
                time.sleep(self._random.uniform(0.2, 1.5))
                self._kill_one(victim, self._random.uniform(0.2, 3.0))
                if self._told.wrong:
                    self._say(self._told.wrong[-1])
            self._say(
                f"{sum(self._told.kills.values())} kills, {self._told.windows} windows, refused {self._told.refused}"
            )

    def _kill_one(self, victim: str, down_seconds: float) -> None:
        server = self._victims[victim]
        if not self._sage.runs:
            self._told.wrong.append("the server died by itself")
            self._sage.kill()
            self._sage.start()
        begin = time.monotonic()
        server.kill()
        self._told.kills[victim] += 1
        time.sleep(down_seconds)
        server.start()
        up = time.monotonic()
        self._told.down.append((victim, begin, up))
        while True:
            try:
                for ptk in self._endpoints:
                    self._change(ptk)
                    self._read(ptk)
                break
            except grpc.RpcError as failure:
                self._check(failure, f"after {victim} was back")
            if time.monotonic() > up + PATIENCE_SECONDS:
                self._told.wrong.append(
                    f"no service {PATIENCE_SECONDS:g} s after {victim} was back"
                )
                break
            time.sleep(0.05)
        now = time.monotonic()
        self._told.back_seconds.setdefault(victim, []).append(now - up)
        self._told.outage_seconds.setdefault(victim, []).append(now - begin)

    def _change(self, ptk: str) -> None:
        """A change that changes nothing the second time."""
        request = ptk_pb2.SubscribeToPtkRequest(ptk=ptk, rpc_endpoint=self._endpoints[ptk])
        self._ptks.SubscribeToPtk(request, timeout=_CALL_SECONDS)

    def _read(self, ptk: str) -> None:
        try:
            self._ptks.GetState(ptk_pb2.GetStateRequest(name=ptk), timeout=_CALL_SECONDS)
        except grpc.RpcError as failure:
            if error_of(failure).reason != "STATE_UNKNOWN":
                raise

    def _read_states(self) -> None:
        while not self._over.wait(0.1):
            for ptk in PTKS:
                begin = time.monotonic()
                reason = ""
                try:
                    self._read(ptk)
                except grpc.RpcError as failure:
                    self._check(failure, "reading a state")
                    reason = error_of(failure).reason
                self._told.calls.append((begin, time.monotonic(), reason))

    def _register(self) -> None:
        """One more PTK, asked for under one id until it is there."""
        self._over.wait(self._late_seconds)
        config = json.dumps(PTKS["hour-rides"])
        request = ptk_pb2.RegisterPtkRequest(
            request_id="late",
            name=LATE_PTK,
            stream="rides",
            kind="statistics",
            config_json=config,
            target=0.1,
        )
        answer = self._until_answered(
            lambda: self._ptks.RegisterPtk(request, timeout=_CALL_SECONDS), "registering"
        )
        again = self._until_answered(
            lambda: self._ptks.RegisterPtk(request, timeout=_CALL_SECONDS), "registering"
        )
        if answer != again:
            self._told.wrong.append("the same registration was answered in two ways")

    def _close_windows(self, window_seconds: float, producers: list[Child]) -> None:
        day, running = 0, []
        while not self._over.is_set():
            self._over.wait(window_seconds)
            for one in producers:
                one.tell(str(day + 1))
            for one in producers:
                one.wait_for(lambda line, day=day: line.get("day") == day + 1)  # type: ignore[misc]
            running.append(self._close_window(day))
            if len(running) > _WAITING_WINDOWS:
                self._await(running.pop(0))
            day += 1
        for one in producers:
            one.tell("stop")
        for one in producers:
            last = one.wait_for(lambda line: "rows" in line)
            self._told.rows_by_day.update(
                {int(number): rows for number, rows in last["rows"].items()}
            )
            self._told.archived.append(last["archived"])
            self._told.batches += last["batches"]
            self._told.refused.update(
                {f"push {reason}": count for reason, count in last["refused"].items()}
            )
        for operation in (*running, self._close_window(day)):
            self._await(operation)

    def _close_window(self, day: int) -> str:
        """Ask for it, and ask again under the same id; the operation."""
        until_ms = FIRST_MS + (day + 1) * DAY_MS
        request = stream_pb2.CloseWindowRequest(request_id=f"close-{day}", stream="rides")
        request.until.FromMilliseconds(until_ms)

        def close() -> Any:
            return self._streams.CloseWindow(request, timeout=_CALL_SECONDS).operation

        number: str = self._until_answered(close, "closing a window").id
        self._told.repeated += 1
        if self._until_answered(close, "closing a window again").id != number:
            self._told.wrong.append("the same request was answered with another operation")
        return number

    def _await(self, number: str) -> None:
        asked = operation_pb2.GetOperationRequest(id=number)
        while True:
            operation = self._until_answered(
                lambda: self._operations.GetOperation(asked, timeout=_CALL_SECONDS).operation,
                "watching a window",
            )
            if operation.status != operation_pb2.OPERATION_STATUS_RUNNING:
                break
            time.sleep(0.1)
        if operation.status != operation_pb2.OPERATION_STATUS_DONE:
            self._told.wrong.append(
                f"operation {number} failed: {operation.reason} {operation.message:.200}"
            )
        self._told.windows += 1

    def _until_answered(self, call: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return call()
            except grpc.RpcError as failure:
                self._check(failure, what)
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: no answer for {PATIENCE_SECONDS:g} s")
            time.sleep(0.1)

    def _check(self, failure: grpc.RpcError, what: str) -> None:
        """Whatever is down, a call is answered or refused as UNAVAILABLE with a reason."""
        error = error_of(failure)
        self._told.refused[error.reason] += 1
        if not is_unavailable(error) or failure.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            self._told.wrong.append(
                f"{what}: {failure.code().name} {error.reason} {error.message:.200}"
            )

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception as error:
            self._told.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}"[:400])
            self._say(self._told.wrong[-1])
