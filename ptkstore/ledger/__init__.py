"""The durable ledger: the pure state machine of ``ptklib.ledger`` around a journal on SQLite or
PostgreSQL.

``Ledger`` (``ptkstore.ledger.ledger``) is what people use. Below it: ``writer`` (state and journal
kept together for many threads and processes), ``journal`` and ``postgres_journal`` (append-only,
with a chain of MACs, snapshots and schema migrations), ``group_commit`` (many callers, one fsync)
and ``key_file``.
"""

from ptkstore.ledger.ledger import Ledger

__all__ = ["Ledger"]
