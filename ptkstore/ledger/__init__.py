"""The durable ledger: the pure state machine of ``ptklib.ledger`` around a journal on SQLite.

``Ledger`` (``ptkstore.ledger.book``) is what people use. Below it: ``writer`` (state and journal kept together for many
threads and processes), ``journal`` (the append-only file with its chain of MACs, snapshots and schema migrations),
``group_commit`` (many callers, one fsync) and ``key_file``.
"""

from ptkstore.ledger.book import Ledger

__all__ = ["Ledger"]
