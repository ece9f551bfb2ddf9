"""Nothing that a producer is told depends on who was seen before: with a producer's token nobody
learns who is a member.

The attacker knows how everything works, makes users of its own to see what members and strangers
look like from outside, and then guesses about users of somebody else. It hears everything but the
clock: statuses, reasons, texts, acknowledgements, trailing metadata, GetStream and the metrics.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from prometheus_client import generate_latest

from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.server import Server
from ptkstore.v1 import stream_pb2, stream_pb2_grpc
from ptkstore.wire.faults import error_of
from tests.rpc.calling import Clients
from tests.rpc.requests import ipc
from tests.rpc.small import channel_to, serving

HOUR_MS = 3_600_000
FIRST_MS = 1_767_225_600_000
# A batch may span so few blocks here, so that a thousand guesses at the limit take seconds.
WIDE = 3
GUESSES = 1000


def spec() -> StreamSpec:
    columns = (
        Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
        Column(name="who", type="int64", lower=0, upper=10**12),
    )
    policy = Policy(unit="user", epsilon=1, delta="1e-6")
    return StreamSpec(
        name="visits",
        columns=columns,
        time_column="at",
        policy=policy,
        user_column="who",
        window_seconds=3600,
    )


def table(rows: list[tuple[int, float]]) -> pa.Table:
    """Rows of (who, hours after the beginning)."""
    at = [FIRST_MS + int(hours * HOUR_MS) for _, hours in rows]
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("ms")),
            "who": pa.array([who for who, _ in rows], pa.int64()),
        }
    )


class Attacker:
    """A producer's token, and a memory of what members and strangers looked like."""

    def __init__(self, server: Server, channel: grpc.Channel, token: str, opens_hours: int) -> None:
        self._server = server
        self._stub = stream_pb2_grpc.StreamServiceStub(channel)
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._opens = opens_hours
        self._fresh = count(10**9)
        self._seq = count()
        self.looks: dict[tuple[Any, ...], set[bool]] = {}

    def learn(self, who: int, member: bool) -> None:
        self.looks.setdefault(self._probe(who), set()).add(member)

    def guess(self, who: int) -> bool:
        """True for a member; where both look alike there is nothing to go by."""
        return self.looks.get(self._probe(who), {True, False}) != {False}

    def _probe(self, who: int) -> tuple[Any, ...]:
        """At the limit of width, alone in an open block, again, late with a companion, and last
        beyond the limit.
        """
        before = self._metrics()
        spans = [self._opens + k + 0.5 for k in range(WIDE)]
        crowd = [(next(self._fresh), at) for at in spans]
        alone = [(who, spans[1])]
        first = next(self._seq) * 10
        heard = self._sent(
            (first, [*crowd, (who, spans[0])]),
            (first + 1, alone),
            (first + 1, alone),
            (first + 2, [(who, 0.0), (next(self._fresh), spans[2])]),
            (first + 3, [*crowd, (who, spans[-1] + 1)]),
        )
        stream = self._stub.GetStream(
            stream_pb2.GetStreamRequest(name="visits"), metadata=self._metadata
        )
        after = self._metrics()
        changes = tuple(
            sorted((name, value - before.get(name, 0.0)) for name, value in after.items())
        )
        return heard, str(stream), changes

    def _sent(self, *batches: tuple[int, list[tuple[int, float]]]) -> tuple[Any, ...]:
        """All that a call with these batches is answered, but for their numbers."""
        opening = stream_pb2.AppendOpen(stream="visits", producer="attacker")
        messages = [stream_pb2.AppendRequest(open=opening)]
        for seq, rows in batches:
            batch = stream_pb2.AppendBatch(seq=seq, arrow_ipc=ipc(table(rows)))
            messages.append(stream_pb2.AppendRequest(batch=batch))
        call = self._stub.Append(iter(messages), metadata=self._metadata)
        heard: list[Any] = []
        try:
            for ack in call:
                ack.seq -= batches[0][0]
                heard.append(str(ack))
        except grpc.RpcError as failure:
            error = error_of(failure)
            heard += [error.reason, error.message, str(error.details)]
        return (call.code(), call.details(), str(call.trailing_metadata()), *heard)

    def _metrics(self) -> dict[str, float]:
        """All metrics but those of time."""
        lines = generate_latest(self._server.metrics.registry).decode().splitlines()
        pairs = (
            line.rsplit(" ", 1)
            for line in lines
            if not line.startswith("#") and "seconds" not in line
        )
        return {name: float(value) for name, value in pairs}


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clients]:
    monkeypatch.setattr("ptkstore.streams.ingest.reach.MAX_BLOCKS", WIDE)
    with (
        serving(tmp_path, auth={"required": True}) as (server, store),
        channel_to(server) as channel,
    ):
        store.create_stream(spec())
        yield Clients(server, store, channel)


def join(store: Store, whos: list[int], hour: float) -> None:
    for begin in range(0, len(whos), 1000):
        store.push(
            "visits", table([(who, hour) for who in whos[begin : begin + 1000]]), producer="depot"
        )


def test_a_thousand_guesses_about_members_are_worth_a_coin(clients: Clients) -> None:
    members = list(range(GUESSES // 2))
    strangers = list(range(10**6, 10**6 + GUESSES // 2))
    own_members, own_strangers = list(range(5000, 5020)), list(range(6000, 6020))
    # Half of the members are of a cohort that is sealed and destroyed, the others of one that is
    # open.
    join(clients.store, members[::2] + own_members[::2], 0.5)
    clients.store.run("visits", until_ms=FIRST_MS + 2 * HOUR_MS)
    join(clients.store, members[1::2] + own_members[1::2], 2 + WIDE + 0.5)
    attacker = Attacker(clients.server, clients.channel, clients.token("attacker", "producer"), 2)
    for who in own_members:
        attacker.learn(who, True)
    for who in own_strangers:
        attacker.learn(who, False)
    secrets = [(who, True) for who in members] + [(who, False) for who in strangers]
    random.Random(7).shuffle(secrets)
    right = sum(attacker.guess(who) is member for who, member in secrets)
    assert all("BATCH_TOO_WIDE" in heard and len(heard) == 10 for heard, *_ in attacker.looks), (
        "four taken, one refused"
    )
    assert abs(right / GUESSES - 0.5) <= 0.03, f"{right} of {GUESSES} guesses were right"
