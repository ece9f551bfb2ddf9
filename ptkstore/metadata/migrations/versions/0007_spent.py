"""Who spent what over all time, added up beside the index of charges.

The index is made anew, which adds everything up.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table, and forget the index."""
    op.create_table(
        "spent",
        sa.Column("stream", _text(200), nullable=False),
        sa.Column("who", _text(200), nullable=False),
        sa.Column("purpose", _text(20), nullable=False),
        sa.Column("took_nano", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("charges", sa.BigInteger(), nullable=False),
        sa.Column("area", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "who", "purpose", "took_nano", name="pk_spent"),
    )
    op.execute(sa.table("charges").delete())
    op.execute(sa.table("charges_head").delete())
