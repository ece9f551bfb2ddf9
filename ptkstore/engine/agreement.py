"""Do the parts of a store agree? What the doctor says of witnesses, and of blocks that one part knows and another does not.

The ledger gets a block after the metadata has it, and the metadata after the files have it: what comes later never knows more.
Only a restore enters blocks into the ledger that nobody else has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ptklib.errors import SageError
from ptkstore.engine.home import Home
from ptkstore.engine.witness import PLACES
from ptkstore.streams.progress import Progress
from ptkstore.streams.spans import Spans
from ptkstore.streams.vault import Vault
from ptkstore.views import Finding

__all__ = ["GIVEN_UP", "examine_agreement"]

GIVEN_UP = "given up by a restore"


def examine_agreement(home: Home) -> Iterator[Finding]:
    """One finding for each part that is behind another, or one that all is well."""
    found = list(_witnesses(home))
    found += _streams(home)
    found += _blocks(home)
    yield from found or [
        Finding("OK", "witnesses", "ledger, metadata, streams and lake know of each other's newest steps")
    ]


def _witnesses(home: Home) -> Iterator[Finding]:
    try:
        home.witness.require_newest()
        found = home.witness.find()
    except SageError as error:
        yield Finding("ERROR", "witnesses", f"{error.reason}: {error.message}")
        return
    # What is written first is never behind what is written after it.
    for first, then in pairwise(place for place in PLACES if place in found):
        if found[first].head.seq < found[then].head.seq:
            yield Finding(
                "ERROR",
                "witnesses",
                f"WITNESS_SET_BACK: the {first} knows less of the ledger than the {then}: it is old",
            )
    places = frozenset[str]().union(*(one.places for one in found.values()))
    for place in sorted(places - found.keys()):
        yield Finding("ERROR", "witnesses", f"WITNESS_MISSING: what the {place} knew of the ledger is gone")
    for name in home.lake.witnesses():
        if name != home.ledger.identity:
            yield Finding(
                "ERROR",
                "witnesses",
                f"LEDGER_FOREIGN: the lake has states that were charged in another ledger ({name[:12]}): this store is not the "
                "first one here, and each needs a bucket or a prefix of its own",
            )


def _streams(home: Home) -> Iterator[Finding]:
    for name in sorted(home.specs):
        try:
            known = home.witness.sealed_before(name)
            files = Vault(home.path, name).files
            found = Progress.read(files, Spans(home.specs[name]).first).sealed_before
        except SageError as error:
            yield Finding("ERROR", f"stream {name}", f"{error.reason}: {error.message}")
            continue
        if known is not None and found < known:
            yield Finding("ERROR", f"stream {name}", "STREAM_SET_BACK: its files are older than is known elsewhere")


def _blocks(home: Home) -> Iterator[Finding]:
    for name in sorted(home.specs.keys() & home.ledger.streams().keys()):
        with home.metadata.read() as tx:
            known = {block.name for block in tx.blocks.list(name)}
        unknown = [block for block in home.ledger.blocks(name) if block not in known]
        if any(home.ledger.block(name, block).retired != GIVEN_UP for block in unknown):
            yield Finding(
                "ERROR", f"stream {name}", "METADATA_SET_BACK: the ledger has blocks that the metadata does not know"
            )
    strange = sorted(home.ledger.streams().keys() - home.specs.keys())
    if strange and not home.specs:
        yield Finding(
            "ERROR", "metadata", f"METADATA_SET_BACK: the ledger has stream {strange[0]!r}, the metadata none"
        )
