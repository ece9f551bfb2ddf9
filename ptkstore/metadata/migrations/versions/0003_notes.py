"""A note on a request: what it sets out to do, for changes that lie outside the metadata."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column."""
    op.add_column("requests", sa.Column("note", sa.Text()))
