"""The states of PTKs: which one is meant, and all of them.

Version 0 of a PTK is the best witness of its measured profile: a DP state that keeps the target.
Reasons: PTK_UNKNOWN, STATE_UNKNOWN, PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptklib.errors import Refused
from ptkstore.api.paging import PageRequest
from ptkstore.api.views import StateView
from ptkstore.engine.catalogue.ptk_views import chosen_state, state_view
from ptkstore.engine.parts import Parts
from ptkstore.engine.profiles.terms import witness
from ptkstore.metadata import rows
from ptkstore.metadata.database.store import Transaction

__all__ = ["StatePage", "chosen", "listed", "page_of", "require_digest", "witness_digest"]


@dataclass(frozen=True)
class StatePage:
    """A page of versions, oldest first, and the token of the next."""

    states: tuple[StateView, ...]
    next_page_token: str


def chosen(parts: Parts, name: str, *, version: int | None, as_of_ms: int | None) -> StateView:
    """The state of that version (1 and above), else the newest as of a time, else the newest."""
    with parts.metadata.read() as tx:
        return state_view(name, chosen_state(tx, name, version=version, as_of_ms=as_of_ms))


def witness_digest(parts: Parts, name: str) -> str:
    """The digest of version 0. Refused: STATE_UNKNOWN."""
    with parts.metadata.read() as tx:
        return witness(tx, tx.ptks.named(name))


def listed(parts: Parts, name: str) -> list[StateView]:
    """All versions of a PTK, oldest first."""
    with parts.metadata.read() as tx:
        return [state_view(name, row) for row in tx.states.list(tx.ptks.named(name).id)]


def page_of(parts: Parts, name: str, *, limit: int, page_token: str) -> StatePage:
    """Versions of a PTK, oldest first."""
    page = PageRequest(f"states {name}", limit, page_token)
    with parts.metadata.read() as tx:
        ptk = tx.ptks.named(name).id
        versions = tx.states.list(ptk, limit=page.size + 1, after=page.after)
    part, token = page.cut(versions, lambda row: row.version)
    return StatePage(tuple(state_view(name, row) for row in part), token)


def require_digest(parts: Parts, name: str, digest: str) -> None:
    """Refuse a digest that no version of the PTK has, version 0 included."""
    with parts.metadata.read() as tx:
        ptk = tx.ptks.named(name)
        known = tx.states.has_digest(ptk.id, digest) or digest == _witness(tx, ptk)
    if not known:
        raise Refused("STATE_UNKNOWN", f"PTK {name!r} has no state with this digest")


def _witness(tx: Transaction, ptk: rows.PtkRow) -> str | None:
    try:
        return witness(tx, ptk)
    except Refused:
        return None
