"""Tokens: who may do what. Only the SHA-256 of a secret is kept. Reasons: TOKEN_EXISTS,
TOKEN_UNKNOWN.

The secrets are 256 random bits, so a plain hash is enough: there is nothing to guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from ptklib.errors import Refused
from ptkstore.metadata.checks import check_json, check_name, check_whole_or_none
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import tokens

__all__ = ["TokenRow", "Tokens"]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token. Empty ``streams`` or ``ptks``: not limited to some."""

    id: str
    name: str
    secret_sha256: str
    roles: tuple[str, ...]
    streams: tuple[str, ...]
    ptks: tuple[str, ...]
    created_ms: int | None
    expires_ms: int | None
    revoked_ms: int | None

    def alive(self, now_ms: int) -> bool:
        """True while it may be used."""
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)


class Tokens:
    """The tokens of the store."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def add(
        self,
        token: str,
        name: str,
        secret_sha256: str,
        *,
        roles: Iterable[str],
        streams: Iterable[str] = (),
        ptks: Iterable[str] = (),
        expires_ms: int | None = None,
        at_ms: int | None = None,
    ) -> TokenRow:
        """Add a token; its name is taken for good (the audit log speaks of it): TOKEN_EXISTS."""
        check_name(name, "a token's name")
        if self._session.one(sa.select(tokens.c.id).where(tokens.c.name == name)) is not None:
            raise Refused(
                "TOKEN_EXISTS", f"there is a token {name!r} already: take another name", token=name
            )
        values = {
            "id": token,
            "name": name,
            "secret_sha256": secret_sha256,
            "roles": check_json(list(roles), "roles"),
            "streams": check_json(list(streams), "streams"),
            "ptks": check_json(list(ptks), "ptks"),
            "created_ms": check_whole_or_none(at_ms, "at_ms"),
            "expires_ms": check_whole_or_none(expires_ms, "expires_ms"),
        }
        self._session.insert_all(tokens, [values])
        token_row = self.find(token)
        assert token_row is not None
        return token_row

    def find(self, token: str) -> TokenRow | None:
        """The token of that id, alive or not."""
        row = self._session.one(sa.select(tokens).where(tokens.c.id == token))
        return None if row is None else _row(row)

    def revoke(self, name: str, *, at_ms: int) -> TokenRow:
        """End a token for good, or TOKEN_UNKNOWN. Doing it again changes nothing."""
        row = self._session.one(sa.select(tokens).where(tokens.c.name == name))
        if row is None:
            raise Refused("TOKEN_UNKNOWN", f"there is no token {name!r}", token=name)
        here = sa.and_(tokens.c.name == name, tokens.c.revoked_ms.is_(None))
        self._session.execute(tokens.update().where(here).values(revoked_ms=at_ms))
        token = self.find(row["id"])
        assert token is not None
        return token

    def list(self) -> tuple[TokenRow, ...]:
        """All tokens, by name."""
        return tuple(
            _row(row) for row in self._session.all(sa.select(tokens).order_by(tokens.c.name))
        )


def _row(row: sa.RowMapping) -> TokenRow:
    lists = {name: tuple(row[name]) for name in ("roles", "streams", "ptks")}
    return TokenRow(**{**row, **lists})
