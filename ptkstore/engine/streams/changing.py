"""What may change of a stream that there is: what it uses of its windows, and nothing else.

It is no promise: the ledger judges every charge by the stream's policy, whatever is asked of it. It
counts from the next plan on; a window that has been planned is trained as planned.

Reason: STREAM_UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.parts import Parts
from ptkstore.metadata.database.store import Transaction

__all__ = ["uses_changed", "write_uses"]


def write_uses(parts: Parts, tx: Transaction, uses: Mapping[str, str]) -> tuple[StreamSpec, ...]:
    """Write what streams use from now on; those of which it changes, as they are then."""
    changed = []
    for name, use in uses.items():
        spec = StreamSpec.from_stored(tx.streams.get(name).spec)
        if spec.use != use:
            spec = replace(spec, use=use)
            tx.streams.set_spec(name, spec.as_json())
            told = {"stream": name, "use": use}
            tx.events.add("stream.changed", name, told, at_ms=parts.public_ms())
            changed.append(spec)
    return tuple(changed)


def uses_changed(parts: Parts, specs: tuple[StreamSpec, ...]) -> None:
    """After the transaction that changed them."""
    for spec in specs:
        parts.specs[spec.name] = spec
