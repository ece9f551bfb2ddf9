"""The doctor: what can be checked of a store while it runs, and a search for raw values where none may be.

A canary is a value that was planted in a stream. Wherever it is found in the clear (journal, metadata, lake, block files,
anything in the directory), something leaks. Blocks are encrypted, so a canary must never be found, expired or not.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ptklib.errors import SageError
from ptkstore.engine.home import Home
from ptkstore.engine.readiness import unwritable, write_probe
from ptkstore.engine.witness import known_head
from ptkstore.streams.breakdown import kind_of
from ptkstore.streams.vault import Vault
from ptkstore.views import Finding

__all__ = ["examine"]


def examine(home: Home, canaries: Sequence[bytes | str] = ()) -> list[Finding]:
    """All findings, the good ones too, in a fixed order."""
    found = _looked("ledger", lambda: iter([_ledger(home)]))
    found += _looked("writing", lambda: _writing(home))
    found += _looked("lake", lambda: _states(home))
    found += _looked("exposure", lambda: _exposure(home))
    found += _looked("cycles", lambda: _cycles(home))
    found += _looked("canaries", lambda: _canaries(home.path, canaries))
    return found


def _looked(what: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What was found; that it could not be looked at is a finding too. The text of such an error may name open blocks."""
    found: list[Finding] = []
    try:
        found.extend(look())
    except OSError as error:
        found.append(Finding("ERROR", what, f"could not be looked at ({kind_of(error)})"))
    return found


def _ledger(home: Home) -> Finding:
    try:
        seen = home.ledger.verify(known_head(home.path))
    except SageError as error:
        return Finding("ERROR", "ledger", f"{error.reason}: {error.message}")
    return Finding(
        "OK", "ledger", f"{seen.entries} entries in {seen.commits} commits: chain intact, no point beyond its policy"
    )


def _writing(home: Home) -> Iterator[Finding]:
    """What cannot be written, in the process that asks: the doctor of a server knows its writers."""
    try:
        write_probe(home.path)
    except OSError as error:
        yield Finding("ERROR", "writing", f"the store's directory cannot be written ({kind_of(error)}): make room")
        return
    failed = unwritable(home)
    for stream, fault in failed.items():
        yield Finding("ERROR", f"writing of {stream}", f"{fault.reason}: {fault.message}")
    if not failed:
        yield Finding("OK", "writing", "the store's directory can be written, and no writer of a stream has failed")


def _states(home: Home) -> Iterator[Finding]:
    with home.metadata.read() as tx:
        digests = sorted(tx.states.digests())
    damaged = []
    for digest in digests:
        try:
            home.lake.get(digest)
        except SageError as error:
            damaged.append(f"{digest[:12]} {error.reason}")
    if damaged:
        yield Finding("ERROR", "lake", f"{len(damaged)} of {len(digests)} states: {', '.join(damaged[:5])}")
    else:
        yield Finding("OK", "lake", f"{len(digests)} states, every digest right")


def _exposure(home: Home) -> Iterator[Finding]:
    for name in sorted(home.specs):
        vault = Vault(home.path, name)
        with home.metadata.read() as tx:
            gone = [block.name for block in tx.blocks.list(name, status="expired")]
        left = [block for block in gone if vault.holds(block) or vault.path(block).exists()]
        if left:
            yield Finding(
                "ERROR", f"exposure of {name}", f"expired blocks still have a key or a file: {', '.join(left[:5])}"
            )
        else:
            yield Finding("OK", f"exposure of {name}", f"{len(gone)} expired blocks have neither key nor file")


def _cycles(home: Home) -> Iterator[Finding]:
    for name in sorted(home.specs):
        with home.metadata.read() as tx:
            running = [cycle.window for cycle in tx.cycles.unfinished(name)]
        if running:
            text = f"windows {', '.join(map(str, running))} were interrupted: the next run finishes them"
            yield Finding("WARNING", f"cycles of {name}", text)
    with home.metadata.read() as tx:
        waiting = tx.events.newest() - tx.events.delivered("bus")
    if waiting > 0:
        yield Finding("WARNING", "outbox", f"{waiting} events are not delivered yet")


def _canaries(path: Path, canaries: Sequence[bytes | str]) -> Iterator[Finding]:
    needles = [form for canary in canaries for form in _forms(canary)]
    if not needles:
        return
    hits = []
    files = 0
    for file in sorted(one for one in path.rglob("*") if one.is_file() and one.stat().st_size):
        files += 1
        with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as body:
            if any(body.find(needle) >= 0 for needle in needles):
                hits.append(str(file.relative_to(path)))
    if hits:
        yield Finding("ERROR", "canaries", f"found in the clear in {', '.join(hits[:5])}")
    else:
        yield Finding("OK", "canaries", f"{len(canaries)} canaries are nowhere in {files} files")


def _forms(canary: bytes | str) -> list[bytes]:
    """The ways a text may lie in a file."""
    if isinstance(canary, bytes):
        return [canary]
    return [canary.encode(), canary.encode("utf-16-le")]
