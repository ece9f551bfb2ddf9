"""What the metadata knows of the ledger: one row that is written with every result of a window."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table, empty: the first step of a window fills it."""
    op.create_table(
        "witness",
        sa.Column("name", _text(200), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_witness"),
    )
