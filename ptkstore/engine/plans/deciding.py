"""Decisions about PTKs, planned on a snapshot and written only if it still holds.

`attempted` reads what the decision rests on in one read transaction, plans with no transaction
open, and writes in a short one in which the same is read again. If something that matters has
changed it plans once more, a few times; then PLAN_CONTENDED, and nothing happened. What matters is
`Standing`: which PTKs of the stream are accepted, with which configurations, targets and profiles,
and the row of the PTK itself. `decided` does so in turn with others of the process, which spares
most of the tries; work that takes longer than callers wait takes no turn. Appends, windows and the
ledger are never waited for, and never wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

from ptkstore.engine.plans.planning import Candidate
from ptkstore.engine.turns import contended, turn
from ptkstore.metadata import Metadata
from ptkstore.metadata.database.store import Transaction

__all__ = ["ACCEPTED", "TRIES", "PtkDecision", "Standing", "attempted", "decided", "standing"]

# Statuses of PTKs that have a place in every plan.
ACCEPTED = ("ACTIVE", "FAILED")
TRIES = 5

Writable = TypeVar("Writable", bound=Transaction)
Answer = TypeVar("Answer")
Result = TypeVar("Result")


@dataclass(frozen=True)
class PtkDecision(Generic[Writable, Answer, Result]):
    """What a decision about one PTK of a stream is made of: ``write`` the ``answer`` to what was
    ``read``.

    ``writing`` opens the transaction of it: results of windows have one of their own
    (`StepJournal.writing`).
    """

    stream: str
    name: str
    read: Callable[[Transaction], tuple[Sequence[Candidate], Candidate]]
    answer: Callable[[Sequence[Candidate], Candidate], Answer]
    write: Callable[[Writable, Candidate, Answer], Result]
    writing: Callable[[], AbstractContextManager[Writable]]


@dataclass(frozen=True)
class Standing:
    """What a decision rests on, small enough to be read again where it is written."""

    accepted: tuple[tuple[int, int, float], ...]
    profiles: tuple[int | None, ...]
    own: tuple[int, int] | None


def standing(tx: Transaction, stream: str, name: str) -> Standing:
    """As it is at this moment: the accepted PTKs of the stream, and the id and etag of the one of
    that name.
    """
    accepted = tx.ptks.standing(stream, ACCEPTED)
    newest = tx.profiles.newest_of_stream(stream)
    own = tx.ptks.etag_of(name)
    return Standing(accepted, tuple(newest.get(ptk) for ptk in accepted), own)


def decided(metadata: Metadata, decision: PtkDecision[Writable, Answer, Result]) -> Result:
    """`attempted`, in turn with others in this process."""
    with turn(metadata, decision.stream):
        return attempted(metadata, decision)


def attempted(metadata: Metadata, decision: PtkDecision[Writable, Answer, Result]) -> Result:
    """Write the answer to what was read, if that is still so. Reason: PLAN_CONTENDED, and those of
    the decision.
    """
    stream, name = decision.stream, decision.name
    for _ in range(TRIES):
        with metadata.read() as tx:
            others, newcomer = decision.read(tx)
            seen = standing(tx, stream, name)
        answered = decision.answer(others, newcomer)
        with decision.writing() as writable:
            if standing(writable, stream, name) == seen:
                return decision.write(writable, newcomer, answered)
    raise contended(stream, f"its PTKs changed {TRIES} times while {name!r} was planned")
