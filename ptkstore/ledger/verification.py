"""Everything that can be checked of a journal: replay it from its first commit and believe nothing.

Reasons (JournalDamaged): CHAIN_BROKEN, SNAPSHOT_INVALID, REPLAY_DIFFERS, POLICY_EXCEEDED,
HISTORY_CUT.
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

import numpy as np

from ptklib.errors import JournalDamaged
from ptklib.ledger.snapshot import digest, dump
from ptklib.ledger.state import Charge, Entry, LedgerState
from ptkstore.ledger.journals.chain import Head
from ptkstore.ledger.journals.protocol import DurableJournal

__all__ = ["VerifiedLedger", "verify_journal"]


class VerifiedLedger(NamedTuple):
    """What was found in order."""

    commits: int
    entries: int
    snapshots: int
    head: Head
    digest: str


def verify_journal(
    journal: DurableJournal, state: LedgerState, known: Head | None
) -> VerifiedLedger:
    """Check the chain, every snapshot, every charge against the policy, and the replay against
    ``state``.

    ``known`` is a head that was kept elsewhere: the journal must still contain it. The caller holds
    the journal still.
    """
    snapshots = journal.snapshots()
    replayed = LedgerState()
    head = journal.head
    seen = known is None or known == journal.genesis
    checked = entries = 0
    with closing(journal.replay()) as commits:
        for commit in commits:
            for entry in commit:
                replayed.evolve(entry)
                entries += 1
                if entry["kind"] == "reserve":
                    _check_charge(replayed, entry)
            seen = seen or journal.head == known
            body = snapshots.get(journal.head.seq)
            if body is not None:
                checked += 1
                _require(
                    body == dump(replayed), "SNAPSHOT_INVALID", "a snapshot differs from the replay"
                )
    live = digest(state)
    _require(
        seen, "HISTORY_CUT", "the journal does not contain the known head: it was cut or set back"
    )
    _require(
        digest(replayed) == live, "REPLAY_DIFFERS", "the replay differs from the state in memory"
    )
    _require(checked == len(snapshots), "SNAPSHOT_INVALID", "a snapshot belongs to no commit")
    return VerifiedLedger(head.seq, entries, len(snapshots), head, live)


def _check_charge(state: LedgerState, entry: Entry) -> None:
    """After a reserve entry, every block it covers must still be within the stream's policy at all
    its points.
    """
    stream = state.streams[entry["stream"]]
    nothing = np.zeros(stream.filter.width, dtype=np.int64)
    for block in state.blocks_of(Charge.from_json(entry)):
        _require(
            bool(stream.filter.admits(block.loss.rows, nothing).all()),
            "POLICY_EXCEEDED",
            f"charge {entry['charge']} took block {block.name!r} of stream {stream.name!r} beyond "
            "its policy",
        )


def _require(holds: bool, reason: str, message: str) -> None:
    if not holds:
        raise JournalDamaged(reason, message)
