"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _text(longest: int) -> sa.types.TypeEngine[str]:
    return sa.String(longest).with_variant(sa.String(longest, collation="C"), "postgresql")


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "events",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("kind", _text(200), nullable=False),
        sa.Column("subject", _text(200), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "streams",
        sa.Column("name", _text(200), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name", name="pk_streams"),
    )
    op.create_table(
        "blocks",
        sa.Column("stream", _text(200), nullable=False),
        sa.Column("name", _text(200), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger(), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False),
        sa.Column("status", _text(20), nullable=False),
        sa.Column("dp_count", sa.BigInteger()),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"], name="fk_blocks_stream"),
        sa.PrimaryKeyConstraint("stream", "name", name="pk_blocks"),
    )
    op.create_index("ix_blocks_stream_start_ms_name", "blocks", ["stream", "start_ms", "name"])
    op.create_index("ix_blocks_stream_window", "blocks", ["stream", "window"])
    op.create_table(
        "cycles",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("stream", _text(200), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False),
        sa.Column("status", _text(200), nullable=False),
        sa.Column("body", sa.Text()),
        sa.Column("started_ms", sa.BigInteger()),
        sa.Column("finished_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"], name="fk_cycles_stream"),
        sa.PrimaryKeyConstraint("id", name="pk_cycles"),
        sa.UniqueConstraint("stream", "window", name="uq_cycles_stream_window"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "deliveries",
        sa.Column("subscriber", _text(2000), nullable=False),
        sa.Column("event", _ID, nullable=False),
        sa.Column("at_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["event"], ["events.id"], name="fk_deliveries_event"),
        sa.PrimaryKeyConstraint("subscriber", name="pk_deliveries"),
    )
    op.create_table(
        "plans",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("stream", _text(200), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False),
        sa.Column("status", _text(200), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"], name="fk_plans_stream"),
        sa.PrimaryKeyConstraint("id", name="pk_plans"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_plans_stream", "plans", ["stream"])
    op.create_table(
        "ptks",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("name", _text(200), nullable=False),
        sa.Column("stream", _text(200), nullable=False),
        sa.Column("kind", _text(200), nullable=False),
        sa.Column("config_version", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Double(), nullable=False),
        sa.Column("train_every", sa.BigInteger(), nullable=False),
        sa.Column("status", _text(20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("suggestion", sa.Text()),
        sa.Column("etag", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger()),
        sa.Column("updated_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"], name="fk_ptks_stream"),
        sa.PrimaryKeyConstraint("id", name="pk_ptks"),
        sa.UniqueConstraint("name", name="uq_ptks_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_ptks_stream", "ptks", ["stream"])
    op.create_table(
        "ptk_configs",
        sa.Column("ptk", _ID, autoincrement=False, nullable=False),
        sa.Column("config_version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["ptk"], ["ptks.id"], name="fk_ptk_configs_ptk"),
        sa.PrimaryKeyConstraint("ptk", "config_version", name="pk_ptk_configs"),
    )
    op.create_table(
        "states",
        sa.Column("ptk", _ID, autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cycle", _ID, nullable=False),
        sa.Column("digest", _text(64), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cycle"], ["cycles.id"], name="fk_states_cycle"),
        sa.ForeignKeyConstraint(["ptk"], ["ptks.id"], name="fk_states_ptk"),
        sa.PrimaryKeyConstraint("ptk", "version", name="pk_states"),
        sa.UniqueConstraint("ptk", "cycle", name="uq_states_ptk_cycle"),
    )
    op.create_table(
        "steps",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("cycle", _ID, nullable=False),
        sa.Column("step", _text(400), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["cycle"], ["cycles.id"], name="fk_steps_cycle"),
        sa.PrimaryKeyConstraint("id", name="pk_steps"),
        sa.UniqueConstraint("cycle", "step", name="uq_steps_cycle_step"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "subscriptions",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("ptk", _ID, nullable=False),
        sa.Column("endpoint", _text(2000), nullable=False),
        sa.ForeignKeyConstraint(["ptk"], ["ptks.id"], name="fk_subscriptions_ptk"),
        sa.PrimaryKeyConstraint("id", name="pk_subscriptions"),
        sa.UniqueConstraint("ptk", "endpoint", name="uq_subscriptions_ptk_endpoint"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "profiles",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("ptk", _ID, nullable=False),
        sa.Column("config_version", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Double(), nullable=False),
        sa.Column("levels", sa.Text(), nullable=False),
        sa.Column("samples", sa.Text(), nullable=False),
        sa.Column("source", _text(200), nullable=False),
        sa.Column("created_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["ptk", "config_version"],
            ["ptk_configs.ptk", "ptk_configs.config_version"],
            name="fk_profiles_ptk_config_version",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_profiles"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_profiles_ptk_config_version", "profiles", ["ptk", "config_version"])
