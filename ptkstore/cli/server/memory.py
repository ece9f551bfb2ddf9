"""Memory for a process that handles megabytes all day long.

The C library gives large buffers back to the system as soon as they are free and asks for them
again with the next batch; the system then clears every page of them, which costs a server more than
checking and encrypting the records.
"""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

# Parameters of glibc's mallopt.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# Larger buffers are given back at once, smaller ones when so much is free. glibc's own limit for
# the first is 32 MB.
_LARGEST_KEPT = 32 << 20
_KEPT = 256 << 20


def keep_freed_memory() -> bool:
    """Keep up to 256 MB of freed memory for the next batches.

    False where the C library is not glibc: nothing changes.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))
