"""Who leads: the lease that the servers of one store hand on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "leases",
        sa.Column("name", _text(200), nullable=False),
        sa.Column("holder", _text(200), nullable=False),
        sa.Column("address", _text(2000), nullable=False),
        sa.Column("place", _text(200), nullable=False),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("lease_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
