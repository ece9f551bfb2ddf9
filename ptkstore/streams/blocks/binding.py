"""Which ledger the blocks of a store are charged in: ``STORE/vault.ledger`` holds its identity.

A grant of another ledger is a receipt for nothing: whoever makes a second book for the same blocks
has charged nothing that the first one knows of. So a vault is bound to one ledger when the store is
made (an older one when it is next opened), and a slice opens with that ledger alone. Only a restore
binds anew, after it has destroyed all that was held. What is written is no secret: nobody can make
a ledger of that identity without its key. Reason: LEDGER_FOREIGN.
"""

from __future__ import annotations

import hmac
from pathlib import Path

from ptklib.errors import GrantRefused
from ptkstore.ledger import Ledger
from ptkstore.streams.blocks.vault import replace_durably

__all__ = ["bind", "bind_anew", "is_bound", "require_bound"]

_FILE = "vault.ledger"


def bind(store: Path, ledger: Ledger) -> None:
    """Bind the blocks of a store to this ledger, for good; LEDGER_FOREIGN where they are bound to
    another.
    """
    if is_bound(store):
        require_bound(store, ledger)
    else:
        bind_anew(store, ledger)


def is_bound(store: Path) -> bool:
    """True where the blocks of a store are bound to some ledger."""
    return (store / _FILE).exists()


def bind_anew(store: Path, ledger: Ledger) -> None:
    """Bind to this ledger, whatever was before: for a restore, when no raw data is left."""
    replace_durably(store / _FILE, ledger.identity.encode())


def require_bound(store: Path, ledger: Ledger) -> None:
    """Refuse a ledger that the blocks of the store are not bound to."""
    try:
        identity = (store / _FILE).read_bytes()
    except FileNotFoundError:
        identity = b""
    if not hmac.compare_digest(identity, ledger.identity.encode()):
        raise GrantRefused(
            "LEDGER_FOREIGN",
            f"the blocks in {store} are not charged in this ledger; nothing was used. Give the key "
            "file and the database that "
            "belong to this store; if the ledger was made anew, run `sage restore`",
        )
