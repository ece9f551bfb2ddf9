"""The tables as the store code sees them. The migrations make them; a test holds the two equal."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from ptklib.ledger.slices import MAX_NAME
from ptkstore.metadata.checks import MAX_ENDPOINT

__all__ = [
    "METADATA",
    "audit",
    "audit_segments",
    "blocks",
    "charges",
    "charges_head",
    "cycles",
    "deliveries",
    "events",
    "leases",
    "marks",
    "notifications",
    "operations",
    "plans",
    "profiles",
    "ptk_configs",
    "ptks",
    "requests",
    "spent",
    "states",
    "steps",
    "streams",
    "subscriptions",
    "tokens",
    "witness",
]


class _JsonText(TypeDecorator[Any]):
    """Canonical JSON text in (see `checks.check_json`), a Python value out."""

    impl = Text
    cache_ok = True

    def process_result_value(self, value: Any, _dialect: Any) -> Any:
        """Decode."""
        return None if value is None else json.loads(value)


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _text(longest: int) -> TypeEngine[str]:
    """Text that is compared and sorted by code points on every database."""
    return String(longest).with_variant(String(longest, collation="C"), "postgresql")


_NAME = _text(MAX_NAME)
# SQLite gives out row numbers only for INTEGER.
_ID = BigInteger().with_variant(Integer, "sqlite")


def _id() -> Column[int]:
    return Column("id", _ID, primary_key=True, autoincrement=True)


def _stream() -> Column[str]:
    return Column("stream", _NAME, ForeignKey("streams.name"), nullable=False)


def _ptk() -> Column[int]:
    return Column("ptk", _ID, ForeignKey("ptks.id"), nullable=False)


streams = Table(
    "streams",
    METADATA,
    Column("name", _NAME, primary_key=True),
    Column("spec", _JsonText, nullable=False),
    Column("created_ms", BigInteger),
)

blocks = Table(
    "blocks",
    METADATA,
    Column("stream", _NAME, ForeignKey("streams.name"), primary_key=True),
    Column("name", _NAME, primary_key=True),
    Column("start_ms", BigInteger, nullable=False),
    Column("end_ms", BigInteger, nullable=False),
    Column("window", BigInteger, nullable=False),
    Column("status", _text(20), nullable=False),
    Column("dp_count", BigInteger),
    Index(None, "stream", "window"),
    Index(None, "stream", "start_ms", "name"),
)

ptks = Table(
    "ptks",
    METADATA,
    _id(),
    Column("name", _NAME, nullable=False),
    _stream(),
    Column("kind", _NAME, nullable=False),
    Column("config_version", BigInteger, nullable=False),
    Column("target", Double, nullable=False),
    Column("train_every", BigInteger, nullable=False),
    Column("over", _text(40), nullable=False, server_default="all"),
    # Of best effort; its target is 0 then, and means nothing.
    Column("epsilon", _text(80)),
    Column("status", _text(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("suggestion", _JsonText),
    Column("etag", BigInteger, nullable=False),
    Column("created_ms", BigInteger),
    Column("updated_ms", BigInteger),
    UniqueConstraint("name"),
    Index(None, "stream"),
    sqlite_autoincrement=True,
)

ptk_configs = Table(
    "ptk_configs",
    METADATA,
    Column("ptk", _ID, ForeignKey("ptks.id"), primary_key=True, autoincrement=False),
    Column("config_version", BigInteger, primary_key=True, autoincrement=False),
    Column("config", _JsonText, nullable=False),
)

profiles = Table(
    "profiles",
    METADATA,
    _id(),
    Column("ptk", _ID, nullable=False),
    Column("config_version", BigInteger, nullable=False),
    Column("target", Double, nullable=False),
    Column("levels", _JsonText, nullable=False),
    Column("samples", _JsonText, nullable=False),
    Column("source", _NAME, nullable=False),
    Column("created_ms", BigInteger),
    ForeignKeyConstraint(
        ["ptk", "config_version"], ["ptk_configs.ptk", "ptk_configs.config_version"]
    ),
    Index(None, "ptk", "config_version"),
    sqlite_autoincrement=True,
)

plans = Table(
    "plans",
    METADATA,
    _id(),
    _stream(),
    Column("window", BigInteger, nullable=False),
    Column("status", _NAME, nullable=False),
    Column("body", _JsonText, nullable=False),
    Column("created_ms", BigInteger),
    Index(None, "stream"),
    sqlite_autoincrement=True,
)

cycles = Table(
    "cycles",
    METADATA,
    _id(),
    _stream(),
    Column("window", BigInteger, nullable=False),
    Column("status", _NAME, nullable=False),
    Column("body", _JsonText),
    Column("started_ms", BigInteger),
    Column("finished_ms", BigInteger),
    UniqueConstraint("stream", "window"),
    sqlite_autoincrement=True,
)

steps = Table(
    "steps",
    METADATA,
    _id(),
    Column("cycle", _ID, ForeignKey("cycles.id"), nullable=False),
    Column("step", _text(2 * MAX_NAME), nullable=False),
    Column("body", _JsonText, nullable=False),
    Column("at_ms", BigInteger),
    UniqueConstraint("cycle", "step"),
    sqlite_autoincrement=True,
)

states = Table(
    "states",
    METADATA,
    Column("ptk", _ID, ForeignKey("ptks.id"), primary_key=True, autoincrement=False),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("cycle", _ID, ForeignKey("cycles.id"), nullable=False),
    Column("digest", _text(64), nullable=False),
    Column("manifest", _JsonText, nullable=False),
    Column("window", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("verdict", _text(20), nullable=False, server_default=""),
    UniqueConstraint("ptk", "cycle"),
)

events = Table(
    "events",
    METADATA,
    _id(),
    Column("kind", _NAME, nullable=False),
    Column("subject", _NAME, nullable=False),
    Column("body", _JsonText, nullable=False),
    Column("at_ms", BigInteger),
    Index(None, "subject", "id"),
    sqlite_autoincrement=True,
)

deliveries = Table(
    "deliveries",
    METADATA,
    Column("subscriber", _text(MAX_ENDPOINT), primary_key=True),
    Column("event", _ID, ForeignKey("events.id"), nullable=False),
    Column("at_ms", BigInteger),
)

subscriptions = Table(
    "subscriptions",
    METADATA,
    _id(),
    _ptk(),
    Column("endpoint", _text(MAX_ENDPOINT), nullable=False),
    UniqueConstraint("ptk", "endpoint"),
    sqlite_autoincrement=True,
)

operations = Table(
    "operations",
    METADATA,
    _id(),
    Column("kind", _NAME, nullable=False),
    _stream(),
    Column("until_ms", BigInteger),
    Column("windows", _JsonText, nullable=False),
    Column("status", _text(20), nullable=False),
    Column("progress", Text, nullable=False),
    Column("reason", _NAME, nullable=False),
    Column("message", Text, nullable=False),
    Column("created_ms", BigInteger),
    Column("ended_ms", BigInteger),
    Index(None, "stream"),
    Index(None, "status"),
    sqlite_autoincrement=True,
)

requests = Table(
    "requests",
    METADATA,
    Column("who", _NAME, primary_key=True),
    Column("id", _NAME, primary_key=True),
    Column("method", _NAME, nullable=False),
    Column("digest", _text(64), nullable=False),
    Column("note", _JsonText),
    Column("answer", Text),
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "created_ms"),
)

tokens = Table(
    "tokens",
    METADATA,
    Column("id", _text(16), primary_key=True),
    Column("name", _NAME, nullable=False),
    Column("secret_sha256", _text(64), nullable=False),
    Column("roles", _JsonText, nullable=False),
    Column("streams", _JsonText, nullable=False),
    Column("ptks", _JsonText, nullable=False),
    Column("created_ms", BigInteger),
    Column("expires_ms", BigInteger),
    Column("revoked_ms", BigInteger),
    UniqueConstraint("name"),
)

audit = Table(
    "audit",
    METADATA,
    _id(),
    Column("at_ms", BigInteger, nullable=False),
    Column("who", _NAME, nullable=False),
    Column("what", _NAME, nullable=False),
    Column("subject", _NAME, nullable=False),
    Column("outcome", _NAME, nullable=False),
    Column("times", BigInteger, nullable=False, server_default="1"),
    Column("digest", _text(64), nullable=False),
    sqlite_autoincrement=True,
)

# Entries of the audit log that were moved to files; the first that is left follows the digest of
# the newest.
audit_segments = Table(
    "audit_segments",
    METADATA,
    Column("id", _ID, primary_key=True, autoincrement=False),
    Column("entries", BigInteger, nullable=False),
    Column("digest", _text(64), nullable=False),
    Column("file", _NAME, nullable=False),
    Column("file_sha256", _text(64), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)

marks = Table(
    "marks",
    METADATA,
    Column(
        "subscription", _ID, ForeignKey("subscriptions.id"), primary_key=True, autoincrement=False
    ),
    Column("version", BigInteger, nullable=False),
)

notifications = Table(
    "notifications",
    METADATA,
    _id(),
    Column("subscription", _ID, ForeignKey("subscriptions.id"), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("status", _text(20), nullable=False),
    Column("reason", _NAME, nullable=False),
    Column("due_ms", BigInteger, nullable=False),
    UniqueConstraint("subscription", "version"),
    sqlite_autoincrement=True,
)

# Where the entries of the ledger that concern a stream lie in its journal; the journal is the
# truth.
charges = Table(
    "charges",
    METADATA,
    Column("stream", _NAME, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("kind", _text(20), nullable=False),
    Column("charge", BigInteger),
    Column("key", _NAME, nullable=False),
    Index(None, "charge"),
)

charges_head = Table(
    "charges_head",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("mac", _text(64), nullable=False),
    Column("entries", BigInteger, nullable=False),
)

# Charges that stand, added up: what one took is in billionths of the stream's epsilon, where in
# 2^-20 of a block.
spent = Table(
    "spent",
    METADATA,
    Column("stream", _NAME, primary_key=True),
    Column("who", _NAME, primary_key=True),
    Column("purpose", _text(20), primary_key=True),
    Column("took_nano", BigInteger, primary_key=True, autoincrement=False),
    Column("charges", BigInteger, nullable=False),
    Column("area", BigInteger, nullable=False),
)

leases = Table(
    "leases",
    METADATA,
    Column("name", _NAME, primary_key=True),
    Column("holder", _NAME, nullable=False),
    Column("address", _text(MAX_ENDPOINT), nullable=False),
    Column("place", _text(200), nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("lease_ms", BigInteger, nullable=False),
)

witness = Table(
    "witness",
    METADATA,
    Column("name", _NAME, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
)
