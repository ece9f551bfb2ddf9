"""The doctor: what can be checked of a store while it runs, and a search for raw values where none
may be.

A canary is a value that was planted in a stream. Wherever it is found in the clear (journal,
metadata, lake, block files, anything in the directory), something leaks. Blocks are encrypted, so a
canary must never be found, expired or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ptklib.encoding.error_place import kind_of
from ptklib.errors import SageError
from ptkstore.api.views import Finding
from ptkstore.engine.leadership.readiness import unwritable, write_probe
from ptkstore.engine.parts import Parts
from ptkstore.engine.safekeeping.agreement import examine_agreement
from ptkstore.engine.safekeeping.held_too_long import examine_holding
from ptkstore.engine.safekeeping.raw_data import examine_raw_data
from ptkstore.engine.window.health import examine_windows
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.cohorts.cohorts import verify_members
from ptkstore.streams.spans import Spans
from ptkstore.workers.confinement import confinement

__all__ = ["examine"]

_PART = 1 << 20


def examine(parts: Parts, canaries: Sequence[bytes | str] = ()) -> list[Finding]:
    """All findings, the good ones too, in a fixed order."""
    looks: dict[str, Callable[[], Iterable[Finding]]] = {
        "ledger": lambda: [_ledger(parts)],
        "writing": lambda: _writing(parts),
        "metadata": lambda: _metadata(parts),
        "agreement": lambda: examine_agreement(parts),
        "lake": lambda: _states(parts),
        "raw data": lambda: examine_raw_data(parts),
        "exposure": lambda: _exposure(parts),
        "members": lambda: _members(parts),
        "holding": lambda: examine_holding(parts),
        "cycles": lambda: _cycles(parts),
        "windows": lambda: examine_windows(parts),
        "workers": lambda: _workers(parts),
        "canaries": lambda: _canaries(parts.path, canaries),
    }
    return [finding for what, look in looks.items() for finding in _looked(what, look)]


def _looked(what: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What was found; that it could not be looked at is a finding too.

    The text of such an error may name open blocks.
    """
    findings: list[Finding] = []
    try:
        findings.extend(look())
    except OSError as error:
        findings.append(Finding("ERROR", what, f"could not be looked at ({kind_of(error)})"))
    return findings


def _ledger(parts: Parts) -> Finding:
    try:
        heads = [kept.head for kept in parts.head_guard.find().values()]
        seen = parts.ledger.verify(max(heads, default=None))
    except SageError as error:
        return Finding("ERROR", "ledger", f"{error.reason}: {error.message}")
    return Finding(
        "OK",
        "ledger",
        f"{seen.entries} entries in {seen.commits} commits: chain intact, no point beyond its "
        "policy",
    )


def _writing(parts: Parts) -> Iterator[Finding]:
    """What cannot be written, in the process that asks: the doctor of a server knows its
    writers.
    """
    try:
        write_probe(parts.path)
    except OSError as error:
        yield Finding(
            "ERROR",
            "writing",
            f"the store's directory cannot be written ({kind_of(error)}): make room",
        )
        return
    failed = unwritable(parts)
    for stream, fault in failed.items():
        yield Finding("ERROR", f"writing of {stream}", f"{fault.reason}: {fault.message}")
    if not failed:
        yield Finding(
            "OK",
            "writing",
            "the store's directory can be written, and no writer of a stream has failed",
        )


def _metadata(parts: Parts) -> Iterator[Finding]:
    try:
        fault = parts.metadata.check()
    except SageError as error:
        fault = f"{error.reason}: {error.message}"
    if fault:
        yield Finding("ERROR", "metadata", f"METADATA_DAMAGED: {fault}")


def _states(parts: Parts) -> Iterator[Finding]:
    with parts.metadata.read() as tx:
        digests = sorted(tx.states.digests())
    damaged = []
    for digest in digests:
        try:
            parts.lake.get(digest)
        except SageError as error:
            damaged.append(f"{digest[:12]} {error.reason}")
    if damaged:
        yield Finding(
            "ERROR", "lake", f"{len(damaged)} of {len(digests)} states: {', '.join(damaged[:5])}"
        )
    else:
        yield Finding("OK", "lake", f"{len(digests)} states, every digest right")


def _exposure(parts: Parts) -> Iterator[Finding]:
    for name in sorted(parts.specs):
        vault = Vault(parts.path, name)
        with parts.metadata.read() as tx:
            gone = [block.name for block in tx.blocks.list(name, status="expired")]
        left = [block for block in gone if vault.holds(block) or vault.path(block).exists()]
        if left:
            yield Finding(
                "ERROR",
                f"exposure of {name}",
                f"expired blocks still have a key or a file: {', '.join(left[:5])}",
            )
        else:
            yield Finding(
                "OK", f"exposure of {name}", f"{len(gone)} expired blocks have neither key nor file"
            )


def _members(parts: Parts) -> Iterator[Finding]:
    """Who has joined is all there; how many that are is nobody's business."""
    for name in sorted(parts.specs):
        if parts.specs[name].unit != "user":
            continue
        try:
            verify_members(Vault(parts.path, name), Spans(parts.specs[name]).first)
        except SageError as error:
            yield Finding("ERROR", f"members of {name}", f"{error.reason}: {error.message}")
        else:
            yield Finding(
                "OK",
                f"members of {name}",
                "everybody who joined a cohort is known, the chain is intact",
            )


def _cycles(parts: Parts) -> Iterator[Finding]:
    for name in sorted(parts.specs):
        with parts.metadata.read() as tx:
            running = [cycle.window for cycle in tx.cycles.unfinished(name)]
        if running:
            text = f"windows {', '.join(map(str, running))} were interrupted: the next run finishes them"
            yield Finding("WARNING", f"cycles of {name}", text)
    with parts.metadata.read() as tx:
        waiting = tx.events.newest() - tx.events.delivered("bus")
    if waiting > 0:
        yield Finding("WARNING", "outbox", f"{waiting} events are not delivered yet")


def _workers(parts: Parts) -> Iterator[Finding]:
    if parts.workers.apart and not confinement():
        text = "the system has no Landlock (Linux 5.13): what trains could read keys, write files and connect elsewhere"
        yield Finding("WARNING", "workers", text)


def _canaries(path: Path, canaries: Sequence[bytes | str]) -> Iterator[Finding]:
    needles = [form for canary in canaries for form in _forms(canary)]
    if not needles:
        return
    hits = []
    files = 0
    for file in sorted(_files(path)):
        try:
            hit = _holds(file, needles)
        except FileNotFoundError:
            continue  # drafts, logs of databases and expired blocks go at any time
        files += 1
        if hit:
            hits.append(str(file.relative_to(path)))
    if hits:
        yield Finding("ERROR", "canaries", f"found in the clear in {', '.join(hits[:5])}")
    else:
        yield Finding("OK", "canaries", f"{len(canaries)} canaries are nowhere in {files} files")


def _files(path: Path) -> Iterator[Path]:
    """All files below a directory; what goes while we look is left out."""
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names if Path(folder, name).is_file())


def _holds(file: Path, needles: Sequence[bytes]) -> bool:
    """True when one of them is in a file, which others may write, cut off or remove meanwhile: so
    it is not mapped.
    """
    overlap = max(map(len, needles)) - 1
    with file.open("rb") as handle:
        last = b""
        while part := handle.read(_PART):
            body = last + part
            if any(needle in body for needle in needles):
                return True
            last = body[-overlap:] if overlap else b""
    return False


def _forms(canary: bytes | str) -> list[bytes]:
    """The ways a text may lie in a file."""
    if isinstance(canary, bytes):
        return [canary]
    return [canary.encode(), canary.encode("utf-16-le")]
