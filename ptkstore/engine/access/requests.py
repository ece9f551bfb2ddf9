"""Requests under an id, so that each is done once: what was noted, answered and refused. See
`ptkstore.metadata.access.requests` for the rows.

The answer is written in the transaction that makes the change, by whoever makes it (`keep`); work
that writes no note costs no transaction beside that one. Two servers that are asked the same at the
same time may both work, and the second finds the first one's answer when it writes its own. Reasons:
REQUEST_ID_INVALID, REQUEST_ID_REUSED.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptkstore.metadata import Metadata, Transaction
from ptkstore.metadata.access.requests import Begun

__all__ = ["Request", "forget", "keep", "keep_alone", "known", "note", "sweep"]


@dataclass(frozen=True)
class Request:
    """One request: who asked, under which id, for what, with the digest of all of it."""

    who: str
    id: str
    method: str
    digest: str


def known(metadata: Metadata, request: Request) -> Begun:
    """What is known of a request. Refused: REQUEST_ID_REUSED."""
    with metadata.read() as tx:
        begun = tx.requests.known(request.who, request.id, request.method, request.digest)
    return begun or Begun(None, None)


def note(metadata: Metadata, request: Request, body: object, *, now_ms: int) -> Any:
    """Write down what a request sets out to do; the first note stays and is what is returned."""
    with metadata.write() as tx:
        tx.requests.begin(request.who, request.id, request.method, request.digest, at_ms=now_ms)
        return tx.requests.note(request.who, request.id, body)


def keep(tx: Transaction, request: Request, answer: bytes, *, now_ms: int) -> bool:
    """Keep the answer with the change it tells of. False where there is one already: then the
    transaction must not be committed.
    """
    return tx.requests.keep(
        request.who, request.id, request.method, request.digest, answer, at_ms=now_ms
    )


def keep_alone(metadata: Metadata, request: Request, answer: bytes, *, now_ms: int) -> bool:
    """Keep the answer to what changed nothing in the metadata. False where there is one already."""
    with metadata.write() as tx:
        return keep(tx, request, answer, now_ms=now_ms)


def forget(metadata: Metadata, request: Request) -> bytes | None:
    """A request was refused: its id is free again, unless somebody answered it meanwhile. Returns
    that answer.
    """
    with metadata.write() as tx:
        answer = tx.requests.answer(request.who, request.id)
        tx.requests.forget(request.who, request.id)
        return answer


def sweep(metadata: Metadata, *, before_ms: int) -> None:
    """Forget requests that are older."""
    with metadata.write() as tx:
        tx.requests.sweep(before_ms)
