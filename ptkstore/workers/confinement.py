"""A process that sees records can read code and encrypted blocks, and nothing else: no keys, no
books, no network, no writing.

Uses Landlock (Linux 5.13 and later; no privileges are needed): from then on the process may read
where code lies and the block files of the store, whose keys it is handed one by one. It may not
write, make or remove any file; from Linux 6.7 on it may not open TCP connections, from 6.12 on not
signal other processes. Its own standard output and error lead nowhere: what a PTK, or a library
that it uses, prints may quote records.

This contains what training does, by mistake or by intent. It does not make a package harmless: the
engine imports PTKs to read their configurations, prices and states, and there they can do what the
engine can (docs/threat-model.md).
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["confine", "confinement", "hush", "plain_environment"]

# The same numbers on all architectures.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG, _BENEATH = 1, 1
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
# Accesses to files that each version knows, by the number of bits; to the network from 4 on, to
# other processes from 6 on.
_FILE_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_VERSION, _SCOPE_VERSION = 4, 6
_NET, _SCOPE = 0b11, 0b11
# What interpreters and libraries look at. Not all of /etc, and nothing of other processes: secrets
# live there.
_SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self",
    "/proc/sys",
    "/sys/devices/system",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/passwd",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
)
_NAMES = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_PREFIXES = ("LC_", "PYTHON", "CONDA_", "COVERAGE_")


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scope", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def confinement() -> int:
    """The version of Landlock that the system has; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, 0, _VERSION_FLAG)))


def confine(store: Path) -> bool:
    """Take from this process, for good, what a worker of this store has no need of; False where the
    system cannot.
    """
    version = confinement()
    if version == 0:
        return False
    handled = _Ruleset(
        files=(1 << _FILE_BITS[min(version, max(_FILE_BITS))]) - 1,
        network=_NET if version >= _NET_VERSION else 0,
        scope=_SCOPE if version >= _SCOPE_VERSION else 0,
    )
    size = 8 if version < _NET_VERSION else 16 if version < _SCOPE_VERSION else 24
    libc = _libc()
    ruleset = _checked(libc.syscall(_CREATE, ctypes.byref(handled), ctypes.c_size_t(size), 0))
    try:
        for path, access in _allowed(store.resolve()):
            _allow(libc, ruleset, path, access)
        _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)
    return True


def plain_environment() -> dict[str, str]:
    """The variables of this process that a worker needs: others may hold passwords of databases and
    lakes.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name in _NAMES or name.startswith(_PREFIXES)
    }


def hush() -> None:
    """Let what is printed from here on go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _allowed(store: Path) -> Iterator[tuple[Path, int]]:
    """Paths and what may be done beneath them.

    Never the store's directory, but for its block files.
    """
    code = [entry or os.getcwd() for entry in sys.path]
    roots = {
        Path(path).resolve()
        for path in (*code, sys.prefix, sys.base_prefix, sys.exec_prefix, *_SYSTEM)
    }
    whole = _EXECUTE | _READ_FILE | _READ_DIR
    for root in sorted(roots):
        if store.is_relative_to(root):
            yield from _around(root, store)
        elif not root.is_relative_to(store):
            yield root, whole
    yield Path(os.devnull), _READ_FILE | _WRITE_FILE
    yield store / "streams", _READ_FILE | _READ_DIR


def _around(root: Path, store: Path) -> Iterator[tuple[Path, int]]:
    """Everything beneath a directory but the store, which is in it: names may be listed, files
    beside the way be read.
    """
    yield root, _READ_DIR
    while root != store:
        way = root / store.relative_to(root).parts[0]
        for child in _children(root):
            if child != way:
                yield child, _EXECUTE | _READ_FILE | _READ_DIR
        root = way


def _children(folder: Path) -> Iterable[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return ()


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # What is not there needs no permission.
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= ~_READ_DIR
        rule = _Beneath(access=access, descriptor=descriptor)
        if access:
            _checked(libc.syscall(_ADD, ruleset, _BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)
