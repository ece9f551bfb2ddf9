"""What a witness says: how far the ledger, the metadata and the streams of a store had come when
something was made visible.

::

    {"store": identity of the ledger, "seq": .., "mac": newest commit, "number": of the metadata,
     "sealed": {stream: span}, "places": who else had a witness by then, "check": MAC under a key of
     the ledger}

Public numbers only: the lake may be read by many. A body of ``seq`` and ``mac`` alone is what
earlier releases left in the store's directory. Reasons: WITNESS_DAMAGED, LEDGER_FOREIGN.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ptklib.encoding.canonical import canonical
from ptklib.encoding.mac import mac_of
from ptklib.errors import GrantRefused, JournalDamaged
from ptkstore.ledger import Ledger
from ptkstore.ledger.journals.chain import Head

__all__ = ["Kept", "read_kept", "write_kept"]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One witness.

    ``number`` counts the steps of windows that the metadata had; ``sealed`` is how far streams were
    sealed.
    """

    head: Head
    number: int = 0
    sealed: Mapping[str, int] = field(default_factory=dict)
    places: frozenset[str] = frozenset()
    # False for what an earlier release left.
    whole: bool = True

    def body(self, store: str) -> dict[str, Any]:
        """As JSON, without its MAC."""
        return {
            "store": store,
            "seq": self.head.seq,
            "mac": self.head.mac.hex(),
            "number": self.number,
            "sealed": dict(self.sealed),
            "places": sorted(self.places),
        }


def write_kept(kept: Kept, ledger: Ledger) -> bytes:
    """The bytes of a witness, signed."""
    body = kept.body(ledger.identity)
    return canonical({**body, "check": _check(body, ledger)})


def read_kept(data: bytes, ledger: Ledger, place: str) -> Kept:
    """Read `write_kept` back.

    Refused: WITNESS_DAMAGED, and LEDGER_FOREIGN for one of another ledger.
    """
    try:
        body = json.loads(data)
        head = Head(int(body["seq"]), bytes.fromhex(body["mac"]))
        if body.keys() == {"seq", "mac"}:
            return Kept(head=head, whole=False)
        check, store = str(body.pop("check")), str(body["store"])
        sealed = {str(name): int(span) for name, span in body["sealed"].items()}
        kept = Kept(
            head=head, number=int(body["number"]), sealed=sealed, places=frozenset(body["places"])
        )
        intact = hmac.compare_digest(check, _check(body, ledger))
    except (ValueError, KeyError, TypeError, AttributeError):
        intact, store = False, ledger.identity
    if store != ledger.identity:
        raise GrantRefused(
            "LEDGER_FOREIGN",
            f"what the {place} knows is of another ledger: give the key file and the database that "
            "belong to this store",
        )
    if not intact:
        raise JournalDamaged(
            "WITNESS_DAMAGED",
            f"what the {place} knows of the ledger is not as it was written: nobody can tell "
            "whether the ledger is the newest. "
            "Put the file back as it was, or run `sage restore`",
        )
    return kept


def _check(body: dict[str, Any], ledger: Ledger) -> str:
    return mac_of(ledger.derived_key(b"witness"), b"sage witness v1", canonical(body)).hex()
