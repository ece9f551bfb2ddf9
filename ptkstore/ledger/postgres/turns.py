"""The two messages of a turn at the shared journal, straight through libpq.

While several servers write, everybody waits for whoever has the turn, so each microsecond between
taking the lock and committing counts for all. A turn is two messages: one takes the lock and reads
what others have added, one adds a commit and lets the lock go. Both are pipelines of prepared
statements with binary values; through cursors they would take twice as long on our side. Not so
outside of turns: there other threads of ours are at work, and a cursor lets go of the interpreter
less often.

psycopg's connection stays the owner: nothing is under way on it between two calls, and its
transaction status is libpq's. A call that fails with an error of the server leaves the connection
in order; one that is interrupted closes it, and with it the transaction. Raises psycopg's errors.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

__all__ = ["NEXT", "PAGE", "Row", "Turns"]

PAGE = 500
# Number, body and MAC of a commit.
Row = tuple[int, bytes, bytes]

_BIGINT, _BYTEA = 20, 17
# The commit before must be there as we know it, and the newest: a journal that swallows commits is
# noticed at the next one.
NEXT = """
WITH moved AS (
    UPDATE sage_ledger.head SET seq = {seq}, mac = {mac}
    WHERE seq = {before} AND mac = {before_mac}
    AND ({before} = 0 OR EXISTS (SELECT 1 FROM sage_ledger.commits WHERE seq = {before} AND mac = {before_mac}))
    RETURNING 1
)
INSERT INTO sage_ledger.commits (seq, body, mac) SELECT {seq}, {body}, {mac} FROM moved
"""
_NEXT = NEXT.format(seq="$1", body="$2", mac="$3", before="$4", before_mac="$5").encode()
# Each statement sees what was committed before it began: what others have added is read behind the
# lock.
_ADDED = (
    b"SELECT seq, body, mac FROM sage_ledger.commits WHERE seq > $1 ORDER BY seq LIMIT %d" % PAGE
)
_STATEMENTS: dict[bytes, tuple[bytes, tuple[int, ...]]] = {
    b"sage_begin": (b"BEGIN", ()),
    b"sage_lock": (b"SELECT 1 FROM sage_ledger.head FOR UPDATE", ()),
    b"sage_added": (_ADDED, (_BIGINT,)),
    b"sage_next": (_NEXT, (_BIGINT, _BYTEA, _BYTEA, _BIGINT, _BYTEA)),
    b"sage_commit": (b"COMMIT", ()),
}
_BINARY = 1

Values = Sequence[bytes]


class Turns:
    """Turns on one connection, whose journal's tables exist."""

    def __init__(self, connection: Connection) -> None:
        """Prepare the statements."""
        from psycopg import errors, pq

        self._connection = connection
        self._libpq: Any = connection.pgconn
        self._errors, self._status = errors, pq.ExecStatus
        self._readable = select.poll()
        self._readable.register(self._libpq.socket, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(self._libpq.socket, select.POLLIN | select.POLLOUT)
        for name, (text, kinds) in _STATEMENTS.items():
            self._checked(self._libpq.prepare(name, text, kinds))

    def begin(self, seq: int) -> tuple[bool, list[Row]]:
        """Take the lock: whether there is anything to lock, and the commits after ``seq``, a page
        of them.
        """
        lines = [(b"sage_begin", ()), (b"sage_lock", ()), (b"sage_added", (_number(seq),))]
        _, locked, added = self._run(lines)
        rows = [
            (
                int.from_bytes(added.get_value(row, 0), "big"),
                added.get_value(row, 1),
                added.get_value(row, 2),
            )
            for row in range(added.ntuples)
        ]
        return locked.ntuples == 1, rows

    def append_last(self, seq: int, body: bytes, mac: bytes, before_mac: bytes) -> bool:
        """Add a commit and end the turn; False if the one before is not the newest."""
        values = (_number(seq), body, mac, _number(seq - 1), before_mac)
        added, _ = self._run([(b"sage_next", values), (b"sage_commit", ())])
        return bool(added.command_tuples == 1)

    def _run(self, lines: Sequence[tuple[bytes, Values]]) -> list[Any]:
        """Send the statements together and wait for all answers; the first error among them is
        raised.
        """
        libpq = self._libpq
        try:
            libpq.enter_pipeline_mode()
            for name, values in lines:
                libpq.send_query_prepared(name, values, [_BINARY] * len(values), _BINARY)
            libpq.pipeline_sync()
            while libpq.flush():
                self._writable.poll()
                libpq.consume_input()
            answers = self._answers()
            libpq.exit_pipeline_mode()
        except BaseException:
            self._connection.close()
            raise
        for answer in answers:
            self._checked(answer)
        return answers

    def _answers(self) -> list[Any]:
        libpq, synced = self._libpq, self._status.PIPELINE_SYNC
        answers: list[Any] = []
        ended = False
        while True:
            while libpq.is_busy():
                self._readable.poll()
                libpq.consume_input()
            answer = libpq.get_result()
            if answer is None:
                # The end of one statement's answers; twice in a row, of a connection.
                if ended:
                    raise self._errors.OperationalError("the connection was lost")
                ended = True
                continue
            ended = False
            if answer.status == synced:
                return answers
            answers.append(answer)

    def _checked(self, answer: Any) -> None:
        if answer.status == self._status.PIPELINE_ABORTED:
            raise self._errors.OperationalError("the transaction was given up")
        if answer.status not in (self._status.COMMAND_OK, self._status.TUPLES_OK):
            raise self._errors.error_from_result(answer)


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)
