"""The generated stubs work on asyncio channels as they are: reads and watching, which is what an
event loop is for.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc

from ptklib.state import State
from ptkstore.lake import digest_of
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc
from tests.engine.small import DAY_MS, FIRST_MS
from tests.rpc.small import serving
from tests.rpc.store_suite import filled


def test_states_are_read_and_watched_with_asyncio(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, store):
        filled(store, 2)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)

        async def follow() -> tuple[State, list[int]]:
            async with grpc.aio.insecure_channel(server.address) as channel:
                ptks = ptk_pb2_grpc.PtkServiceStub(channel)
                found = await ptks.GetState(ptk_pb2.GetStateRequest(name="hour-speed"), timeout=10)
                assert digest_of(found.arrays, found.manifest) == found.state.digest
                seen = []
                async for one in ptks.WatchPtk(
                    ptk_pb2.WatchPtkRequest(name="hour-speed"), timeout=60
                ):
                    seen.append(one.state.version)
                    if len(seen) == 1:
                        loop = asyncio.get_running_loop()
                        await loop.run_in_executor(
                            None, lambda: store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
                        )
                    else:
                        break
            return State.from_bytes(found.arrays, found.manifest), seen

        state, seen = asyncio.run(follow())
        assert seen == [1, 2]
        assert state.to_bytes() == store.get_state("hour-speed@v1").to_bytes()
