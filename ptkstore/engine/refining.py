"""Answers that were given before they were settled: worked on in the background, until they are or that is enough.

A PTK that is REJECTED and ``refining`` ran out of work (`answering`): there may be a plan for it after all, or a tighter target
that would do. Here it is decided once more with far more work, like any registration: on a snapshot, with no transaction open,
written only if nothing changed meanwhile (PLAN_CONTENDED: it is left for the next time). With a plan in hand it becomes ACTIVE,
with the event ``ptk.accepted``; otherwise what is suggested becomes better, with the event ``ptk.refined``, and it is not
worked on again.

Whoever leads does this (`ptkstore.rpc.refiner`), a store without a server when it runs windows. Doing it twice does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptklib.privacy.filters import Filter
from ptkstore.engine.answering import REFINED, Work, answer_of
from ptkstore.engine.deciding import attempted
from ptkstore.engine.home import Home
from ptkstore.engine.planning import Candidate
from ptkstore.engine.registrations import active, candidate, told
from ptkstore.metadata import rows
from ptkstore.metadata.store import Transaction
from ptkstore.streams.spec import StreamSpec
from ptkstore.views import Registration

__all__ = ["refine", "unsettled"]

_KEY = "refining"
Answer = Callable[[StreamSpec, Filter, Sequence[Candidate], Candidate, Work], Registration]


class _Settled(Exception):
    """By somebody else meanwhile: nothing to do."""


def unsettled(tx: Transaction, stream: str | None = None) -> list[rows.Ptk]:
    """The PTKs whose answer is not settled, oldest first."""
    found = [row for row in tx.ptks.suggesting(_KEY) if (row.suggestion or {}).get(_KEY)]
    return [row for row in found if stream is None or row.stream == stream]


def refine(
    home: Home,
    stream: str | None = None,
    *,
    work: Work = REFINED,
    stopping: Callable[[], bool] = lambda: False,
    answer: Answer = answer_of,
) -> int:
    """Settle what is not settled; how many were. ``stopping`` is asked before each, and before it is written."""
    with home.metadata.read() as tx:
        waiting = unsettled(tx, stream)
    done = 0
    for row in waiting:
        if stopping():
            break
        done += _refined(home, row, work, stopping, answer)
    return done


def _refined(home: Home, row: rows.Ptk, work: Work, stopping: Callable[[], bool], plan: Answer) -> bool:
    spec, judge = home.specs[row.stream], home.judge(row.stream)

    def read(tx: Transaction) -> tuple[Sequence[Candidate], Candidate]:
        fresh = tx.ptks.get(row.id)
        if fresh.status != "REJECTED" or not (fresh.suggestion or {}).get(_KEY):
            raise _Settled
        return [one for one in active(tx, row.stream) if one.row.id != row.id], candidate(tx, fresh)

    def write(tx: Transaction, newcomer: Candidate, answer: Registration) -> bool:
        home.lead.fence(tx)
        if stopping():
            # Ended early: what was found says nothing about how much work it takes.
            return False
        if answer.status == "REJECTED":
            suggestion = {"nearest_target": answer.nearest_target, "changes": list(answer.changes)}
            now_ms = home.public_ms()
            tx.ptks.set_status(
                newcomer.row.id, answer.status, reason=answer.reason, suggestion=suggestion, at_ms=now_ms
            )
            tx.events.add("ptk.refined", row.name, answer.as_json(), at_ms=now_ms)
        else:
            told(tx, newcomer.row, answer, home.public_ms())
        return True

    try:
        # In no turn: whoever registers meanwhile does not wait, and this is done once more.
        return attempted(
            home.metadata,
            row.stream,
            row.name,
            read=read,
            answer=lambda others, newcomer: plan(spec, judge, others, newcomer, work),
            write=write,
        )
    except _Settled:
        return False
