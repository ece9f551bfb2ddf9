"""A lake in a directory: ``sha256/ab/abcd….safetensors`` and ``sha256/ab/abcd….json``.

A state is there once both files are: they are written aside and synced, renamed into place, the
arrays first, and the directory is synced before the state is named to anybody. Deleting goes the
other way round. So a crash between any two operations leaves a state that is whole, or one that is
not there and a stray file that `DirectoryLake.delete_unreferenced` sweeps.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ptklib.encoding.state_digest import digest_of
from ptkstore.api.paging import check_limit
from ptkstore.lake.protocol import (
    ARRAYS,
    GRACE_SECONDS,
    MANIFEST,
    STATES,
    LakeUnavailable,
    StateDamaged,
    StateMissing,
    check_digest,
    checked_state,
    state_key,
)
from ptkstore.private_files import sync_directory

__all__ = ["DirectoryLake"]

_WITNESSES = "witness"


class DirectoryLake:
    """A `Lake` in a directory of its own, made if missing.

    Sweeping excludes everything else by a lock on the directory.
    """

    def __init__(self, path: str | Path) -> None:
        """Make the directory."""
        self._root = Path(path).absolute()
        self._states = self._root / STATES
        self._aside = self._root / "tmp"
        with _translated():
            for directory in (self._root, self._states, self._aside):
                _make_directory(directory)
            # States are public, and yet whoever runs the store says who sees them. One that is not
            # ours stays as it is.
            with suppress(PermissionError):
                if self._root.stat().st_mode & 0o077:
                    self._root.chmod(0o700)

    def put(self, arrays: bytes, manifest: bytes) -> str:
        """See `Lake.put`."""
        digest = digest_of(arrays, manifest)
        with self._locked(fcntl.LOCK_SH):
            if not self._refreshed(digest):
                self._write(digest, arrays, manifest)
        return digest

    def get(self, digest: str) -> tuple[bytes, bytes]:
        """See `Lake.get`."""
        check_digest(digest)
        with self._locked(fcntl.LOCK_SH):
            return self._read(digest)

    def exists(self, digest: str) -> bool:
        """See `Lake.exists`."""
        check_digest(digest)
        with _translated():
            return all(self._path(digest, suffix).is_file() for suffix in (MANIFEST, ARRAYS))

    def list(self, *, limit: int | None = None, after: str | None = None) -> tuple[str, ...]:
        """See `Lake.list`."""
        check_limit(limit)
        first = "" if after is None else check_digest(after)
        states = []
        with _translated():
            for directory in sorted(self._states.iterdir()):
                if directory.name < first[:2]:
                    continue
                digests = {digest for digest in _digests(directory, MANIFEST) if digest > first}
                states.extend(sorted(digests & _digests(directory, ARRAYS)))
                if limit is not None and len(states) >= limit:
                    return tuple(states[:limit])
        return tuple(states)

    def delete_unreferenced(
        self, keep: Collection[str], *, grace_seconds: float = GRACE_SECONDS
    ) -> tuple[str, ...]:
        """See `Lake.delete_unreferenced`.

        Age is told by the files' times, on the clock of this machine.
        """
        kept = {check_digest(digest) for digest in keep}
        newest = time.time() - grace_seconds
        deleted = []
        with self._locked(fcntl.LOCK_EX):
            for directory in sorted(self._states.iterdir()):
                manifests, arrays = _digests(directory, MANIFEST), _digests(directory, ARRAYS)
                for digest in sorted((manifests | arrays) - kept):
                    if self._changed(digest) <= newest:
                        self._delete(digest)
                        if digest in manifests:
                            deleted.append(digest)
            for stray in self._aside.iterdir():
                if stray.stat().st_mtime <= newest:
                    os.unlink(stray)
        return tuple(deleted)

    def put_witness(self, name: str, body: bytes) -> None:
        """See `Lake.put_witness`."""
        path = self._witness(name)
        with self._locked(fcntl.LOCK_SH):
            _make_directory(path.parent)
            os.replace(self._write_aside(body), path)
            sync_directory(path.parent)

    def get_witness(self, name: str) -> bytes | None:
        """See `Lake.get_witness`."""
        with _translated():
            return _bytes(self._witness(name))

    def witnesses(self) -> tuple[str, ...]:
        """See `Lake.witnesses`."""
        with _translated():
            paths = (self._root / _WITNESSES).glob("*" + MANIFEST)
            return tuple(sorted(path.name.removesuffix(MANIFEST) for path in paths))

    def _witness(self, name: str) -> Path:
        return self._root / _WITNESSES / (check_digest(name) + MANIFEST)

    def _path(self, digest: str, suffix: str) -> Path:
        return self._root / state_key(digest, suffix)

    def _refreshed(self, digest: str) -> bool:
        """True when the state is there and sound; its age then starts anew."""
        try:
            self._read(digest)
        except (StateMissing, StateDamaged):
            return False
        for suffix in (ARRAYS, MANIFEST):
            os.utime(self._path(digest, suffix))
        return True

    def _read(self, digest: str) -> tuple[bytes, bytes]:
        return checked_state(digest, lambda suffix: _bytes(self._path(digest, suffix)))

    def _write(self, digest: str, arrays: bytes, manifest: bytes) -> None:
        directory = self._path(digest, "").parent
        _make_directory(directory)
        # Both are on disk before either has its name.
        ready = [(ARRAYS, self._write_aside(arrays)), (MANIFEST, self._write_aside(manifest))]
        for suffix, path in ready:
            os.replace(path, self._path(digest, suffix))
        sync_directory(directory)

    def _write_aside(self, data: bytes) -> Path:
        path = self._aside / secrets.token_hex(16)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)
        return path

    def _changed(self, digest: str) -> float:
        paths = [self._path(digest, suffix) for suffix in (ARRAYS, MANIFEST)]
        return max(path.stat().st_mtime for path in paths if path.exists())

    def _delete(self, digest: str) -> None:
        for suffix in (MANIFEST, ARRAYS):
            path = self._path(digest, suffix)
            if path.exists():
                os.unlink(path)
                sync_directory(path.parent)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        with _translated():
            descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, how)
                yield
            finally:
                os.close(descriptor)


def _digests(directory: Path, suffix: str) -> set[str]:
    return {path.name[: -len(suffix)] for path in directory.iterdir() if path.name.endswith(suffix)}


def _make_directory(path: Path) -> None:
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path)
        sync_directory(path.parent)


def _bytes(path: Path) -> bytes | None:
    """What is in a file, or None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LakeUnavailable(
            "LAKE_UNAVAILABLE",
            f"the lake cannot be used now: {type(error).__name__}: {error.strerror}",
        ) from error
