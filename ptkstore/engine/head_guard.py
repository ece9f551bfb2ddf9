"""Witnesses: what several parts of a store know of each other, so that one that was set back is
noticed by the others.

A ledger that is older than what was released would forget what was spent. So before anything that a
window comes to is visible, the head that contains its charges is known in four places, in this
order:

::

    directory   STORE/ledger.head
    raw data    STORE/streams/.ledger.head
    lake        witness/IDENTITY of the lake, in a directory or a bucket
    metadata    the row of the table ``witness``, in the very transaction that writes the result

Each says how far the ledger, the metadata and the streams had come (`kept`). There are two ways for
results, and both keep the head first: `StepJournal.writing` (metadata) and `GuardedLake.put`
(states). So the charge of every state that is in the lake, one that a crash left without a row too,
is in a ledger that contains what the lake knows; a ledger without it was set back.

A store is not opened where the ledger does not contain a head that is known somewhere
(HISTORY_CUT), the metadata is older than known (METADATA_SET_BACK), or a witness is gone that was
there (WITNESS_MISSING): it might have known more than the others. A witness that is older than one
which was written after it does no harm; the doctor names it, and the next step renews it.
``STORE/restoring`` is there while a restore is under way, from its first change to its last.

Parts that go back all together cannot notice it: whoever puts an old copy back must say so with
``sage restore``. Reasons: HISTORY_CUT, METADATA_SET_BACK, WITNESS_MISSING, WITNESS_DAMAGED,
LEDGER_FOREIGN, RESTORE_UNFINISHED.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ptklib.errors import JournalDamaged, Refused
from ptkstore.engine.kept import Kept, read_kept, write_kept
from ptkstore.lake import Lake
from ptkstore.ledger import Ledger
from ptkstore.ledger.journals.chain import Head
from ptkstore.metadata import Metadata, MetadataDamaged, Transaction
from ptkstore.private_files import sync_directory
from ptkstore.streams.blocks.binding import is_bound
from ptkstore.streams.blocks.vault import replace_durably

__all__ = ["PLACES", "HeadGuard", "begin_restoring", "known_head"]

# In the order in which they are written: what a crash leaves is newer in the first ones.
PLACES = ("directory", "raw data", "lake", "metadata")
_FILES = {"directory": "ledger.head", "raw data": "streams/.ledger.head"}
_LOCK = "ledger.head.lock"
_RESTORING = "restoring"


def known_head(path: Path) -> Head | None:
    """The newest head that the directory knows; None where it knows of none."""
    try:
        body = json.loads((path / _FILES["directory"]).read_bytes())
        return Head(int(body["seq"]), bytes.fromhex(body["mac"]))
    except FileNotFoundError:
        return None


def begin_restoring(path: Path) -> None:
    """From now on the store is not opened until the restore is done."""
    replace_durably(path / _RESTORING, b"")


class HeadGuard:
    """Keeps the witnesses of one store. Thread-safe; several servers may share the store."""

    def __init__(
        self,
        path: Path,
        ledger: Ledger,
        metadata: Metadata,
        lake: Lake,
        sealed: Callable[[], Mapping[str, int]],
    ) -> None:
        """Nothing is looked at yet.

        ``sealed`` tells how far the streams are sealed that are open here.
        """
        self._path = path
        self._ledger = ledger
        self._metadata = metadata
        self._lake = lake
        self._sealed = sealed
        self._kept: Kept | None = None
        self._turn = threading.Lock()

    def keep(self) -> Kept:
        """Make the ledger's head known outside of it, durably, if it has moved; what `put` then
        writes. Never goes back.
        """
        head, sealed = self._ledger.head, self._sealed()
        with self._turn:
            kept = self._kept
            if (
                kept is not None
                and kept.head.seq >= head.seq
                and kept.places == set(PLACES)
                and all(kept.sealed.get(name, span - 1) >= span for name, span in sealed.items())
            ):
                return kept
            with self._locked():
                self._kept = self._fresh(head, sealed)
                self._write(self._kept)
            return self._kept

    def put(self, tx: Transaction, kept: Kept) -> None:
        """The part of the metadata, in the transaction of a result: one step more."""
        tx.witness.put(write_kept(kept, self._ledger).decode())

    def kept_text(self) -> str:
        """`keep`, as the metadata get it in the transaction of a result."""
        return write_kept(self.keep(), self._ledger).decode()

    def find(self) -> dict[str, Kept]:
        """All witnesses there are, by place. Refused: WITNESS_DAMAGED, LEDGER_FOREIGN."""
        witnesses: dict[str, Kept] = {}
        # Last ones first: what is written meanwhile makes the first ones newer, never older.
        for place in reversed(PLACES):
            data = self._read(place)
            if data is not None:
                witnesses[place] = read_kept(data, self._ledger, place)
        return witnesses

    def require_newest(self) -> None:
        """Refuse a store of which a part was set back, or that is half restored."""
        if (self._path / _RESTORING).exists():
            raise Refused(
                "RESTORE_UNFINISHED",
                "a restore was interrupted: run `sage restore` again before anything else",
            )
        witnesses = self.find()
        self._require_all(witnesses, new=self._is_new())
        for place, kept in witnesses.items():
            self._require_head(place, kept.head)
        known, number = max((kept.number for kept in witnesses.values()), default=0), self._number()
        if number < known:
            raise MetadataDamaged(
                "METADATA_SET_BACK",
                f"the metadata has {number} steps of windows, and {known} are known elsewhere: it "
                "was set back. If an old copy "
                "was put back on purpose, run `sage restore`",
            )

    def join(self) -> None:
        """Let a new directory of a store that lives elsewhere (another server, which reads) know
        what the others know.
        """
        witnesses = self.find()
        if any(kept.whole for kept in witnesses.values()) and "directory" not in witnesses:
            newest = max(witnesses.values(), key=lambda kept: kept.head.seq)
            with self._turn, self._locked():
                self._write_files(write_kept(newest, self._ledger))

    def sealed_before(self, stream: str) -> int | None:
        """How far a stream is known to be sealed; None where nobody knows of it."""
        return max(
            (kept.sealed[stream] for kept in self.find().values() if stream in kept.sealed),
            default=None,
        )

    def end_restoring(self, sealed: Mapping[str, int]) -> None:
        """The restore is done: what the ledger and the streams say now is what counts, older or
        not.
        """
        before = self._number()
        with self._turn, self._locked():
            # Twice, as ever: the second says that all places have the first.
            for places in (frozenset[str](), frozenset(PLACES)):
                self._kept = Kept(
                    head=self._ledger.head, number=before, sealed=dict(sealed), places=places
                )
                self._write(self._kept)
                with self._metadata.write() as tx:
                    self.put(tx, self._kept)
        (self._path / _RESTORING).unlink(missing_ok=True)
        sync_directory(self._path)

    def _fresh(self, head: Head, sealed: Mapping[str, int]) -> Kept:
        """What to write now: never less than is known, for another server may have been faster."""
        witnesses = self.find()
        heads = [head, *(kept.head for kept in witnesses.values())]
        joined = dict(sealed)
        for name, span in (item for kept in witnesses.values() for item in kept.sealed.items()):
            joined[name] = max(span, joined.get(name, span))
        return Kept(
            head=max(heads, key=lambda known: known.seq),
            number=self._number(),
            sealed=joined,
            # A file of an earlier release is no place yet.
            places=frozenset(place for place, kept in witnesses.items() if kept.whole),
        )

    def _is_new(self) -> bool:
        """True for a directory that has nothing of the store yet."""
        return not is_bound(self._path) and not any(
            (self._path / name).exists() for name in ("streams", "keys")
        )

    def _require_all(self, witnesses: dict[str, Kept], *, new: bool) -> None:
        whole = {place for place, kept in witnesses.items() if kept.whole}
        known = frozenset[str]().union(*(kept.places for kept in witnesses.values()))
        # Raw data that is gone is told by whoever wants to write there: what is in the lake can be
        # read without it.
        missing = [place for place in PLACES if place in known - whole and place != "raw data"]
        if new:
            missing = [place for place in missing if place != "directory"]
        elif whole and not is_bound(self._path):
            missing.append("vault")
        if missing:
            raise JournalDamaged(
                "WITNESS_MISSING",
                f"what the {missing[0]} knew of the ledger is gone, and it may have known more "
                "than the others: put it back as "
                "it was (a lake is moved with its folder `witness`), or run `sage restore`",
                place=missing[0],
            )

    def _require_head(self, place: str, known: Head) -> None:
        if known == self._ledger.genesis or any(
            commit.mac == known.mac for commit in self._ledger.commits([known.seq])
        ):
            return
        last = self._ledger.head.seq
        raise JournalDamaged(
            "HISTORY_CUT",
            f"the ledger ends at commit {last}, and the {place} knows a commit {known.seq} that "
            "it does not contain: it was "
            "set back, and has forgotten what was spent. If an old copy was put back on purpose, "
            "run `sage restore`",
            found=last,
            known=known.seq,
            place=place,
        )

    def _number(self) -> int:
        with self._metadata.read() as tx:
            return tx.witness.number()

    def _read(self, place: str) -> bytes | None:
        if place == "lake":
            return self._lake.get_witness(self._ledger.identity)
        if place == "metadata":
            with self._metadata.read() as tx:
                body = tx.witness.body()
            return None if body is None else body.encode()
        try:
            return (self._path / _FILES[place]).read_bytes()
        except FileNotFoundError:
            return None

    def _write(self, kept: Kept) -> None:
        """Everywhere but in the metadata."""
        data = write_kept(kept, self._ledger)
        self._write_files(data)
        self._lake.put_witness(self._ledger.identity, data)

    def _write_files(self, data: bytes) -> None:
        for name in _FILES.values():
            (self._path / name).parent.mkdir(mode=0o700, exist_ok=True)
            replace_durably(self._path / name, data)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time over all processes: to look and then to write must be one."""
        descriptor = os.open(self._path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
