"""Decisions into the audit log, each chained to the one before. See
`ptkstore.metadata.access.audit` for the chain.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptkstore.metadata import Metadata
from ptkstore.metadata.access.audit import Decision, Link

__all__ = ["append", "newest_digest"]


def newest_digest(metadata: Metadata) -> str:
    """The digest of the newest entry, which the next one follows."""
    with metadata.read() as tx:
        return tx.audit.digest()


def append(metadata: Metadata, links: Sequence[Link], *, after: str) -> str:
    """Write entries that are chained to the one with the digest ``after``; returns the digest of
    the last. Where another process has written meanwhile, they follow its entries.
    """
    with metadata.write() as tx:
        if tx.audit.digest() == after:
            return tx.audit.add_links(list(links))
        return tx.audit.add_all(Decision(*link[:-1]) for link in links)
