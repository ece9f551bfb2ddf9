"""Do the parts of a store agree? What the doctor says of witnesses, and of blocks that one part
knows and another does not.

The ledger gets a block after the metadata has it, and the metadata after the files have it: what
comes later never knows more. Only a restore enters blocks into the ledger that nobody else has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ptklib.errors import SageError
from ptkstore.api.views import Finding
from ptkstore.engine.head_guard import PLACES
from ptkstore.engine.parts import Parts
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.spans import Spans

__all__ = ["GIVEN_UP", "examine_agreement"]

GIVEN_UP = "given up by a restore"


def examine_agreement(parts: Parts) -> Iterator[Finding]:
    """One finding for each part that is behind another, or one that all is well."""
    findings = list(_witnesses(parts))
    findings += _streams(parts)
    findings += _blocks(parts)
    yield from findings or [
        Finding(
            "OK",
            "witnesses",
            "ledger, metadata, streams and lake know of each other's newest steps",
        )
    ]


def _witnesses(parts: Parts) -> Iterator[Finding]:
    try:
        parts.head_guard.require_newest()
        witnesses = parts.head_guard.find()
    except SageError as error:
        yield Finding("ERROR", "witnesses", f"{error.reason}: {error.message}")
        return
    # What is written first is never behind what is written after it.
    for first, then in pairwise(place for place in PLACES if place in witnesses):
        if witnesses[first].head.seq < witnesses[then].head.seq:
            yield Finding(
                "ERROR",
                "witnesses",
                f"WITNESS_SET_BACK: the {first} knows less of the ledger than the {then}: it is "
                "old",
            )
    places = frozenset[str]().union(*(kept.places for kept in witnesses.values()))
    for place in sorted(places - witnesses.keys()):
        yield Finding(
            "ERROR", "witnesses", f"WITNESS_MISSING: what the {place} knew of the ledger is gone"
        )
    for name in parts.lake.witnesses():
        if name != parts.ledger.identity:
            yield Finding(
                "ERROR",
                "witnesses",
                "LEDGER_FOREIGN: the lake has states that were charged in another ledger "
                f"({name[:12]}): this store is not the "
                "first one here, and each needs a bucket or a prefix of its own",
            )


def _streams(parts: Parts) -> Iterator[Finding]:
    for name in sorted(parts.specs):
        try:
            known = parts.head_guard.sealed_before(name)
            files = Vault(parts.path, name).files
            sealed = Progress.read(files, Spans(parts.specs[name]).first).sealed_before
        except SageError as error:
            yield Finding("ERROR", f"stream {name}", f"{error.reason}: {error.message}")
            continue
        if known is not None and sealed < known:
            yield Finding(
                "ERROR",
                f"stream {name}",
                "STREAM_SET_BACK: its files are older than is known elsewhere",
            )


def _blocks(parts: Parts) -> Iterator[Finding]:
    for name in sorted(parts.specs.keys() & parts.ledger.streams().keys()):
        with parts.metadata.read() as tx:
            known = {block.name for block in tx.blocks.list(name)}
        unknown = [block for block in parts.ledger.blocks(name) if block not in known]
        if any(parts.ledger.block(name, block).retired != GIVEN_UP for block in unknown):
            yield Finding(
                "ERROR",
                f"stream {name}",
                "METADATA_SET_BACK: the ledger has blocks that the metadata does not know",
            )
    strange = sorted(parts.ledger.streams().keys() - parts.specs.keys())
    if strange and not parts.specs:
        yield Finding(
            "ERROR",
            "metadata",
            f"METADATA_SET_BACK: the ledger has stream {strange[0]!r}, the metadata none",
        )
