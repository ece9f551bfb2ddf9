"""The witness of the metadata: what is known here of the ledger and the streams, and how many steps
of windows were written.

One row. The body is the engine's; here it is a text.
"""

from __future__ import annotations

import sqlalchemy as sa

from ptkstore.metadata.checks import check_text
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import witness

__all__ = ["WitnessRow"]

_ROW = "store"
_LONGEST = 1 << 20


class WitnessRow:
    """The one row, in a transaction."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def number(self) -> int:
        """How often it was put; 0 where it never was."""
        return self._session.number(sa.select(witness.c.number).where(witness.c.name == _ROW))

    def body(self) -> str | None:
        """What was put last, or None."""
        row = self._session.one(sa.select(witness).where(witness.c.name == _ROW))
        return None if row is None else str(row["body"])

    def put(self, body: str) -> None:
        """Replace the body, and count one more."""
        values = {"body": check_text(body, "a witness", _LONGEST), "number": self.number() + 1}
        if self.body() is None:
            self._session.insert_all(witness, [{"name": _ROW, **values}])
        else:
            self._session.execute(witness.update().where(witness.c.name == _ROW).values(**values))
