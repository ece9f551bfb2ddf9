"""What a validator said of each state: those that were not shown to keep their target are versions
that nobody gets unless they ask for them by their number.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column; states that are there already were not tested."""
    op.add_column("states", sa.Column("verdict", _text(20), nullable=False, server_default=""))
