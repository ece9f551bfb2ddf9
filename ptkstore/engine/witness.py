"""What the store's directory knows of the ledger: its newest head, so that a ledger that was set back is noticed.

A ledger that is older than what was released would forget what was spent. Before the result of any step of a window is
written, the head that contains its charges lies in ``STORE/ledger.head``; a store whose ledger is older is not opened.
``STORE/restoring`` is there while a restore is under way, from its first change to its last.

A directory that goes back together with its ledger cannot notice it: whoever puts an old copy back must say so with
``sage restore``. Reasons: HISTORY_CUT, RESTORE_UNFINISHED.
"""

from __future__ import annotations

import json
from pathlib import Path

from ptklib.errors import JournalDamaged, Refused
from ptklib.ledger.canonical import canonical
from ptkstore.engine.home import Home
from ptkstore.ledger.chain import Head
from ptkstore.streams.vault import replace_durably, sync_directory

__all__ = ["begin_restoring", "end_restoring", "keep_head", "known_head", "require_newest"]

_HEAD = "ledger.head"
_RESTORING = "restoring"


def known_head(path: Path) -> Head | None:
    """The newest head that the directory knows; None where it knows of none."""
    try:
        body = json.loads((path / _HEAD).read_bytes())
        return Head(int(body["seq"]), bytes.fromhex(body["mac"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise JournalDamaged("HISTORY_CUT", f"{path / _HEAD} cannot be read: run `sage restore`") from None


def keep_head(home: Home) -> None:
    """Make the ledger's head known to the directory, durably, if it has moved."""
    head = home.ledger.head
    if head != known_head(home.path):
        replace_durably(home.path / _HEAD, canonical({"seq": head.seq, "mac": head.mac.hex()}))


def require_newest(home: Home) -> None:
    """Refuse a ledger that is older than the directory knows, and a store that is half restored."""
    if (home.path / _RESTORING).exists():
        raise Refused("RESTORE_UNFINISHED", "a restore was interrupted: run `sage restore` again before anything else")
    known, head = known_head(home.path), home.ledger.head
    if known is not None and (head.seq < known.seq or (head.seq == known.seq and head.mac != known.mac)):
        raise JournalDamaged(
            "HISTORY_CUT",
            f"the ledger ends at commit {head.seq}, and commit {known.seq} is known here: it was set back, and has forgotten "
            "what was spent. If an old copy was put back on purpose, run `sage restore`",
            found=head.seq,
            known=known.seq,
        )


def begin_restoring(path: Path) -> None:
    """From now on the store is not opened until the restore is done."""
    replace_durably(path / _RESTORING, b"")


def end_restoring(home: Home) -> None:
    """The restore is done: what the ledger says now is what counts."""
    keep_head(home)
    (home.path / _RESTORING).unlink(missing_ok=True)
    sync_directory(home.path)
