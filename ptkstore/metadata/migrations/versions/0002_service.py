"""What the service keeps: operations, answered requests, notifications, tokens and the audit
log.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")

# The audit log only grows, whoever writes to the database.
_SQLITE = """
CREATE TRIGGER audit_no_{what} BEFORE {what} ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
"""
_POSTGRESQL = """
CREATE FUNCTION sage_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION sage_append_only();
"""


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "operations",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("kind", _text(200), nullable=False),
        sa.Column("stream", _text(200), nullable=False),
        sa.Column("until_ms", sa.BigInteger()),
        sa.Column("windows", sa.Text(), nullable=False),
        sa.Column("status", _text(20), nullable=False),
        sa.Column("progress", sa.Text(), nullable=False),
        sa.Column("reason", _text(200), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger()),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"], name="fk_operations_stream"),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_operations_stream", "operations", ["stream"])
    op.create_index("ix_operations_status", "operations", ["status"])
    op.create_table(
        "requests",
        sa.Column("who", _text(200), nullable=False),
        sa.Column("id", _text(200), nullable=False),
        sa.Column("method", _text(200), nullable=False),
        sa.Column("digest", _text(64), nullable=False),
        sa.Column("answer", sa.Text()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("who", "id", name="pk_requests"),
    )
    op.create_index("ix_requests_created_ms", "requests", ["created_ms"])
    op.create_table(
        "tokens",
        sa.Column("id", _text(16), nullable=False),
        sa.Column("name", _text(200), nullable=False),
        sa.Column("secret_sha256", _text(64), nullable=False),
        sa.Column("roles", sa.Text(), nullable=False),
        sa.Column("streams", sa.Text(), nullable=False),
        sa.Column("ptks", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger()),
        sa.Column("expires_ms", sa.BigInteger()),
        sa.Column("revoked_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("name", name="uq_tokens_name"),
    )
    op.create_table(
        "audit",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("who", _text(200), nullable=False),
        sa.Column("what", _text(200), nullable=False),
        sa.Column("subject", _text(200), nullable=False),
        sa.Column("outcome", _text(200), nullable=False),
        sa.Column("digest", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "marks",
        sa.Column("subscription", _ID, autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["subscription"], ["subscriptions.id"], name="fk_marks_subscription"
        ),
        sa.PrimaryKeyConstraint("subscription", name="pk_marks"),
    )
    op.create_table(
        "notifications",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("subscription", _ID, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("status", _text(20), nullable=False),
        sa.Column("reason", _text(200), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["subscription"], ["subscriptions.id"], name="fk_notifications_subscription"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
        sa.UniqueConstraint(
            "subscription", "version", name="uq_notifications_subscription_version"
        ),
        sqlite_autoincrement=True,
    )
    if op.get_bind().dialect.name == "sqlite":
        for what in ("UPDATE", "DELETE"):
            op.execute(_SQLITE.format(what=what))
    else:
        op.execute(_POSTGRESQL)
