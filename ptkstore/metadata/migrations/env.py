"""Run by alembic, inside the write transaction that `ptkstore.metadata.database.schema.migrate`
opened.
"""

from __future__ import annotations

from alembic import context

from ptkstore.metadata.database.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
