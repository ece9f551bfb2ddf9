"""Several servers on one store: all of them serve, one leads, another takes over, and never two at
once.
"""

from __future__ import annotations

import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import Refused
from ptkstore import Store
from ptkstore.engine.leader import LeadLost
from ptkstore.ledger import Ledger
from ptkstore.metadata.database.postgresql import HANG_MS
from ptkstore.streams import StreamUnavailable
from ptkstore.wire.faults import ServerUnavailable
from tests.engine.small import DAY_MS, FIRST_MS, ROWS, config, day, spec
from tests.rpc.stopping import waits_while_stopped
from tests.rpc.two_servers import ServerProcess, served

WAIT = 60.0
STOPS = 12


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    with served(tmp_path, postgres_url) as first, served(tmp_path, postgres_url) as second:
        yield first, second


def eventually(act: Callable[[], Any]) -> Any:
    """What it gives once it gives anything true; errors of a server that is away are waited out."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            found = act()
        except (ServerUnavailable, LeadLost):
            found = None
        if found:
            return found
        assert time.monotonic() < deadline
        time.sleep(0.05)


def register(store: Store, name: str = "hour-speed") -> str:
    return store.register(
        name, stream="rides", kind="statistics", config=config(), target=0.2
    ).status


def acknowledged(store: Store, seq: int) -> bool:
    return store.push("rides", day(0, 100), producer="p", seq=seq) is not None


def test_the_first_leads_and_both_say_so(pair: tuple[ServerProcess, ServerProcess]) -> None:
    first, second = pair
    assert (first.told["leads"], first.told["leader"]) == (True, first.address)
    assert (second.told["leads"], second.told["leader"]) == (False, first.address)


def test_everything_goes_through_either(pair: tuple[ServerProcess, ServerProcess]) -> None:
    with pair[0].store() as leader, pair[1].store() as follower:
        leader.create_stream(spec())
        assert follower.stream("rides") == spec()
        follower.create_stream(spec(name="other"))
        assert (
            [one.name for one in leader.streams()]
            == ["other", "rides"]
            == [one.name for one in follower.streams()]
        )
        with pytest.raises(Refused, match="STREAM_EXISTS"):
            leader.create_stream(spec(name="other"))
        assert register(follower) == "ACTIVE"
        assert leader.ptk("hour-speed") == follower.ptk("hour-speed")
        leader.push("rides", day(0, ROWS // 2), producer="a", seq=0)
        follower.push("rides", day(0, ROWS // 2), producer="b", seq=0)
        follower.push(
            "rides", day(0, ROWS // 2), producer="a", seq=0
        )  # again, through the other one: nothing
        (cycle,) = follower.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert cycle.trained[0].outcome == "PUBLISHED"
        assert abs(cycle.dp_records - ROWS) < 200
        assert (
            leader.get_state("hour-speed").to_bytes() == follower.get_state("hour-speed").to_bytes()
        )
        assert follower.budget("rides") == leader.budget("rides")
        # Errors come back as they are.
        with pytest.raises(Refused, match="STREAM_UNKNOWN"):
            follower.push("nowhere", day(0, 10))


def test_another_takes_over_where_the_leader_was_killed(
    tmp_path: Path, postgres_url: str, pair: tuple[ServerProcess, ServerProcess]
) -> None:
    leader, follower = pair
    with follower.store() as store:
        store.create_stream(spec())
        register(store)
        pushed = threading.Event()
        failures: list[BaseException] = []

        def produce() -> None:
            try:
                for seq in range(40):
                    eventually(partial(acknowledged, store, seq))
                    if seq == 10:
                        pushed.set()
            except BaseException as error:
                failures.append(error)
                pushed.set()

        producer = threading.Thread(target=produce)
        producer.start()
        assert pushed.wait(WAIT)
        leader.kill()
        producer.join(WAIT)
        assert not producer.is_alive()
        assert not failures
        (cycle,) = eventually(lambda: store.run("rides", until_ms=FIRST_MS + DAY_MS))
        assert cycle.trained[0].outcome == "PUBLISHED"
        # Every acknowledged batch of 100 is there, and none twice: the counts are DP, and their
        # noise is far below a batch.
        assert abs(cycle.dp_records - 4000) < 90
        assert store.get_state("hour-speed").manifest.version == 1
    with Ledger.open(postgres_url, key_path=tmp_path / "ledger.key") as ledger:
        ledger.verify()


def test_a_window_that_was_interrupted_is_finished_by_the_next_leader(
    tmp_path: Path, postgres_url: str, pair: tuple[ServerProcess, ServerProcess]
) -> None:
    leader, follower = pair
    with follower.store() as store:
        store.create_stream(spec())
        names = [f"speed-{number}" for number in range(6)]
        for name in names:
            register(store, name)
        store.push("rides", day(0), producer="p", seq=0)
        # Killed as soon as it has begun with the window.
        caller = threading.Thread(
            target=lambda: _ignored(lambda: store.run("rides", until_ms=FIRST_MS + DAY_MS))
        )
        caller.start()
        with follower.store() as other:
            eventually(lambda: [one for one in other.cycles("rides") if one.steps])
        leader.kill()
        eventually(lambda: [one for one in store.cycles("rides") if one.status != "RUNNING"])
        caller.join(WAIT)
        (cycle,) = store.cycles("rides")
        outcomes = {line.ptk: line.outcome for line in cycle.trained}
        assert set(outcomes) == set(names)
        published = [name for name, outcome in outcomes.items() if outcome == "PUBLISHED"]
        assert all(store.get_state(name).manifest.version == 1 for name in published)
    with Ledger.open(postgres_url, key_path=tmp_path / "ledger.key") as ledger:
        ledger.verify()
        keys = [
            entry["key"]
            for entry in ledger.history()
            if entry["kind"] == "reserve" and "key" in entry
        ]
    assert len(keys) == len(set(keys)), "a charge was made twice"


def _ignored(act: Callable[[], Any]) -> None:
    try:
        act()
    except (ServerUnavailable, LeadLost):
        return


def test_a_leader_that_stops_hands_over_at_once(pair: tuple[ServerProcess, ServerProcess]) -> None:
    leader, follower = pair
    with follower.store() as store:
        store.create_stream(spec())
        store.push("rides", day(0, 100), producer="p", seq=0)
        leader.signal(signal.SIGTERM)
        assert leader.process.wait(WAIT) == 0
        assert store.push("rides", day(0, 100), producer="p", seq=1) is not None


def test_a_leader_that_stands_still_for_a_while_is_not_replaced_by_a_second(
    pair: tuple[ServerProcess, ServerProcess],
) -> None:
    leader, follower = pair
    with follower.store() as store:
        store.create_stream(spec())
        store.push("rides", day(0, 100), producer="p", seq=0)
    leader.signal(signal.SIGSTOP)
    try:
        with Store(follower.address, timeout_seconds=1.0) as store:
            # Longer than the lease: nobody leads, for the streams are still in the hands of one who
            # may go on.
            time.sleep(3.0)
            with pytest.raises(ServerUnavailable):
                store._connection.call(  # type: ignore[attr-defined]
                    _seal(store), _seal_request(), timeout_seconds=1.0
                )
            assert store.stream("rides") == spec()
    finally:
        leader.signal(signal.SIGCONT)
    with follower.store() as store:
        assert eventually(lambda: store.push("rides", day(0, 100), producer="p", seq=1) is not None)


def test_a_leader_that_stands_still_is_ended_and_replaced(
    tmp_path: Path, postgres_url: str
) -> None:
    guarded = partial(served, tmp_path, postgres_url, SAGE__SERVER__HANG_SECONDS="3")
    with guarded() as leader, guarded() as follower, follower.store() as store:
        store.create_stream(spec())
        store.push("rides", day(0, 100), producer="p", seq=0)
        leader.signal(signal.SIGSTOP)
        assert leader.process.wait(WAIT) == -signal.SIGKILL
        assert eventually(lambda: store.push("rides", day(0, 100), producer="p", seq=1) is not None)
        store.push(
            "rides", day(0, 100), producer="p", seq=0
        )  # what was acknowledged is still known
        assert "it stood still as the leader" in (tmp_path / "log").read_text()
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - 200) < 100


def test_a_follower_that_stands_still_holds_nobody_up(
    pair: tuple[ServerProcess, ServerProcess],
) -> None:
    waits = waits_while_stopped(*pair, stops=STOPS, seed=3)
    # Far from the minutes that a lock of its session would be held.
    assert max(waits) < HANG_MS / 1000 + 7, waits


def _seal(store: Any) -> Any:
    from ptkstore.v1 import stream_pb2_grpc

    return stream_pb2_grpc.StreamServiceStub(store._connection.channel).SealStream


def _seal_request() -> Any:
    from ptkstore.v1 import stream_pb2

    return stream_pb2.SealStreamRequest(name="rides")


def test_a_leader_that_cannot_write_hands_the_lead_over(
    tmp_path: Path, pair: tuple[ServerProcess, ServerProcess]
) -> None:
    """Its descriptors are gone; the other one has plenty.

    When they are back it follows, and leads again when it must.
    """
    first, second = pair

    def pushed(store: Store, seq: int) -> bool:
        try:
            return acknowledged(store, seq)
        except StreamUnavailable:
            return False

    with first.store() as leader, second.store() as follower:
        leader.create_stream(spec())
        assert acknowledged(leader, 0)
        before = resource.prlimit(first.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(first.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            assert eventually(lambda: pushed(follower, 1))
        finally:
            resource.prlimit(first.process.pid, resource.RLIMIT_NOFILE, before)
        lines = (tmp_path / "log").read_text().splitlines()
        assert any('"hands over"' in line for line in lines)
        assert any('"leads"' in line and f'"{second.address}"' in line for line in lines)
        second.signal(signal.SIGTERM)
        assert eventually(lambda: pushed(leader, 2))
