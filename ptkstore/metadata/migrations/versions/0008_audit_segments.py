"""The audit log counts what repeats, and lets go of its oldest entries once a segment holds
them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")

# What a segment holds may be deleted, and nothing else. A segment ends with an entry that is there,
# and is for ever.
_SQLITE = (
    "DROP TRIGGER IF EXISTS audit_no_DELETE",
    """
CREATE TRIGGER audit_no_DELETE BEFORE DELETE ON audit
WHEN OLD.id > (SELECT COALESCE(MAX(id), 0) FROM audit_segments)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
""",
    """
CREATE TRIGGER audit_segments_end BEFORE INSERT ON audit_segments
WHEN NOT EXISTS (SELECT 1 FROM audit WHERE id = NEW.id AND digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'a segment ends with an entry of the audit log'); END
""",
    """
CREATE TRIGGER audit_segments_no_UPDATE BEFORE UPDATE ON audit_segments
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
""",
    """
CREATE TRIGGER audit_segments_no_DELETE BEFORE DELETE ON audit_segments
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
""",
)
_POSTGRESQL = """
DROP TRIGGER audit_append_only ON audit;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION sage_append_only();
CREATE FUNCTION sage_audit_release() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  IF OLD.id > (SELECT COALESCE(MAX(id), 0) FROM audit_segments) THEN
    RAISE EXCEPTION 'the audit log is append-only';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER audit_release BEFORE DELETE ON audit
FOR EACH ROW EXECUTE FUNCTION sage_audit_release();
CREATE FUNCTION sage_audit_segment() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM audit WHERE id = NEW.id AND digest = NEW.digest) THEN
    RAISE EXCEPTION 'a segment ends with an entry of the audit log';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER audit_segments_end BEFORE INSERT ON audit_segments
FOR EACH ROW EXECUTE FUNCTION sage_audit_segment();
CREATE TRIGGER audit_segments_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_segments
FOR EACH STATEMENT EXECUTE FUNCTION sage_append_only();
"""


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column, the table and its triggers."""
    op.add_column("audit", sa.Column("times", sa.BigInteger(), nullable=False, server_default="1"))
    op.create_table(
        "audit_segments",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("digest", _text(64), nullable=False),
        sa.Column("file", _text(200), nullable=False),
        sa.Column("file_sha256", _text(64), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_segments"),
    )
    if op.get_bind().dialect.name == "sqlite":
        for statement in _SQLITE:
            op.execute(statement)
    else:
        op.execute(_POSTGRESQL)
