"""Servers that share a store choose a leader, and another one when it is gone.

A server that wants to lead takes the lock of the store and then the lease. It renews the lease
three times as often as it must; when it could not for three quarters of it, it begins no more steps
of windows (`require_lease`), and others wait for the whole of it. Nobody compares clocks: the
leader counts from before its renewal was sent, the others from when they last saw it beat, each by
a clock that never goes back.

Where the leader ran on the same machine and meant the same lock file, having the lock proves that
it is gone, and the next one leads at once. Elsewhere the lease has to run out as well. A leader
that stands still keeps the lock, and nobody leads until it goes on or dies: late, and never two at
once. Its `Watchdog` sees to it that it dies within a stated time.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

import structlog

from ptklib.encoding.error_place import kind_of
from ptklib.errors import SageError
from ptkstore.engine.leader import LeadLost, StoreLock
from ptkstore.engine.leadership.watchdog import Watchdog
from ptkstore.engine.parts import Parts
from ptkstore.metadata.database.store import Transaction
from ptkstore.metadata.work.leases import LeaseRow

__all__ = ["LEASE", "Election"]

LEASE = "lead"
_LONGEST_POLL_SECONDS = 0.5
# How much of the lease its holder trusts.
_TRUSTED = 0.75
# How long one that has handed the lead over leaves it to others.
_REST_SECONDS = 2.0
_LOG = structlog.get_logger("sage.election")


class Election:
    """One server's part in it; a `Lead` of the engine.

    ``gained`` and ``lost`` begin and end what only the leader does.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        address: str,
        lease_seconds: float,
        gained: Callable[[], None],
        lost: Callable[[], None],
        watchdog: Watchdog | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing happens before `start`.

        With a ``watchdog`` this process is ended when it stands still as the leader.
        """
        self._parts = parts
        self._address = address
        self._lease_seconds = lease_seconds
        self._gained = gained
        self._lost = lost
        self._watchdog = watchdog
        self._clock = clock
        self._me = secrets.token_hex(8)
        self._lock = StoreLock(parts.path)
        self._place = self._lock.place
        self._term: int | None = None
        self._trusted_until = 0.0
        self._seen: tuple[LeaseRow | None, float] | None = None
        self._beginning: threading.Thread | None = None
        self._changed = threading.Condition()
        self._ready = False
        self._losing = False
        self._handing_over = False
        self._rests_until = 0.0
        # False keeps this server from leading: it could not do what a leader does.
        self.able: Callable[[], bool] = lambda: True
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sage-election", daemon=True)

    @property
    def ready(self) -> bool:
        """True when this server leads and has taken everything up."""
        return self._ready

    def start(self) -> None:
        """Lead at once if nobody does, and take part from now on."""
        self.step()
        if self._beginning is not None:
            self._beginning.join()
        self._thread.start()

    def stop(self) -> None:
        """Give the lead up and take part no more. Safe to call twice."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._term is not None:
            self._give_back(self._term)

    def _give_back(self, term: int) -> None:
        self._lose()
        try:
            with self._parts.metadata.write() as tx:
                tx.leases.release(LEASE, self._me, term)
        except SageError as error:
            # It runs out by itself.
            _LOG.warning("not given back", reason=error.reason)

    def hand_over(self) -> None:
        """Give the lead up at the next `step`, and leave it to others for a moment.

        Nothing happens where we do not lead.
        """
        self._handing_over = self._term is not None

    def leader(self) -> str | None:
        """Where the leader is reached, if there is one that is not this server."""
        with self._parts.metadata.read() as tx:
            row = tx.leases.get(LEASE)
        return (
            (row.address or None) if row is not None and row.holder not in ("", self._me) else None
        )

    def wait(self, seconds: float) -> bool:
        """Until this server is `ready`, or so long."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ready, seconds)

    def require_lock(self) -> None:
        """LEAD_LOST unless the lock is ours."""
        if self._term is None:
            raise LeadLost("LEAD_LOST", "this server does not lead: ask again")

    def require_lease(self) -> None:
        """LEAD_LOST unless the lease is ours for a while yet."""
        if self._term is None or self._clock() >= self._trusted_until:
            raise LeadLost(
                "LEAD_LOST", "this server does not lead, or could not renew its lease: ask again"
            )

    def fence(self, tx: Transaction) -> None:
        """LEAD_LOST unless the lease is ours in this very transaction."""
        row = tx.leases.get(LEASE)
        if row is None or self._term is None or (row.holder, row.term) != (self._me, self._term):
            raise LeadLost("LEAD_LOST", "another server leads by now: nothing was written")

    def step(self) -> None:
        """Renew the lease, or see whether there is one to be had."""
        if self._term is None:
            if self.able() and self._clock() >= self._rests_until:
                self._contend()
        elif self._handing_over:
            self._handing_over = False
            _LOG.warning("hands over", term=self._term)
            self._give_back(self._term)
            self._rests_until = self._clock() + _REST_SECONDS
        else:
            self._renew(self._term)

    def _run(self) -> None:
        while not self._stopping.wait(min(_LONGEST_POLL_SECONDS, self._lease_seconds / 4)):
            try:
                self.step()
            except Exception as error:  # not only ours: a directory may be away, and without this thread nobody leads
                _LOG.warning("waiting", reason=kind_of(error))

    def _renew(self, term: int) -> None:
        before = self._clock()
        if before < self._trusted_until - self._lease_seconds * (_TRUSTED - 1 / 3):
            return
        with self._parts.metadata.write() as tx:
            kept = tx.leases.renew(LEASE, self._me, term)
        if kept:
            self._trusted_until = before + self._lease_seconds * _TRUSTED
        else:
            _LOG.warning("lost", term=term)
            self._lose()

    def _contend(self) -> None:
        with self._parts.metadata.read() as tx:
            row = tx.leases.get(LEASE)
        now = self._clock()
        if self._seen is None or self._seen[0] != row:
            self._seen = (row, now)
        silent = now - self._seen[1]
        taken = row is not None and bool(row.holder)
        if taken and row is not None and row.place != self._place and silent * 1000 < row.lease_ms:
            return
        if not self._lock.take():
            return
        try:
            before = self._clock()
            with self._parts.metadata.write() as tx:
                mine = tx.leases.take(
                    LEASE,
                    row,
                    holder=self._me,
                    address=self._address,
                    place=self._place,
                    lease_ms=int(self._lease_seconds * 1000),
                )
        except BaseException:
            self._lock.release()
            raise
        if mine is None:
            self._lock.release()
            return
        self._trusted_until = before + self._lease_seconds * _TRUSTED
        self._term = mine.term
        if self._watchdog is not None:
            self._watchdog.start()
        _LOG.info("leads", term=mine.term, address=self._address)
        # The lease is renewed while streams are being recovered.
        self._beginning = threading.Thread(target=self._begin, name="sage-lead", daemon=True)
        self._beginning.start()

    def _begin(self) -> None:
        for stream in sorted(self._parts.specs):
            try:
                self._parts.writer(stream)
            except Exception as error:
                # It is tried again by whoever wants to write; the other streams are no worse for
                # it.
                _LOG.error("stream", stream=stream, reason=kind_of(error))
        while not self._stopping.is_set() and not self._losing:
            try:
                self._gained()
            except Exception as error:
                # Not only ours: a server that has the lease and never begins would keep everybody
                # else from leading.
                _LOG.warning("waiting", reason=kind_of(error))
                self._stopping.wait(_LONGEST_POLL_SECONDS)
                continue
            with self._changed:
                self._ready = True
                self._changed.notify_all()
            return

    def _lose(self) -> None:
        """End what the leader does, then let its lock go: the next one begins when this is over."""
        # A window that is under way begins no further step, and what could not be begun is not
        # tried any more.
        self._trusted_until = 0.0
        self._losing = True
        if self._beginning is not None:
            self._beginning.join()
            self._beginning = None
        with self._changed:
            self._ready = False
        self._lost()
        self._term = None
        self._seen = None
        self._parts.close_writers()
        if self._watchdog is not None:
            self._watchdog.stop()
        self._lock.release()
        self._losing = False
