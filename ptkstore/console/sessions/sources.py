"""Where the console gets a store for a session: the one directory, or a server as the bearer of a
token.

Reasons: CREDENTIALS_MISSING, CREDENTIALS_INVALID.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

import ptkstore
from ptklib.errors import AccessDenied
from ptkstore.api.store import Store

__all__ = ["DirectorySource", "ServerSource", "Source"]

_HEADER_TEXT = re.compile(r"[!-~]{1,1000}")


class Source(Protocol):
    """Stores for sessions."""

    @property
    def place(self) -> str:
        """What is looked at, for people."""

    @property
    def takes_tokens(self) -> bool:
        """True when one signs in with a token."""

    def local(self) -> Store:
        """For whoever started the console and came by its one-time link."""

    def for_token(self, token: str) -> Store:
        """For the bearer of a token."""

    def give_back(self, store: Store) -> None:
        """The session is over."""


class DirectorySource:
    """One store in a directory, shared by all sessions of the person who started the console."""

    takes_tokens = False

    def __init__(self, store: Store, place: str) -> None:
        """The caller closes the store."""
        self._store = store
        self.place = place

    def local(self) -> Store:
        """The store."""
        return self._store

    def for_token(self, token: str) -> Store:  # noqa: ARG002
        """A directory knows no tokens."""
        raise AccessDenied(
            "CREDENTIALS_MISSING", "this console is opened with the link that `sage ui` printed"
        )

    def give_back(self, store: Store) -> None:
        """It stays open."""


class ServerSource:
    """A server.

    ``token`` is that of whoever started the console; None where the server wants none.
    """

    takes_tokens = True

    def __init__(
        self, address: str, *, token: str | None = None, ca_file: str | Path | None = None
    ) -> None:
        """Connects when a session begins."""
        self.place = address
        self._token = token
        self._ca_file = ca_file

    def local(self) -> Store:
        """As the one who started the console."""
        return ptkstore.open(self.place, token=self._token, ca_file=self._ca_file)

    def for_token(self, token: str) -> Store:
        """As the bearer."""
        if not token:
            raise AccessDenied(
                "CREDENTIALS_MISSING", "signing in takes a token: `sage token create` makes one"
            )
        if not _HEADER_TEXT.fullmatch(token):
            # Nothing else can be in the header that carries it.
            raise AccessDenied(
                "CREDENTIALS_INVALID", "this is no token: one has letters, digits, '-' and '_'"
            )
        return ptkstore.open(self.place, token=token, ca_file=self._ca_file)

    def give_back(self, store: Store) -> None:
        """Close the connection, and forget the token with it."""
        store.close()
