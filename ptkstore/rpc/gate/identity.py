"""Who calls: nobody in particular on loopback, the bearer of a token, or the owner of a
certificate.

A token is ``sage_ID_SECRET``; the store keeps the SHA-256 of the secret. Tokens are looked up again
every few seconds, so a revoked one dies within `TOKEN_SECONDS`.

Reasons: CREDENTIALS_MISSING, CREDENTIALS_INVALID, PERMISSION_DENIED.
"""

from __future__ import annotations

import hmac
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ptkstore.api.permissions import ROLES, Permission
from ptkstore.engine.access.tokens import find_token, list_tokens, secret_sha256
from ptkstore.metadata import Metadata
from ptkstore.metadata.access.tokens import TokenRow
from ptkstore.wire.faults import AccessDenied

__all__ = [
    "ANONYMOUS",
    "HANDED_ON",
    "TOKEN_SECONDS",
    "Caller",
    "Callers",
    "denied",
    "told_apart",
]

TOKEN_SECONDS = 2.0
# The header of a call that came to another server of the store first.
HANDED_ON = "sage-handed-on"
_TOKEN = re.compile(r"sage_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_MAX_KNOWN = 10_000


@dataclass(frozen=True)
class Caller:
    """Somebody with roles. Empty ``streams`` and ``ptks`` mean all of them."""

    name: str
    roles: frozenset[str]
    streams: frozenset[str] = frozenset()
    ptks: frozenset[str] = frozenset()

    @property
    def limited(self) -> bool:
        """True when it may not see everything."""
        return bool(self.streams or self.ptks)

    def sees_stream(self, stream: str) -> bool:
        """True when the stream is one of the caller's.

        Who is limited to some PTKs alone has no stream.
        """
        return stream in self.streams if self.streams else not self.ptks

    def sees_ptk(self, ptk: str, stream: str | None) -> bool:
        """True when the PTK, and the stream it is on, are the caller's.

        A PTK that does not exist is on no stream.
        """
        named = not self.ptks or ptk in self.ptks
        return named and (not self.streams or (stream is not None and stream in self.streams))

    def require_role(self, permission: Permission) -> None:
        """PERMISSION_DENIED unless one of the roles may, and the limits allow."""
        if not self.roles & permission.roles:
            raise denied(
                f"this takes the role {' or '.join(sorted(permission.roles)) or 'of nobody'}"
            )
        if permission.scope == "whole" and self.limited:
            raise denied(
                "this is about the whole store, and the credentials are limited to a part of it"
            )

    def require_stream(self, stream: str) -> None:
        """PERMISSION_DENIED unless the stream is one of the caller's."""
        if not self.sees_stream(stream):
            raise denied("these credentials are for other streams")

    def require_ptk(self, ptk: str, stream: str | None) -> None:
        """PERMISSION_DENIED unless the PTK is one of the caller's."""
        if not self.sees_ptk(ptk, stream):
            raise denied("these credentials are for other PTKs or streams")


ANONYMOUS = Caller("anonymous", frozenset(ROLES))


def told_apart(caller: Caller, context: Any) -> str:
    """Whose places a call takes: its caller's; who has no name is told apart by the connection."""
    return str(context.peer()) if caller is ANONYMOUS else caller.name


def denied(words: str) -> AccessDenied:
    """What a caller hears who may not."""
    return AccessDenied("PERMISSION_DENIED", words)


class Callers:
    """Finds out who calls.

    ``anonymous`` lets everybody do everything: for loopback without credentials only.
    """

    def __init__(
        self,
        metadata: Metadata,
        *,
        anonymous: bool,
        certificates: Mapping[str, Caller] | None = None,
        clock: Callable[[], float] = time.time,
        vouched: Callable[[Any], str | None] = lambda _context: None,
    ) -> None:
        """``certificates`` are callers by the common or alternative name of their certificate;
        ``vouched`` is the name that another server of the store has seen in one.
        """
        self._metadata = metadata
        self._anonymous = anonymous
        self._certificates = dict(certificates or {})
        self._clock = clock
        self._vouched = vouched
        self._known: dict[str, tuple[float, TokenRow]] = {}
        self._reading = threading.Lock()
        self._read: float | None = None

    def identify(self, context: Any, *, look: bool = True) -> Caller:
        """The caller of an RPC; without a ``look`` into the metadata by the tokens that were in it
        some seconds ago.
        """
        for name, value in context.invocation_metadata():
            if name == "authorization":
                return self._bearer(value, look=look)
        certified = self._certified(context)
        if certified is not None:
            return certified
        if self._anonymous:
            return ANONYMOUS
        raise AccessDenied(
            "CREDENTIALS_MISSING",
            "this server wants credentials: a token, or a certificate it knows",
        )

    def remembered(self, metadata: Iterable[tuple[str, Any]]) -> str | None:
        """The name of a caller whose token was good lately; None for all others. Never waits."""
        for name, value in metadata:
            if name == "authorization":
                match = _bearer_token(value)
                known = self._known.get(match[1]) if match else None
                good = (
                    known is not None
                    and match is not None
                    and hmac.compare_digest(secret_sha256(match[2]), known[1].secret_sha256)
                )
                return known[1].name if known is not None and good else None
        return None

    def certificate(self, context: Any) -> str | None:
        """The name in the certificate that a caller showed, if it is one we know."""
        if not self._certificates:
            return None
        told = context.auth_context()
        shown = (
            told.get(field, ()) for field in ("x509_common_name", "x509_subject_alternative_name")
        )
        names = (value.decode("utf-8", "replace") for values in shown for value in values)
        return next((name for name in names if name in self._certificates), None)

    def _certified(self, context: Any) -> Caller | None:
        """The owner of the certificate that a call came with."""
        # The certificate of a call that was handed on is that of a server, and says nothing of the
        # caller.
        handed_on = any(name == HANDED_ON for name, _ in context.invocation_metadata())
        name = self._vouched(context) if handed_on else self.certificate(context)
        return self._certificates.get(name) if name is not None else None

    def _bearer(self, header: object, *, look: bool) -> Caller:
        match = _bearer_token(header)
        row = self._token(match[1], look=look) if match else None
        # The hash is compared even where there is no such token, so that timing tells nothing.
        right = hmac.compare_digest(
            secret_sha256(match[2] if match else ""), row.secret_sha256 if row else "0" * 64
        )
        if row is None or not right or not row.alive(int(self._clock() * 1000)):
            raise AccessDenied("CREDENTIALS_INVALID", "the token is not known, or not any more")
        return Caller(row.name, frozenset(row.roles), frozenset(row.streams), frozenset(row.ptks))

    def _token(self, number: str, *, look: bool) -> TokenRow | None:
        if not look:
            self._read_all()
        now = time.monotonic()
        known = self._known.get(number)
        if not look or (known is not None and now - known[0] < TOKEN_SECONDS):
            return None if known is None else known[1]
        row = find_token(self._metadata, number)
        if row is None:
            self._known.pop(number, None)
        else:
            if len(self._known) > _MAX_KNOWN:
                self._known.clear()
            self._known[number] = (now, row)
        return row

    def _read_all(self) -> None:
        """Read all tokens, unless that was done lately."""
        with self._reading:
            now = time.monotonic()
            if self._read is not None and now - self._read < TOKEN_SECONDS:
                return
            rows = list_tokens(self._metadata)
            self._known = {row.id: (now, row) for row in rows[-_MAX_KNOWN:]}
            self._read = now


def _bearer_token(header: object) -> re.Match[str] | None:
    """The number and the secret of a token in its header."""
    if not isinstance(header, str) or not header.startswith("Bearer "):
        return None
    return _TOKEN.fullmatch(header.removeprefix("Bearer "))
