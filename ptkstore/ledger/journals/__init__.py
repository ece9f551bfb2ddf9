"""Where the entries of the ledger are kept: the chain, what a journal is, and the one on SQLite."""
