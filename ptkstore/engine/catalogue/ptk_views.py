"""PTKs and their states as people see them, from the rows of the metadata, and which state is
meant. Reasons: PTK_UNKNOWN, STATE_UNKNOWN.
"""

from __future__ import annotations

from ptklib.errors import Refused
from ptkstore.api.views import PtkView, StateError, StateView
from ptkstore.api.views.remedies import Remedy, known_remedies
from ptkstore.metadata import rows
from ptkstore.metadata.database.store import Transaction

__all__ = ["chosen_state", "ptk_view", "state_view"]


def ptk_view(row: rows.PtkRow, latest: rows.StateRow | None) -> PtkView:
    """A PTK and the number of its newest state."""
    suggestion = row.suggestion or {}
    words = tuple(suggestion.get("changes", ()))
    return PtkView(
        name=row.name,
        stream=row.stream,
        kind=row.kind,
        config=dict(row.config),
        config_version=row.config_version,
        target=row.target,
        train_every=row.train_every,
        over=row.over,
        epsilon=row.epsilon,
        status=row.status,
        reason=row.reason,
        latest_version=latest.version if latest is not None else None,
        nearest_target=suggestion.get("nearest_target"),
        changes=words,
        refining=bool(suggestion.get("refining", False)),
        remedies=known_remedies(map(Remedy.from_json, suggestion.get("remedies", ())), words),
    )


def state_view(name: str, row: rows.StateRow) -> StateView:
    """A state of the PTK of that name."""
    return StateView(
        name=name,
        version=row.version,
        digest=row.digest,
        window=row.window,
        epsilon=row.manifest["epsilon"],
        delta=row.manifest["delta"],
        samples=row.manifest["samples"],
        created_ms=row.created_ms,
        validation=row.verdict,
        validation_reason=(row.manifest.get("validation") or {}).get("reason", ""),
        error=None if row.manifest.get("error") is None else StateError(**row.manifest["error"]),
    )


def chosen_state(
    tx: Transaction, name: str, *, version: int | None, as_of_ms: int | None
) -> rows.StateRow:
    """The state of that version, else the newest as of a time, else the newest."""
    known = tx.newest.named(name)
    if version is not None:
        return tx.states.get(known.ptk.id, version)
    state = known.state if as_of_ms is None else tx.states.as_of(known.ptk.id, as_of_ms)
    if state is None and as_of_ms is None and tx.states.next_version(known.ptk.id) > 1:
        raise Refused(
            "STATE_NOT_SHOWN",
            f"no version of PTK {name!r} was shown to keep its target: ask for one by its number, "
            f"or see why: sage ptk versions {name}",
            ptk=name,
        )
    if state is None:
        raise Refused(
            "STATE_UNKNOWN", f"PTK {name!r} has no state yet: it trains when a window closes"
        )
    return state
