"""Work whose loss would waste a charge: done again while the metadata, the lake, the ledger or the
disk cannot be used.

What was trained or counted is paid for and exists in memory only. A server that is away for a
moment must not cost it, so what makes it durable is tried again for a good while, and only then
given up. Whoever uses this does the same again without harm.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

from ptklib.errors import JournalUnavailable
from ptkstore.backoff import SERVER_AWAY
from ptkstore.lake import LakeUnavailable
from ptkstore.metadata import MetadataConflict, MetadataUnavailable
from ptkstore.streams.faults import StreamUnavailable

__all__ = ["NOT_NOW", "PATIENCE_SECONDS", "passes", "patiently"]

# What goes by itself.
NOT_NOW = (
    JournalUnavailable,
    LakeUnavailable,
    MetadataConflict,
    MetadataUnavailable,
    StreamUnavailable,
)
# No room, no descriptors, no memory.
_SCARCE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
PATIENCE_SECONDS = 300.0

Result = TypeVar("Result")


def passes(error: BaseException) -> bool:
    """True for what goes by itself: something is away, or there is not enough of something at the
    moment.
    """
    return isinstance(error, NOT_NOW) or (isinstance(error, OSError) and error.errno in _SCARCE)


def patiently(work: Callable[[], Result], *, seconds: float = PATIENCE_SECONDS) -> Result:
    """``work()``, again while something it needs is away; what it says after ``seconds`` is
    final.
    """
    deadline, attempt = time.monotonic() + seconds, 0
    while True:
        try:
            return work()
        except Exception as error:
            if not passes(error):
                raise
            attempt += 1
            delay = SERVER_AWAY.seconds(attempt)
            if time.monotonic() + delay > deadline:
                raise
            time.sleep(delay)
