"""The console on a port: bound before anybody is told, stopped by SIGINT or SIGTERM, or from
another thread.

Reason: SERVER_ADDRESS_TAKEN.
"""

from __future__ import annotations

import socket

import uvicorn
from starlette.types import ASGIApp

from ptklib.errors import InvalidInput
from ptkstore.console.page.streaming import end_all

__all__ = ["Serving", "bound"]

_DRAIN_SECONDS = 3


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any free one."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((bare, port))
        made.listen(128)
    except OSError:
        made.close()
        raise InvalidInput(
            "SERVER_ADDRESS_TAKEN",
            f"{host}:{port} cannot be listened on: taken, or not an address of this machine",
        ) from None
    return made


class _Server(uvicorn.Server):
    """Ends what would never end by itself, instead of waiting for it."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, and stop."""
        end_all()
        await super().shutdown(sockets)


class Serving:
    """One console behind one socket."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        """Does nothing before `run`."""
        self._socket = listening
        self._server = _Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                # Who asks, and from where, is decided by the console itself.
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=_DRAIN_SECONDS,
            )
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._socket.getsockname()[1])

    def run(self) -> None:
        """Until it is told to stop."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """From another thread."""
        self._server.should_exit = True
