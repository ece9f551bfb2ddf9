"""Files pushed in pieces, exactly once: what was pushed is noted beside them, in ``.sage-push.json``.

Each piece has a number of its own under a producer's name that belongs to the directory, and pushing
the same number again changes nothing. Numbers are noted before anything is sent: a push that was
interrupted goes on where it was, and a piece that was acknowledged and not noted is sent once more
and counts once. A file with other contents begins anew. The note holds digests of the files, so it
stays with who has them, and is never sent.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ptklib.errors import InvalidInput

__all__ = ["NOTE", "PIECE_ROWS", "FileProgress", "begun", "noted", "pieces"]

PIECE_ROWS = 50_000
NOTE = ".sage-push.json"
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class FileProgress:
    """How far a file is in a stream of a store: ``done`` of its ``pieces``, numbered from ``first``
    on, under the name ``producer``.
    """

    file: str
    store: str
    stream: str
    named: str
    digest: str
    producer: str
    first: int
    pieces: int
    done: int = 0

    @property
    def whole(self) -> bool:
        """True when all of it is durable."""
        return self.done == self.pieces

    def same_push(self, other: FileProgress) -> bool:
        """True for the same file name into the same stream under the same name."""
        return (self.file, self.store, self.stream, self.named) == (
            other.file,
            other.store,
            other.stream,
            other.named,
        )


def begun(
    path: Path, *, store: str, stream: str, named: str, rows: int, anew: bool = False
) -> FileProgress:
    """What is noted of this file, where its contents are the same; else a beginning, noted.

    ``named`` is what the producer calls itself. Reason: FILE_UNWRITABLE.
    """
    digest = _digest(path)
    with _note(path.parent) as note:
        fresh = FileProgress(
            file=path.name,
            store=store,
            stream=stream,
            named=named,
            digest=digest,
            producer=f"{named}-{note['token']}",
            first=note["next"],
            pieces=len(list(pieces(rows))),
        )
        for known in (FileProgress(**body) for body in note["files"]):
            if known.same_push(fresh) and known.digest == digest and not anew:
                return known
        note["next"] += fresh.pieces
        _put(note, fresh)
    return fresh


def noted(path: Path, progress: FileProgress, done: int) -> FileProgress:
    """The same with so many pieces done, durably."""
    further = replace(progress, done=done)
    with _note(path.parent) as note:
        _put(note, further)
    return further


def pieces(rows: int) -> Iterator[tuple[int, int]]:
    """Where pieces begin, and how many rows they have."""
    for begin in range(0, rows, PIECE_ROWS):
        yield begin, min(PIECE_ROWS, rows - begin)


def _put(note: dict[str, Any], progress: FileProgress) -> None:
    note["files"] = [
        body for body in note["files"] if not FileProgress(**body).same_push(progress)
    ] + [asdict(progress)]


@contextmanager
def _note(directory: Path) -> Iterator[dict[str, Any]]:
    """The note of a directory, for one process at a time; written back where it was changed."""
    path = directory / NOTE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InvalidInput(
            "FILE_UNWRITABLE",
            f"{path}: {error.strerror}. A push notes beside the file how far it is; with --seq N it "
            "needs no note",
            file=str(path),
        ) from None
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read()
        try:
            note: dict[str, Any] = json.loads(text)
            _ = [FileProgress(**body) for body in note["files"]], note["next"], note["token"]
        except (ValueError, TypeError, KeyError):
            # None yet, or torn by a crash: another name, so that no number is used twice.
            note = {"token": secrets.token_hex(8), "next": 0, "files": []}
        yield note
        written = json.dumps(note, indent=1)
        if written != text:
            file.seek(0)
            file.truncate()
            file.write(written)
            file.flush()
            os.fsync(file.fileno())


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
