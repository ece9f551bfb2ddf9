"""What pages are read by: where the ledger's entries about a stream lie, and the events about a
subject.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables and the index."""
    op.create_table(
        "charges",
        sa.Column("stream", _text(200), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("kind", _text(20), nullable=False),
        sa.Column("charge", sa.BigInteger()),
        sa.Column("key", _text(200), nullable=False),
        sa.PrimaryKeyConstraint("stream", "number", name="pk_charges"),
    )
    op.create_index("ix_charges_charge", "charges", ["charge"])
    op.create_table(
        "charges_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("mac", _text(64), nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_charges_head"),
    )
    op.create_index("ix_events_subject_id", "events", ["subject", "id"])
