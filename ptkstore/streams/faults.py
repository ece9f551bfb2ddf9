"""What can go wrong with a stream beyond wrong arguments. Messages name streams, blocks and
columns, never contents.

::

    SageError
    ├── Refused
    │   └── BlockRefused       the block is open, expired or unknown
    ├── StreamUnavailable      the stream cannot be written now; nothing was acknowledged; asking again is safe
    └── StreamDamaged          what is on disk is not what was written
"""

from __future__ import annotations

from ptklib.errors import BlockRefused, StreamDamaged, StreamUnavailable

__all__ = ["BlockRefused", "StreamDamaged", "StreamUnavailable"]
