"""Telling the disk to begin early.

A plain write leaves everything in the page cache and the disk idle until the fsync.
`start_writeback` asks the kernel to begin with a range at once (``sync_file_range``, Linux), so
that the fsync which follows finds less to do. It promises nothing: durable is what the fsync says
is durable, and a page may reach the disk before it at any time anyway. Where the call does not
exist or is not allowed nothing happens.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable

__all__ = ["start_writeback"]

# SYNC_FILE_RANGE_WRITE: begin, wait for nothing. It leaves errors of the disk for the fsync to
# report.
_BEGIN = 2
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP, errno.ESPIPE}


def start_writeback(descriptor: int, offset: int, length: int) -> None:
    """Ask for a range of a file to be written to the disk.

    Raises OSError where the kernel fails to begin.
    """
    if (
        _sync_file_range is None
        or length == 0
        or _sync_file_range(descriptor, offset, length, _BEGIN) == 0
    ):
        return
    number = ctypes.get_errno()
    if number not in _UNSUPPORTED:
        raise OSError(number, os.strerror(number))


def _found() -> Callable[[int, int, int, int], int] | None:
    call = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if call is None:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    call.restype = ctypes.c_int
    return call  # type: ignore[no-any-return]


_sync_file_range = _found()
