"""Answers that were given before they were settled: worked on in the background, until they are or
that is enough.

A PTK that is REJECTED and ``refining`` ran out of work (`answering`): there may be a plan for it
after all, or a tighter target that would do. Here it is decided once more with far more work, like
any registration: on a snapshot, with no transaction open, written only if nothing changed meanwhile
(PLAN_CONTENDED: it is left for the next time). With a plan in hand it becomes ACTIVE, with the
event ``ptk.accepted``; otherwise what is suggested becomes better, with the event ``ptk.refined``,
and it is not worked on again.

Whoever leads does this (`ptkstore.rpc.background.refiner`), a store without a server when it runs
windows. Doing it twice does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from ptkstore.api.views import Registration
from ptkstore.engine.asking import Ask, here
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.answering import REFINED, AnswerEffort, answer_of
from ptkstore.engine.plans.deciding import PtkDecision, attempted
from ptkstore.engine.plans.planning import Candidate
from ptkstore.engine.plans.registrations import candidate, others_than, suggested, told
from ptkstore.engine.turns import PlanContended
from ptkstore.metadata import rows
from ptkstore.metadata.database.store import Transaction

__all__ = ["refine", "unsettled"]

_KEY = "refining"
_LOG = logging.getLogger(__name__)


class _Settled(Exception):
    """By somebody else meanwhile: nothing to do."""


def unsettled(tx: Transaction, stream: str | None = None) -> list[rows.PtkRow]:
    """The PTKs whose answer is not settled, oldest first."""
    ptks = [row for row in tx.ptks.suggesting(_KEY) if (row.suggestion or {}).get(_KEY)]
    return [row for row in ptks if stream is None or row.stream == stream]


def refine(
    parts: Parts,
    stream: str | None = None,
    *,
    work: AnswerEffort = REFINED,
    stopping: Callable[[], bool] = lambda: False,
    ask: Ask = here,
) -> int:
    """Settle what is not settled; how many were.

    ``stopping`` is asked before each, and before it is written.
    """
    with parts.metadata.read() as tx:
        waiting = unsettled(tx, stream)
    done = 0
    for row in waiting:
        if stopping():
            break
        try:
            done += _refined(parts, row, work, stopping, ask)
        except PlanContended as busy:
            # The others need not wait for it.
            _LOG.info("PTK %s is refined later: %s", row.name, busy.message)
    return done


def _refined(
    parts: Parts, row: rows.PtkRow, work: AnswerEffort, stopping: Callable[[], bool], ask: Ask
) -> bool:
    spec, privacy_filter = parts.specs[row.stream], parts.privacy_filter(row.stream)

    def read(tx: Transaction) -> tuple[Sequence[Candidate], Candidate]:
        fresh = tx.ptks.get(row.id)
        if fresh.status != "REJECTED" or not (fresh.suggestion or {}).get(_KEY):
            raise _Settled
        return others_than(tx, fresh), candidate(tx, fresh)

    def answer(others: Sequence[Candidate], newcomer: Candidate) -> Registration:
        return ask(answer_of, spec, privacy_filter, others, newcomer, work)

    def write(tx: Transaction, newcomer: Candidate, answer: Registration) -> bool:
        parts.lead.fence(tx)
        if stopping():
            # Ended early: what was found says nothing about how much work it takes.
            return False
        if answer.status == "REJECTED":
            now_ms = parts.public_ms()
            tx.ptks.set_status(
                newcomer.row.id,
                answer.status,
                reason=answer.reason,
                suggestion=suggested(replace(answer, refining=False)),
                at_ms=now_ms,
            )
            tx.events.add("ptk.refined", row.name, answer.as_json(), at_ms=now_ms)
        else:
            told(tx, newcomer.row, answer, parts.public_ms())
        return True

    try:
        # In no turn: whoever registers meanwhile does not wait, and this is done once more.
        return attempted(
            parts.metadata,
            PtkDecision(row.stream, row.name, read, answer, write, parts.metadata.write),
        )
    except _Settled:
        return False
