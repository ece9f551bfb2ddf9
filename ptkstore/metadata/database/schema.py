"""The schema's version, and the way up to it: alembic migrations that ship with the package.

`migrate` runs in one transaction, as the only writer, so two processes that open a new store at
once take turns and a crash leaves the old schema whole. alembic is imported only when there is
something to do. Reasons: SCHEMA_TOO_NEW, NOT_METADATA.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from ptkstore.metadata.database.database import VERSION_TABLE, Database
from ptkstore.metadata.errors import MetadataDamaged

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["REVISIONS", "VERSION_TABLE", "alembic_config", "migrate"]

# Every revision of this release, oldest first; a released one is never edited.
REVISIONS = tuple(f"{number:04}" for number in range(1, 13))

# alembic keeps the running migration in module globals.
_MIGRATING = threading.Lock()


def migrate(database: Database) -> None:
    """Bring the schema to the newest revision, or refuse before touching anything."""
    with database.read() as connection:
        if _revision(connection) == REVISIONS[-1]:
            return
    with _MIGRATING, database.migrate() as connection:
        # Another process may have migrated between our look and our lock.
        if _revision(connection) != REVISIONS[-1]:
            _upgrade(connection)


def alembic_config(connection: sa.Connection) -> Config:
    """alembic's settings for the migrations of this package, on an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option(
        "script_location", str(Path(__file__).parents[1] / "migrations").replace("%", "%%")
    )
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command

    command.upgrade(alembic_config(connection), "head")


def _revision(connection: sa.Connection) -> str | None:
    """The revision of the database: None for an empty one."""
    tables = sa.inspect(connection).get_table_names()
    if not tables:
        return None
    if VERSION_TABLE not in tables:
        raise MetadataDamaged("NOT_METADATA", "the database is in use, but not as a metadata store")
    revision = connection.execute(
        sa.select(sa.column("version_num")).select_from(sa.table(VERSION_TABLE))
    ).scalar()
    if revision not in REVISIONS:
        raise MetadataDamaged(
            "SCHEMA_TOO_NEW",
            f"the metadata has schema {revision}, this release knows up to {REVISIONS[-1]}: "
            "upgrade",
        )
    return str(revision)
