"""The epsilon of PTKs that have no target: none, for those that are there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column; every PTK so far has a target."""
    op.add_column("ptks", sa.Column("epsilon", _text(80)))
