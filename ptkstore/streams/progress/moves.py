"""When the watermark of a stream moved, by the clock on the wall, to the minute: how long what is
held has been held at least.

A move is (the span that was the oldest open one from then on, the time). A block is sealed by the
first move beyond its span; what arrives late goes to the oldest open span. Both follow from
watermarks: public. Moves that no held block depends on are forgotten; beyond `MOST` the oldest ones
are. A file that is damaged or missing tells of nothing: it is for the doctor alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ptklib.encoding.canonical import canonical
from ptkstore.streams.blocks.vault import replace_durably

__all__ = ["MOST", "Moves"]

MOST = 5000
# Times that are written down are no finer, and rounded up: finer ones tell how long sealing took.
_GRAIN_MS = 60_000
_FILE = "moves.json"


class Moves:
    """The moves of one stream, oldest first."""

    def __init__(self, folder: Path, moves: Sequence[tuple[int, int]] = ()) -> None:
        """Most people want `read`."""
        self._path = folder / _FILE
        self._moves = list(moves)

    @classmethod
    def read(cls, folder: Path) -> Moves:
        """What is known."""
        try:
            body = json.loads((folder / _FILE).read_bytes())
            return cls(folder, [(int(span), int(at_ms)) for span, at_ms in body["moves"]])
        except (OSError, ValueError, KeyError, TypeError):
            return cls(folder)

    @property
    def known(self) -> bool:
        """False for a stream that has not been written since moves are kept."""
        return bool(self._moves)

    @property
    def last_ms(self) -> int | None:
        """When the span that is open now became the oldest open one."""
        return self._moves[-1][1] if self._moves else None

    def sealed_ms(self, span: int) -> int | None:
        """When the block of a span was sealed; None where that is not known."""
        return next((at_ms for oldest_open, at_ms in self._moves if oldest_open > span), None)

    def add(self, oldest_open: int, at_ms: int, oldest_held: int) -> None:
        """Make a move durable. ``oldest_held`` is the first span of which something is held."""
        kept = [move for move in self._moves if move[0] > oldest_held]
        self._moves = [*kept, (oldest_open, -(-at_ms // _GRAIN_MS) * _GRAIN_MS)][-MOST:]
        replace_durably(self._path, canonical({"moves": [list(move) for move in self._moves]}))
