"""The oldest part of the audit log, moved to files so that the log does not grow for ever, with its
chain kept.

::

    STORE/audit/audit-0000000001-0000100000.jsonl      a segment: a head, then an entry per line, oldest first

The head names the digest that the first entry follows; every entry has its own. A segment is
durable before the metadata lets go of its entries, and the metadata keeps its last digest and the
SHA-256 of the file: so `verify` follows the chain from the very first entry through all files into
the log, wherever the files have been kept meanwhile. That the log was moved is an entry of the log.
A server may be running.

Reasons: AUDIT_DAMAGED, AUDIT_SEGMENT_MISSING.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptklib.encoding.canonical import canonical
from ptklib.errors import InvalidInput
from ptkstore.metadata import Metadata
from ptkstore.metadata.access.audit import AuditRow, Decision, Segment, digest_of
from ptkstore.metadata.errors import MetadataDamaged
from ptkstore.streams.blocks.vault import replace_durably

__all__ = ["FOLDER", "VerifiedAudit", "rotate", "verify"]

FOLDER = "audit"
ENTRIES_PER_FILE = 100_000
_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class VerifiedAudit:
    """What a whole chain has: files, entries in them, and entries in the log."""

    segments: int
    moved: int
    entries: int


def rotate(metadata: Metadata, folder: Path, *, before_ms: int, now_ms: int) -> list[Segment]:
    """Move all entries that are older than that, and nothing younger was before them, to files; the
    segments made.
    """
    made: list[Segment] = []
    while True:
        with metadata.read() as tx:
            entries = tx.audit.oldest(before_ms, ENTRIES_PER_FILE)
            known = tx.audit.segments()
        if not entries:
            return made
        follows = known[-1].digest if known else ""
        _require_chain(entries, follows)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = f"audit-{entries[0].id:010}-{entries[-1].id:010}.jsonl"
        body = _body(entries, follows)
        # Durable before anything is let go of; after a crash in between it is written once more.
        replace_durably(folder / name, body)
        segment = Segment(
            entries[-1].id,
            len(entries),
            entries[-1].digest,
            name,
            hashlib.sha256(body).hexdigest(),
            now_ms,
        )
        with metadata.write() as tx:
            if tx.audit.segments() != known:
                continue  # somebody else was quicker
            # Before the entries go: the new one follows the newest, whether that stays or not.
            tx.audit.add_all([Decision(now_ms, "sage audit-log", "rotate", name, "ALLOWED")])
            tx.audit.release(segment)
        made.append(segment)


def verify(metadata: Metadata, folder: Path) -> VerifiedAudit:
    """Follow the chain through all files in ``folder`` and the log.

    AUDIT_SEGMENT_MISSING where one is not there.
    """
    with metadata.read() as tx:
        segments = tx.audit.segments()
        entries = tx.audit.verify()
    follows = ""
    for segment in segments:
        follows = _verified(folder / segment.file, segment, follows)
    return VerifiedAudit(
        segments=len(segments), moved=sum(segment.entries for segment in segments), entries=entries
    )


def _verified(path: Path, segment: Segment, follows: str) -> str:
    try:
        body = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            "AUDIT_SEGMENT_MISSING",
            f"{path}: {error.strerror}; bring the file back, or name the folder that has it",
            file=segment.file,
        ) from None
    if hashlib.sha256(body).hexdigest() != segment.file_sha256:
        raise MetadataDamaged("AUDIT_DAMAGED", f"{segment.file} is not what was written")
    entries = list(_read(body))
    _require_chain(entries, follows)
    if len(entries) != segment.entries or not entries or entries[-1].digest != segment.digest:
        raise MetadataDamaged("AUDIT_DAMAGED", f"{segment.file} does not end as the log says")
    return segment.digest


def _require_chain(entries: Sequence[AuditRow], follows: str) -> None:
    for entry in entries:
        follows = digest_of(follows, entry.decision)
        if entry.digest != follows:
            raise MetadataDamaged(
                "AUDIT_DAMAGED", f"entry {entry.id} of the audit log is not what was written"
            )


def _body(entries: Sequence[AuditRow], follows: str) -> bytes:
    lines = [canonical({"format": _FORMAT, "follows": follows})]
    lines += [
        canonical(
            [
                entry.id,
                entry.at_ms,
                entry.who,
                entry.what,
                entry.subject,
                entry.outcome,
                entry.times,
                entry.digest,
            ]
        )
        for entry in entries
    ]
    return b"\n".join(lines) + b"\n"


def _read(body: bytes) -> Iterator[AuditRow]:
    return (AuditRow(*json.loads(line)) for line in body.splitlines()[1:])
