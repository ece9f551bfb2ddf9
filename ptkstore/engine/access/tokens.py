"""Tokens: who may do what. A token is ``sage_ID_SECRET``, shown once; the store keeps the SHA-256 of
the secret. Reasons: ROLE_UNKNOWN, TOKEN_EXISTS, TOKEN_UNKNOWN.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence

from ptklib.errors import InvalidInput
from ptkstore.api.permissions import ROLES
from ptkstore.metadata import Metadata
from ptkstore.metadata.access.tokens import TokenRow

__all__ = [
    "TokenRow",
    "check_roles",
    "find_token",
    "list_tokens",
    "make_token",
    "revoke_token",
    "secret_sha256",
]


def check_roles(roles: Iterable[str]) -> tuple[str, ...]:
    """Roles that exist, at least one. Reason: ROLE_UNKNOWN."""
    wanted = tuple(dict.fromkeys(roles))
    if not wanted or not set(wanted) <= set(ROLES):
        raise InvalidInput(
            "ROLE_UNKNOWN",
            f"roles must be some of {', '.join(ROLES)}, got {', '.join(wanted) or 'none'}",
        )
    return wanted


def make_token(
    metadata: Metadata,
    name: str,
    *,
    roles: Iterable[str],
    streams: Iterable[str] = (),
    ptks: Iterable[str] = (),
    expires_ms: int | None = None,
    now_ms: int,
) -> tuple[str, TokenRow]:
    """A new token, shown this once, and what is kept of it."""
    checked = check_roles(roles)
    number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    with metadata.write() as tx:
        row = tx.tokens.add(
            number,
            name,
            secret_sha256(secret),
            roles=checked,
            streams=sorted(set(streams)),
            ptks=sorted(set(ptks)),
            expires_ms=expires_ms,
            at_ms=now_ms,
        )
    return f"sage_{number}_{secret}", row


def find_token(metadata: Metadata, number: str) -> TokenRow | None:
    """The token with that id, or None."""
    with metadata.read() as tx:
        return tx.tokens.find(number)


def list_tokens(metadata: Metadata) -> Sequence[TokenRow]:
    """All tokens, oldest first, those that are revoked or expired included."""
    with metadata.read() as tx:
        return tx.tokens.list()


def revoke_token(metadata: Metadata, name: str, *, now_ms: int) -> TokenRow:
    """End a token for good. Refused: TOKEN_UNKNOWN."""
    with metadata.write() as tx:
        return tx.tokens.revoke(name, at_ms=now_ms)


def secret_sha256(secret: str) -> str:
    """What the store keeps of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
