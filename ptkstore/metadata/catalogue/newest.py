"""A PTK with its newest state in one query that is built once: what is asked for most often."""

from __future__ import annotations

from dataclasses import dataclass, fields

import sqlalchemy as sa

from ptklib.errors import Refused
from ptkstore.metadata.catalogue.states import NOT_SHOWN
from ptkstore.metadata.rows import PtkRow, StateRow
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import ptk_configs, ptks, states

__all__ = ["Newest", "PtkAndState"]

_STATE = "state_"
_PTK_FIELDS = tuple(field.name for field in fields(PtkRow))
_STATE_FIELDS = tuple(field.name for field in fields(StateRow))
_others = states.alias()
_highest = (
    sa.select(sa.func.max(_others.c.version))
    .where(_others.c.ptk == ptks.c.id, _others.c.verdict != NOT_SHOWN)
    .scalar_subquery()
)
_QUERY = (
    sa.select(
        ptks, ptk_configs.c.config, *(states.c[name].label(_STATE + name) for name in _STATE_FIELDS)
    )
    .join(
        ptk_configs,
        sa.and_(
            ptk_configs.c.ptk == ptks.c.id, ptk_configs.c.config_version == ptks.c.config_version
        ),
    )
    .outerjoin(states, sa.and_(states.c.ptk == ptks.c.id, states.c.version == _highest))
    .where(ptks.c.name == sa.bindparam("wanted"))
)


@dataclass(frozen=True, slots=True)
class PtkAndState:
    """A PTK and its newest state that stands, or None before the first."""

    ptk: PtkRow
    state: StateRow | None


class Newest:
    """PTKs with their newest states."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def named(self, name: str) -> PtkAndState:
        """The PTK of that name, or PTK_UNKNOWN."""
        row = self._session.bound(_QUERY, wanted=name)
        if row is None:
            raise Refused("PTK_UNKNOWN", f"there is no PTK {name!r}: register it first", ptk=name)
        state = None
        if row[_STATE + "version"] is not None:
            state = StateRow(**{field: row[_STATE + field] for field in _STATE_FIELDS})
        return PtkAndState(PtkRow.of({field: row[field] for field in _PTK_FIELDS}), state)
