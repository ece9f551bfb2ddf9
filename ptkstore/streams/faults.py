"""What can go wrong with a stream beyond wrong arguments. Messages name streams, blocks and columns, never contents.

::

    SageError
    ├── Refused
    │   └── BlockRefused       the block is open, expired or unknown
    ├── StreamUnavailable      the stream cannot be written now; nothing was acknowledged; asking again is safe
    └── StreamDamaged          what is on disk is not what was written
"""

from __future__ import annotations

from ptklib.errors import Refused, SageError

__all__ = ["BlockRefused", "StreamDamaged", "StreamUnavailable"]


class BlockRefused(Refused):
    """The block is still open, expired, or unknown."""


class StreamUnavailable(SageError):
    """The stream cannot be written now (disk full, closed, in use elsewhere). Nothing was acknowledged."""


class StreamDamaged(SageError):
    """A file of the stream is not what was written."""
