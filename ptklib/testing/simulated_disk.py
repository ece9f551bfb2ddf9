"""A disk that can lose power: real SQLite on simulated files, crashing between any two writes.

`SimulatedDisk` is a SQLite VFS in memory (through apsw). A write is visible at once and durable
only once the file is synced. At a power cut every write since the last sync of its file may
survive, be lost, or be torn at a sector, each by itself, as real disks do. `crash_after(n)` cuts
the power before the n-th disk operation from now: the statement in progress raises `PowerCut`, and
`after_crash()` gives the disk as the next start finds it.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import apsw

__all__ = ["PowerCut", "SimulatedDisk"]

_SECTOR = 512
_names = itertools.count()


class PowerCut(Exception):
    """The simulated machine lost power in the middle of an operation."""


class _File:
    """Bytes as the running machine sees them, as the platter has them, and the writes in
    between.
    """

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = bytearray(durable)
        self.visible = bytearray(durable)
        self.pending: list[tuple[int, bytes | None]] = []

    def write(self, offset: int, data: bytes) -> None:
        self.pending.append((offset, data))
        _write(self.visible, offset, data)

    def truncate(self, size: int) -> None:
        self.pending.append((size, None))
        del self.visible[size:]

    def sync(self) -> None:
        self.durable = bytearray(self.visible)
        self.pending.clear()

    def survivors(self, rng: random.Random) -> bytes:
        """What is on the platter after a power cut."""
        image = bytearray(self.durable)
        for offset, data in self.pending:
            fate = rng.random()
            if fate < 0.4:
                continue
            if data is None:
                del image[offset:]
            elif fate < 0.6:
                _write(image, offset, data[: rng.randrange(len(data) // _SECTOR + 1) * _SECTOR])
            else:
                _write(image, offset, data)
        return bytes(image)


def _write(image: bytearray, offset: int, data: bytes) -> None:
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


class SimulatedDisk(apsw.VFS):
    """A small world of files that SQLite uses through its VFS interface."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        """Files that are there already, durable."""
        self.name = f"simulated-disk-{next(_names)}"
        self.files = {name: _File(body) for name, body in (files or {}).items()}
        self.operations = 0
        self._crash_at: int | None = None
        self.crashed = False
        super().__init__(self.name, base="")

    def connect(self, name: str) -> Any:
        """A connection to the database file ``name``.

        WAL needs exclusive locking here, for there is no shared memory.
        """
        connection = apsw.Connection(name, vfs=self.name)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Few pages between checkpoints, so that crashes meet them too.
        connection.execute("PRAGMA wal_autocheckpoint = 12")
        return connection

    def crash_after(self, operations: int) -> None:
        """Cut the power before the ``operations``-th write, sync, truncation or deletion from
        now.
        """
        self._crash_at = self.operations + operations

    def calm(self) -> None:
        """The power stays on from now on."""
        self._crash_at = None

    def after_crash(self, rng: random.Random) -> SimulatedDisk:
        """The disk as the next start finds it.

        This one is a ghost from now on: whoever still writes to it changes nothing.
        """
        self.crashed = True
        return SimulatedDisk({name: file.survivors(rng) for name, file in self.files.items()})

    def tick(self) -> None:
        """Count one operation that changes the disk; the power may go here."""
        self.operations += 1
        if not self.crashed and self._crash_at is not None and self.operations >= self._crash_at:
            self.crashed = True
            raise PowerCut

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        """Open or create a file."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        flags[1] = flags[0]
        return _Handle(self, self.files.setdefault(path or f"temporary-{next(_names)}", _File()))

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802, ARG002
        """Delete a file; durable at once."""
        self.tick()
        self.files.pop(name, None)

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: N802, ARG002
        """True when the file is there."""
        return name in self.files

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        """All names are flat."""
        return name


class _Handle:
    """One open file, with the methods SQLite calls."""

    def __init__(self, disk: SimulatedDisk, file: _File) -> None:
        self._disk = disk
        self._file = file

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._file.visible[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.tick()
        self._file.write(offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.tick()
        self._file.truncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        self._disk.tick()
        self._file.sync()

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._file.visible)

    def xLock(self, level: int) -> None:  # noqa: N802
        """One process: every lock is free."""

    def xUnlock(self, level: int) -> None:  # noqa: N802
        """One process: every lock is free."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802, ARG002
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return _SECTOR

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def xClose(self) -> None:  # noqa: N802
        """Nothing to give back."""
