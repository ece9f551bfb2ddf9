"""Over which windows the states of each PTK are: all of them, for those that are there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column; every state so far continues the one before it."""
    op.add_column("ptks", sa.Column("over", _text(40), nullable=False, server_default="all"))
