"""Answered requests, so that asking again is safe. Reasons: REQUEST_ID_INVALID, REQUEST_ID_REUSED.

The answer to a request is written with the change that it makes, in one transaction (`keep`): there
is no moment at which the one is durable and the other is not. Before that nothing is written. Work
that changes something beside the metadata begins with a note of what it sets out to do, and is done
again from the note by whoever asks again.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ptklib.errors import InvalidInput, Refused
from ptkstore.metadata.checks import check_json, check_name
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import requests

__all__ = ["MAX_REQUEST_ID", "Begun", "Requests"]

MAX_REQUEST_ID = 64
_ID = re.compile(rf"[\x21-\x7e]{{1,{MAX_REQUEST_ID}}}")


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of a request: its note and its answer, if it has them."""

    note: Any
    answer: bytes | None


class Requests:
    """The requests of all callers; a caller's ids are its own."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def known(self, who: str, request: str, method: str, digest: str) -> Begun | None:
        """What was written of a request, None where nothing was. Another request under its id is
        REQUEST_ID_REUSED.
        """
        if not _ID.fullmatch(request):
            raise InvalidInput(
                "REQUEST_ID_INVALID",
                f"a request_id must be 1 to {MAX_REQUEST_ID} printable ASCII characters",
            )
        row = self._session.one(sa.select(requests).where(_is(who, request)))
        if row is None:
            return None
        if (row["method"], row["digest"]) != (method, digest):
            raise Refused(
                "REQUEST_ID_REUSED", "this request_id belongs to another request: take a fresh one"
            )
        return Begun(row["note"], _decoded(row["answer"]))

    def begin(self, who: str, request: str, method: str, digest: str, *, at_ms: int) -> Begun:
        """Write a request down, or find it (`known`)."""
        begun = self.known(who, request, method, digest)
        if begun is None:
            values = {"method": check_name(method, "method"), "digest": digest, "created_ms": at_ms}
            self._session.insert_all(
                requests, [{"who": check_name(who, "who"), "id": request, **values}]
            )
        return begun or Begun(None, None)

    def note(self, who: str, request: str, note: object) -> Any:
        """Write down what the request sets out to do, any JSON value.

        The first note stays and is what is returned.
        """
        here = sa.and_(_is(who, request), requests.c.note.is_(None))
        self._session.execute(requests.update().where(here).values(note=check_json(note, "a note")))
        row = self._session.one(sa.select(requests.c.note).where(_is(who, request)))
        return note if row is None else row["note"]

    def keep(
        self, who: str, request: str, method: str, digest: str, answer: bytes, *, at_ms: int
    ) -> bool:
        """Keep the answer with the change it tells of. False where there is one already: whoever
        made it was faster, and this transaction must not be committed.
        """
        if self.begin(who, request, method, digest, at_ms=at_ms).answer is not None:
            return False
        kept = (
            requests.update()
            .where(_is(who, request))
            .values(answer=base64.b64encode(answer).decode())
        )
        self._session.execute(kept)
        return True

    def answer(self, who: str, request: str) -> bytes | None:
        """The answer of a request, or None."""
        row = self._session.one(sa.select(requests.c.answer).where(_is(who, request)))
        return None if row is None else _decoded(row["answer"])

    def forget(self, who: str, request: str) -> None:
        """The request was refused: nothing happened, so its id is free again.

        One that was answered stays.
        """
        self._session.execute(
            requests.delete().where(_is(who, request), requests.c.answer.is_(None))
        )

    def sweep(self, before_ms: int) -> None:
        """Forget requests that are older."""
        self._session.execute(requests.delete().where(requests.c.created_ms < before_ms))


def _decoded(answer: str | None) -> bytes | None:
    return None if answer is None else base64.b64decode(answer)


def _is(who: str, request: str) -> sa.ColumnElement[bool]:
    return sa.and_(requests.c.who == who, requests.c.id == request)
