"""The state in memory and the journal on disk, kept together for many threads and many processes.

A caller's command is applied to the state in memory at once, in the caller's thread, and its
entries then wait to become durable in a group; only then is the caller answered. So the next
commands are worked on while the disk is busy with the last ones. This is safe because nobody is
told of anything before it is durable, and because a commit carries the number that follows the
newest commit this process knows: if another process was faster, the number is taken, nothing is
written, and the group is worked out again on what the other wrote, under the write lock. While
others write, commands are applied under that lock from the start.

When anything goes wrong on the way to the disk, memory is forgotten and read again from the
journal.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ptklib.encoding.canonical import entry_texts, joined_entries
from ptklib.errors import JournalDamaged, JournalUnavailable, SageError
from ptklib.ledger.commands import Command, Reserve
from ptklib.ledger.decide import apply
from ptklib.ledger.drafts import drafted
from ptklib.ledger.snapshot import dump, load
from ptklib.ledger.state import Entry, LedgerState
from ptkstore.ledger.group_commit import GroupCommit
from ptkstore.ledger.journals.protocol import DurableJournal

__all__ = ["SHARED_SECONDS", "Turn", "Work", "Writer"]

# How long after another process's commit we expect it to write again.
SHARED_SECONDS = 5.0


_generation = 0


def _forked() -> None:
    """Runs in every forked child: what was opened before the fork belongs to the parent."""
    global _generation
    _generation += 1


os.register_at_fork(after_in_child=_forked)


class Turn:
    """The commands of one caller: they fold into the state at once, and their entries wait for the
    journal.
    """

    __slots__ = ("entries", "state")

    def __init__(self, state: LedgerState) -> None:
        """Nothing done yet."""
        self.state = state
        self.entries: list[Entry] = []

    def apply(self, command: Command) -> list[Entry]:
        """Apply one command, or raise its refusal."""
        entries = apply(self.state, command)
        self.entries += entries
        return entries


Work = Callable[[Turn], Any]


class _Job:
    """One caller's work and what came of it.

    It can be done again: it depends on the state alone.
    """

    __slots__ = ("entries", "outcome", "text", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        # None until the work was applied to the state in memory.
        self.entries: list[Entry] | None = None
        self.outcome: Any = None
        self.text = ""

    def run(self, state: LedgerState) -> None:
        turn = Turn(state)
        try:
            self.outcome = self.work(turn)
        except SageError as refusal:
            self.outcome = refusal
        self.entries = turn.entries
        # Spelled out here, in the caller's thread, so that whoever commits has less to do before
        # the disk.
        self.text = entry_texts(turn.entries)


class Writer:
    """Owns the state and the journal. All methods are thread-safe."""

    def __init__(self, journal: DurableJournal, snapshot_every: int) -> None:
        """Read the journal; ``snapshot_every`` entries a snapshot is taken."""
        self.journal = journal
        self._snapshot_every = snapshot_every
        self._group: GroupCommit[_Job, Any] = GroupCommit(self._commit_all)
        # Guards the state and everything below. Taken after the group's turn, never before.
        self._memory = threading.RLock()
        self._state: LedgerState | None = None
        # Jobs in the queue that were not applied yet: as long as there are any, nobody is applied
        # ahead of them.
        self._unapplied = 0
        # Entries since the newest snapshot.
        self._unsaved = 0
        self._shared_until = 0.0
        self._closed = False
        self._generation = _generation
        self._restore()

    def submit(self, work: Work, requests: Sequence[Reserve] = ()) -> Any:
        """Do ``work`` and return its result when it is durable; raise its refusal.

        ``requests`` are those that the work makes: while others write they are drafted here, ahead
        of our turn.
        """
        job = _Job(work)
        self._require_own_process()
        if requests and time.monotonic() < self._shared_until:
            self._draft(requests)
        with self._memory:
            self._require_open()
            try:
                if (
                    self._state is not None
                    and not self._unapplied
                    and time.monotonic() >= self._shared_until
                ):
                    job.run(self._state)
                    ticket = self._group.enqueue(job)
                else:
                    ticket = self._group.enqueue(job)
                    self._unapplied += 1
            except BaseException:
                # Interrupted, or a defect of ours in the middle of a command: memory cannot be
                # trusted any more.
                self._state = None
                raise
        return self._group.wait(ticket)

    @contextmanager
    def quiet(self) -> Iterator[LedgerState]:
        """The state, durable and up to date with what other processes wrote; nothing changes
        meanwhile.
        """
        self._require_own_process()
        with self._group.alone() as commit_waiting, self._memory:
            # With both locks held nobody can hand in more, so after this nothing in memory waits
            # for the disk.
            commit_waiting()
            self._require_open()
            yield self._up_to_date()

    def save_snapshot(self) -> None:
        """Save the state now, so that the next start replays less."""
        with self.quiet() as state:
            self.journal.begin()
            try:
                self._catch_up(state)
                self._save_snapshot(state)
                self.journal.commit()
            except BaseException:
                self._forget()
                raise

    def close(self) -> None:
        """Close the journal. Everything promised is durable already."""
        with self._group.alone() as commit_waiting, self._memory:
            commit_waiting()
            if not self._closed:
                self._closed = True
                self.journal.close()

    def _draft(self, requests: Sequence[Reserve]) -> None:
        # Without the lock: streams and living blocks are looked up, and what has changed by then is
        # drafted anew in the turn.
        state = self._state
        if state is not None:
            with suppress(SageError):
                for request in requests:
                    drafted(request, state)

    def _commit_all(self, jobs: list[_Job], more: Callable[[], None]) -> list[Any]:
        ready = all(job.entries is not None for job in jobs)
        try:
            if ready and self._unsaved < self._snapshot_every:
                if self._write(jobs):
                    return [job.outcome for job in jobs]
                self._start_over(jobs, more)
            self._settle(jobs, more)
        except BaseException:
            # Memory may be ahead of the journal now, or behind: what waits was worked out on it
            # too, so it fails as well.
            with self._memory:
                more()
                self._unapplied = 0
                self._forget()
            raise
        return [job.outcome for job in jobs]

    def _write(self, jobs: list[_Job]) -> bool:
        """Make what was applied durable; False if another process wrote since."""
        count = sum([len(job.entries or ()) for job in jobs])
        if not count:
            # Nothing to write, but a refusal must not rest on what is no longer so.
            return self.journal.is_current()
        if not self.journal.append_next(joined_entries([job.text for job in jobs])):
            return False
        self._unsaved += count
        return True

    def _start_over(self, jobs: list[_Job], more: Callable[[], None]) -> None:
        """Another process was faster: read what it wrote, and have everybody worked out anew.

        Before the write lock is taken: whoever has much to read must not hold up the others.
        """
        if self.journal.is_current():
            # Nobody wrote, and yet our commit was not taken: what we know is gone from the journal.
            # `_settle` tells of it.
            return
        with self._memory:
            more()
            ahead = any(job.entries for job in jobs)
            for job in jobs:
                job.entries = None
            self._unapplied = len(jobs)
            self._shared_until = time.monotonic() + SHARED_SECONDS
            if self._state is None or ahead:
                self._restore()
            else:
                self._catch_up(self._state)

    def _settle(self, jobs: list[_Job], more: Callable[[], None]) -> None:
        """Everything that waits, worked out on what is in the journal, under the write lock.

        Memory is held only while it is worked on: callers go on handing in while we wait for the
        lock and for the disk.
        """
        self._require_open()
        self.journal.begin()
        with self._memory:
            more()
            current = self.journal.is_current()
            again = jobs
            if self._state is None or (not current and any(job.entries for job in jobs)):
                self._restore()
            elif not current:
                self._catch_up(self._state)
            else:
                again = [job for job in jobs if job.entries is None]
            assert self._state is not None
            if not current:
                self._shared_until = time.monotonic() + SHARED_SECONDS
            self._run(again, self._state)
            self._unapplied = 0
            # Nobody is applied ahead of one who waits unapplied, so the queue is the order in which
            # the state changed.
            count = sum(len(job.entries or ()) for job in jobs)
            body = joined_entries([job.text for job in jobs])
            self._unsaved += count
            if self._unsaved >= self._snapshot_every:
                if count and not self.journal.append_next(body):
                    raise JournalDamaged(
                        "HISTORY_CUT", "the newest commit is gone: nothing was added"
                    )
                self._save_snapshot(self._state)
                count = 0
        if count:
            self.journal.append_last(body)
        else:
            self.journal.commit()

    def _run(self, jobs: list[_Job], state: LedgerState) -> None:
        for job in jobs:
            try:
                job.run(state)
            except Exception as error:
                # A defect: the group fails, and those who did nothing wrong are told that asking
                # again is safe.
                raise JournalUnavailable(
                    "JOURNAL_UNAVAILABLE",
                    f"a command failed unexpectedly ({type(error).__name__}); nothing was written",
                ) from error

    def _up_to_date(self) -> LedgerState:
        if self._state is None:
            self._restore()
        assert self._state is not None
        if not self.journal.is_current():
            self._shared_until = time.monotonic() + SHARED_SECONDS
            self._catch_up(self._state)
        return self._state

    def _catch_up(self, state: LedgerState) -> None:
        try:
            self._unsaved += _fold(self.journal, state)
        except BaseException:
            self._forget()
            raise

    def _restore(self) -> None:
        self.journal.rewind()
        body = self.journal.newest_snapshot()
        state = load(body) if body is not None else LedgerState()
        self._unsaved = _fold(self.journal, state)
        self._state = state

    def _save_snapshot(self, state: LedgerState) -> None:
        if self._unsaved:
            self.journal.save_snapshot(dump(state))
            self._unsaved = 0

    def _forget(self) -> None:
        self._state = None
        self.journal.rollback()

    def _require_own_process(self) -> None:
        # Before any lock: a lock that was held while the process was forked is never released here.
        if self._generation != _generation:
            raise JournalUnavailable(
                "LEDGER_FORKED", "the ledger was opened by the parent process: open it again here"
            )

    def _require_open(self) -> None:
        if self._closed:
            raise JournalUnavailable("LEDGER_CLOSED", "the ledger was closed: open it again")


def _fold(journal: DurableJournal, state: LedgerState) -> int:
    """Fold every commit after the journal's head; return the number of entries."""
    count = 0
    for commit in journal.read():
        for entry in commit:
            state.evolve(entry)
        count += len(commit)
    return count
