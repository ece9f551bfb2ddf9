"""A new stream: its promise in the ledger, then its specification in the metadata, which makes it a
stream.

Reason: STREAM_EXISTS, also where the ledger holds another promise under the name: what a crash left
between the two is taken up by whoever asks for the same again, and by nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptklib.errors import Refused
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.parts import Parts
from ptkstore.metadata.database.store import Transaction

__all__ = [
    "create_stream",
    "promise_streams",
    "require_new_streams",
    "streams_made",
    "write_stream",
]


def create_stream(
    parts: Parts, spec: StreamSpec, within: Callable[[Transaction], object] = lambda _tx: None
) -> None:
    """Make a stream; ``within`` is called in the transaction that makes it one."""
    promise_streams(parts, (spec,))
    kept = parts.head_guard.keep()
    with parts.metadata.write() as tx:
        parts.head_guard.put(tx, kept)
        write_stream(parts, tx, spec)
        within(tx)
    streams_made(parts, (spec,))


def promise_streams(parts: Parts, specs: Sequence[StreamSpec]) -> None:
    """The promises in the ledger, which comes first: a stream without metadata is no stream yet,
    and asking again finds it there.
    """
    require_new_streams(parts, specs)
    for spec in specs:
        if parts.ledger.streams().get(spec.name) is None:
            parts.ledger.create_stream(spec.name, spec.policy)
        for context, share in spec.quotas.items():
            parts.ledger.set_quota(spec.name, context, share)


def require_new_streams(parts: Parts, specs: Sequence[StreamSpec]) -> None:
    """Refuse streams that there are, and promises that differ from what the ledger holds."""
    with parts.metadata.read() as tx:
        taken = {row.name for row in tx.streams.list()}
    for spec in specs:
        if spec.name in taken:
            raise Refused("STREAM_EXISTS", f"stream {spec.name!r} exists already", stream=spec.name)
        if parts.ledger.streams().get(spec.name) not in (None, spec.policy):
            raise Refused(
                "STREAM_EXISTS",
                f"the ledger holds stream {spec.name!r} with another promise",
                stream=spec.name,
            )


def write_stream(parts: Parts, tx: Transaction, spec: StreamSpec) -> None:
    """The specification, in a transaction that has the witness as well."""
    tx.streams.create(spec.name, spec.as_json(), at_ms=parts.public_ms())
    tx.events.add("stream.created", spec.name, {"stream": spec.name}, at_ms=parts.public_ms())


def streams_made(parts: Parts, specs: Sequence[StreamSpec]) -> None:
    """After the transaction that made them."""
    for spec in specs:
        parts.specs[spec.name] = spec
    # Now that all have a witness, each says so: from here on one that is gone is missed.
    parts.head_guard.keep()
