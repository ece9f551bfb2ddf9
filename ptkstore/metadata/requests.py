"""Answered requests, so that asking again is safe. Reasons: REQUEST_ID_INVALID, REQUEST_ID_REUSED.

A request is written down before its work begins and answered after it. What a crash leaves unanswered is done again by whoever
asks again: `begin` tells that it was begun before.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

import sqlalchemy as sa

from ptklib.errors import InvalidInput, Refused
from ptkstore.metadata.checks import check_name
from ptkstore.metadata.session import Session
from ptkstore.metadata.tables import requests

__all__ = ["MAX_REQUEST_ID", "Begun", "Requests"]

MAX_REQUEST_ID = 64
_ID = re.compile(rf"[\x21-\x7e]{{1,{MAX_REQUEST_ID}}}")


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of a request: whether it was begun before, and its answer if it has one."""

    before: bool
    answer: bytes | None


class Requests:
    """The requests of all callers; a caller's ids are its own."""

    def __init__(self, session: Session) -> None:
        """Work inside one transaction."""
        self._session = session

    def begin(self, who: str, request: str, method: str, digest: str, *, at_ms: int) -> Begun:
        """Write a request down, or find it. Another request under its id is REQUEST_ID_REUSED."""
        if not _ID.fullmatch(request):
            raise InvalidInput(
                "REQUEST_ID_INVALID", f"a request_id must be 1 to {MAX_REQUEST_ID} printable ASCII characters"
            )
        row = self._session.one(sa.select(requests).where(_is(who, request)))
        if row is None:
            values = {"method": check_name(method, "method"), "digest": digest, "created_ms": at_ms}
            self._session.insert_all(requests, [{"who": check_name(who, "who"), "id": request, **values}])
            return Begun(False, None)
        if (row["method"], row["digest"]) != (method, digest):
            raise Refused("REQUEST_ID_REUSED", "this request_id belongs to another request: take a fresh one")
        return Begun(True, None if row["answer"] is None else base64.b64decode(row["answer"]))

    def answer(self, who: str, request: str, answer: bytes) -> None:
        """Keep the answer. The first one stays."""
        here = sa.and_(_is(who, request), requests.c.answer.is_(None))
        self._session.execute(requests.update().where(here).values(answer=base64.b64encode(answer).decode()))

    def forget(self, who: str, request: str) -> None:
        """The request was refused: nothing happened, so its id is free again. One that was answered stays."""
        self._session.execute(requests.delete().where(_is(who, request), requests.c.answer.is_(None)))

    def sweep(self, before_ms: int) -> None:
        """Forget requests that are older."""
        self._session.execute(requests.delete().where(requests.c.created_ms < before_ms))


def _is(who: str, request: str) -> sa.ColumnElement[bool]:
    return sa.and_(requests.c.who == who, requests.c.id == request)
