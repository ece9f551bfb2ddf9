"""Times of work are on the grid of whole minutes, those that were written before as well: see
`ptkstore.api.times`.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_GRAIN_MS = 60_000
_TIMES = {
    "streams": ("created_ms",),
    "ptks": ("created_ms", "updated_ms"),
    "profiles": ("created_ms",),
    "plans": ("created_ms",),
    "cycles": ("started_ms", "finished_ms"),
    "steps": ("at_ms",),
    "states": ("created_ms",),
    "events": ("at_ms",),
    "operations": ("created_ms", "ended_ms"),
}


def upgrade() -> None:
    """Round them up."""
    for table, names in _TIMES.items():
        for name in names:
            exact = sa.column(name, sa.BigInteger)
            coarse = (exact + (_GRAIN_MS - 1)) // _GRAIN_MS * _GRAIN_MS
            op.execute(sa.table(table, exact).update().values({name: coarse}))
    profiles = sa.table("profiles", sa.column("id", sa.BigInteger), sa.column("samples", sa.Text))
    connection = op.get_bind()
    for number, text in connection.execute(sa.select(profiles.c.id, profiles.c.samples)).all():
        body = json.loads(text)
        times = {
            name: -(-body[name] // _GRAIN_MS) * _GRAIN_MS
            for name in ("made_ms", "renew_ms")
            if body.get(name)
        }
        if times:
            values = {"samples": json.dumps(body | times, sort_keys=True, separators=(",", ":"))}
            connection.execute(profiles.update().where(profiles.c.id == number).values(**values))
