"""Grants: unforgeable receipts for charges, the only keys that open raw data.

A grant names its charge, the slices it opens and when it expires, and carries a MAC under the
ledger's key. Whoever does not hold the key cannot make or alter one; the ledger lets each be used
once (`GRANT_USED`), before it expires (`GRANT_EXPIRED`). The text form (`Grant.token`) travels
through files and wires. Reason: GRANT_FORGED.
"""

from __future__ import annotations

import base64
import hmac
import json
from dataclasses import dataclass

from ptklib.encoding.canonical import canonical
from ptklib.encoding.mac import mac_of
from ptklib.errors import GrantRefused, InvalidInput
from ptklib.ledger.slices import Slice, TagRange, check_name
from ptklib.ledger.state import Charge, LedgerState

__all__ = ["MAX_TOKEN", "Grant", "issue", "verify"]

MAX_TOKEN = 32 * 1024 * 1024
_PURPOSE = b"sage grant v1"


@dataclass(frozen=True)
class Grant:
    """The receipt for one charge."""

    charge: int
    stream: str
    slices: tuple[Slice, ...]
    expires_at_ms: int
    mac: bytes

    @property
    def body(self) -> bytes:
        """What the MAC covers."""
        return _body(self.charge, self.stream, self.slices, self.expires_at_ms)

    @property
    def token(self) -> str:
        """The grant as text."""
        return base64.urlsafe_b64encode(self.mac + self.body).decode()

    @classmethod
    def from_token(cls, token: str) -> Grant:
        """Read `token` back. What is read proves nothing until `verify` has seen it."""
        try:
            if len(token) > MAX_TOKEN:
                raise ValueError
            raw = base64.urlsafe_b64decode(token.encode())
            charge, stream, slices, expires_at_ms = json.loads(raw[32:])
            parsed = tuple(
                Slice(tuple(blocks), TagRange(start, stop)) for blocks, start, stop in slices
            )
            for name in (stream, *(name for slice_ in parsed for name in slice_.blocks)):
                check_name(name, "name")
            if type(charge) is not int or charge < 0 or type(expires_at_ms) is not int:
                raise ValueError
        except (ValueError, TypeError, AttributeError, RecursionError, InvalidInput):
            raise GrantRefused("GRANT_FORGED", "the text is not a grant of this ledger") from None
        return cls(charge, stream, parsed, expires_at_ms, raw[:32])


def issue(key: bytes, state: LedgerState, charge: Charge) -> Grant:
    """The grant for a reserved charge; the same charge always gives the same grant."""
    blocks = state.streams[charge.stream].blocks
    slices = tuple(
        Slice(
            tuple(block.name for first, count in runs for block in blocks[first : first + count]),
            tags,
        )
        for runs, tags in charge.slices
    )
    mac = _mac(key, _body(charge.number, charge.stream, slices, charge.expires_at_ms))
    return Grant(charge.number, charge.stream, slices, charge.expires_at_ms, mac)


def verify(key: bytes, grant: Grant) -> None:
    """Refuse a grant that this ledger did not issue as it stands."""
    if not isinstance(grant, Grant) or not hmac.compare_digest(_mac(key, grant.body), grant.mac):
        raise GrantRefused(
            "GRANT_FORGED", "the grant was not issued by this ledger, or was altered"
        )


def _mac(key: bytes, body: bytes) -> bytes:
    return mac_of(key, _PURPOSE, body)


def _body(charge: int, stream: str, slices: tuple[Slice, ...], expires_at_ms: int) -> bytes:
    return canonical(
        [
            charge,
            stream,
            [[slice_.blocks, slice_.tags.start, slice_.tags.stop] for slice_ in slices],
            expires_at_ms,
        ]
    )
