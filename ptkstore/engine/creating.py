"""A new stream: its promise in the ledger, then its specification in the metadata, which makes it a stream.

Reason: STREAM_EXISTS, also where the ledger holds another promise under the name: what a crash left between the two is taken
up by whoever asks for the same again, and by nobody else.
"""

from __future__ import annotations

from collections.abc import Callable

from ptklib.errors import Refused
from ptkstore.engine.home import Home
from ptkstore.metadata.store import Transaction
from ptkstore.streams import StreamSpec

__all__ = ["create_stream"]


def create_stream(home: Home, spec: StreamSpec, within: Callable[[Transaction], object] = lambda _tx: None) -> None:
    """Make a stream; ``within`` is called in the transaction that makes it one."""
    with home.metadata.read() as tx:
        taken = any(row.name == spec.name for row in tx.streams.list())
    if taken:
        raise Refused("STREAM_EXISTS", f"stream {spec.name!r} exists already", stream=spec.name)
    # The ledger first: a stream without metadata is no stream yet, and asking again finds it there.
    promised = home.ledger.streams().get(spec.name)
    if promised is None:
        home.ledger.create_stream(spec.name, spec.policy)
    elif promised != spec.policy:
        raise Refused("STREAM_EXISTS", f"the ledger holds stream {spec.name!r} with another promise", stream=spec.name)
    for context, share in spec.quotas.items():
        home.ledger.set_quota(spec.name, context, share)
    kept = home.witness.keep()
    with home.metadata.write() as tx:
        home.witness.put(tx, kept)
        tx.streams.create(spec.name, spec.as_json(), at_ms=home.public_ms())
        tx.events.add("stream.created", spec.name, {"stream": spec.name}, at_ms=home.public_ms())
        within(tx)
    home.specs[spec.name] = spec
    # Now that all have a witness, each says so: from here on one that is gone is missed.
    home.witness.keep()
