"""The store behind a server: the same verbs, views and errors as a store in a directory.

``ptkstore.open("host:port")`` makes one; `ptkstore.api.store.Store` says what the verbs do, and
there is a class for each service that has them. Frames are brought to the stream's types and
features are computed here; the server sees batches on the way in and gives out states, whose
digests are checked. Calls have deadlines, and are tried again while the server is unavailable.
Arrow and NumPy are imported with the first frame or state.
"""

from __future__ import annotations

from pathlib import Path

from ptkstore.api.views.overview import store_html
from ptkstore.client.budgets import RemoteBudgets
from ptkstore.client.channel import Connection
from ptkstore.client.history import History
from ptkstore.client.plans import RemotePlans
from ptkstore.client.ptks import RemotePtks
from ptkstore.client.streams import RemoteStreams
from ptkstore.client.timeouts import TIMEOUT_SECONDS
from ptkstore.closing import Closing

__all__ = ["RemoteStore"]


class RemoteStore(RemoteStreams, RemotePtks, RemotePlans, RemoteBudgets, History, Closing):
    """A store behind a server. Thread-safe."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca_file: str | Path | None = None,
        cert_file: str | Path | None = None,
        key_file: str | Path | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """Connect when first used.

        TLS with ``ca_file``; ``cert_file`` and ``key_file`` are the caller's own.
        """
        self._connection = Connection(
            address,
            token=token,
            ca_file=ca_file,
            cert_file=cert_file,
            key_file=key_file,
            timeout_seconds=timeout_seconds,
        )

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return store_html([spec.as_json() for spec in self.streams()], self.ptks())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
