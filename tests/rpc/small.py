"""A server in this process on a free port of loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from ptkstore import Store
from ptkstore.backoff import Backoff
from ptkstore.rpc.feeds.delivering import Pace
from ptkstore.server import Server
from ptkstore.settings import Settings

__all__ = ["PACE", "channel_to", "serving", "settings_of"]

# Deliveries in milliseconds rather than minutes.
PACE = Pace(
    backoff=Backoff(first_seconds=0.02, longest_seconds=0.1),
    deadline_seconds=2.0,
    poll_seconds=0.2,
    attempts=4,
)


def settings_of(**sections: Any) -> Settings:
    server = {"address": "127.0.0.1:0", "drain_seconds": 2, "threads": 32, "watchers": 16}
    return Settings(**{**sections, "server": server | sections.get("server", {})})


@contextmanager
def serving(path: Path, *, pace: Pace = PACE, **sections: Any) -> Iterator[tuple[Server, Store]]:
    with (
        Store(path, workers=0) as store,
        Server(store, settings_of(**sections), pace=pace) as server,
    ):
        yield server, store


@contextmanager
def channel_to(server: Server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as channel:
        yield channel
