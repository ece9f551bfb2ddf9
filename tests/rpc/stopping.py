"""Stop a follower again and again while it is busy, and see how long the leader's callers wait."""

from __future__ import annotations

import random
import signal
import threading
import time
from contextlib import suppress

from ptklib.errors import SageError
from ptkstore import Store
from tests.engine.small import day, spec
from tests.rpc.two_servers import ServerProcess

__all__ = ["waits_while_stopped"]

_CALLERS = 3


def waits_while_stopped(
    leader: ServerProcess, follower: ServerProcess, *, stops: int, seed: int
) -> list[float]:
    """The seconds that a push and a change at the leader took, for each time that the follower was
    stopped at some moment.
    """
    over = threading.Event()

    def load(caller: int) -> None:
        with Store(follower.address, timeout_seconds=30.0) as store:
            number = 0
            while not over.is_set():
                number += 1
                # Refusals of a server that was stopped are what is expected.
                with suppress(SageError):
                    store.register(
                        f"p-{caller}-{number}",
                        stream="rides",
                        kind="statistics",
                        config={},
                        target=1.0,
                    )
                with suppress(SageError):
                    store.create_stream(spec(name=f"busy-{caller}-{number % 8}"))

    moments = random.Random(seed)
    waits = []
    threads = [threading.Thread(target=load, args=(caller,)) for caller in range(_CALLERS)]
    with leader.store() as store:
        store.create_stream(spec())
        for one in threads:
            one.start()
        try:
            for number in range(stops):
                time.sleep(moments.uniform(0.05, 0.2))
                follower.signal(signal.SIGSTOP)
                begin = time.monotonic()
                store.push("rides", day(0, 10), producer="p", seq=number)
                with suppress(SageError):  # the second time it exists
                    store.create_stream(spec(name="here"))
                waits.append(time.monotonic() - begin)
                follower.signal(signal.SIGCONT)
        finally:
            over.set()
            follower.signal(signal.SIGCONT)
            for one in threads:
                one.join()
    return waits
