"""What the repositories speak through: one open transaction, with rows as mappings.

Reason: TRANSACTION_READ_ONLY.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ptklib.errors import InvalidInput
from ptkstore.api.paging import check_limit

__all__ = ["MetadataSession"]

# Of one statement; PostgreSQL takes 65,535 and SQLite, as it is usually built, 32,766.
_MOST_VALUES = 30_000


class MetadataSession:
    """One transaction. Belongs to one thread; dead when its ``with`` block ends."""

    def __init__(self, connection: sa.Connection, *, writable: bool) -> None:
        """Keep the connection; the caller ends the transaction."""
        self._connection = connection
        self._writable = writable

    def one(self, statement: sa.Select[Any]) -> sa.RowMapping | None:
        """The first row, or None."""
        return self._connection.execute(statement.limit(1)).mappings().first()

    def bound(self, statement: sa.Select[Any], **parameters: object) -> sa.RowMapping | None:
        """The first row of a statement that was built beforehand, or None."""
        return self._connection.execute(statement, parameters).mappings().first()

    def all(self, statement: sa.Select[Any], limit: int | None = None) -> Sequence[sa.RowMapping]:
        """The rows, all or the first ``limit``."""
        return self._connection.execute(statement.limit(check_limit(limit))).mappings().all()

    def page(
        self,
        statement: sa.Select[Any],
        key: sa.ColumnElement[Any],
        after: int | str | None,
        limit: int | None,
    ) -> Sequence[sa.RowMapping]:
        """The rows in the order of a key, all or the first ``limit``; with ``after``, those that
        come after it.
        """
        ordered = statement.order_by(key)
        return self.all(ordered if after is None else ordered.where(key > after), limit)

    def tuples(self, statement: sa.Select[Any]) -> Sequence[tuple[Any, ...]]:
        """The rows as plain tuples, for those who read thousands."""
        return [tuple(row) for row in self._connection.execute(statement)]

    def number(self, statement: sa.Select[Any]) -> int:
        """The one number a query gives; 0 for NULL or no row."""
        return int(self._connection.execute(statement).scalar() or 0)

    def clock_ms(self) -> int | None:
        """The time by the clock of the database's own machine; None where it has none but ours."""
        if self._connection.dialect.name != "postgresql":
            return None
        return self.number(
            sa.select(sa.func.floor(sa.extract("epoch", sa.func.clock_timestamp()) * 1000))
        )

    def insert(self, table: sa.Table, **values: object) -> int:
        """Add a row; its ``id`` where the table gives one, else 0."""
        self._check_writable()
        result = self._connection.execute(table.insert().values(**values))
        return (
            int(result.inserted_primary_key[0])
            if "id" in table.c and result.inserted_primary_key
            else 0
        )

    def insert_all(self, table: sa.Table, rows: Sequence[Mapping[str, object]]) -> None:
        """Add rows in their order, all with the same columns."""
        self._check_writable()
        if rows:
            self._connection.execute(table.insert(), [dict(row) for row in rows])

    def insert_plain(
        self, table: sa.Table, names: Sequence[str], rows: Sequence[tuple[object, ...]]
    ) -> None:
        """`insert_all` for many rows of numbers and texts that go to the driver as they are: a
        fifth of the work.
        """
        self._check_writable()
        # One statement with many rows, not one row many times: psycopg would send those as a
        # pipeline, and PostgreSQL counts no idle time behind a pipeline: who hangs there would hold
        # the writers' turn for ever.
        most = _MOST_VALUES // len(names)
        mark = "%s" if self._connection.dialect.paramstyle in ("format", "pyformat") else "?"
        row = f"({', '.join([mark] * len(names))})"
        for begin in range(0, len(rows), most):
            some = rows[begin : begin + most]
            text = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join([row] * len(some))}"  # noqa: S608
            self._connection.exec_driver_sql(
                text, tuple(value for values in some for value in values)
            )

    def execute(self, statement: sa.Update | sa.Delete) -> None:
        """Change rows."""
        self._check_writable()
        self._connection.execute(statement)

    def _check_writable(self) -> None:
        if not self._writable:
            raise InvalidInput(
                "TRANSACTION_READ_ONLY", "a read transaction cannot write: use write()"
            )
