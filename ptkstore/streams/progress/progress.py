"""How far a stream is sealed, and which batches it has accepted, in a small file that is replaced
as a whole.

``oldest_open`` moves first, then the blocks before it are sealed, then ``sealed_before`` follows: a
writer that dies between finishes the sealing when it is opened again. ``given_up_before`` is set by
a restore: nothing from before that span ever enters a block again. ``members_kept`` says that the
log of members has been made, so that one that is missing is damage. Public: it depends on
watermarks and on producers' sequence numbers only. Reason: STREAM_DAMAGED.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from ptklib.encoding.canonical import canonical
from ptkstore.streams.blocks.vault import replace_durably
from ptkstore.streams.faults import StreamDamaged
from ptkstore.streams.progress.accepted import Accepted

__all__ = ["Progress"]

_FILE = "progress.json"


@dataclass
class Progress:
    """Numbers of spans; see the module."""

    oldest_open: int
    sealed_before: int
    accepted: Accepted
    given_up_before: int | None = None
    members_kept: bool = False

    @classmethod
    def read(cls, folder: Path, first: int) -> Progress:
        """What the file says, or the beginning where there is none."""
        path = folder / _FILE
        if not path.exists():
            return cls(first, first, Accepted())
        try:
            # Earlier releases wrote no digest.
            text, parted, digest = path.read_bytes().partition(b"\n")
            if parted and digest != _digest(text):
                raise ValueError
            body = json.loads(text)
            given_up = body.get("given_up_before")
            return cls(
                int(body["oldest_open"]),
                int(body["sealed_before"]),
                Accepted(body["accepted"]),
                None if given_up is None else int(given_up),
                bool(body.get("members_kept", False)),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StreamDamaged(
                "STREAM_DAMAGED", f"{_FILE} of stream {folder.name!r} is not as it was written"
            ) from None

    def write(self, folder: Path) -> None:
        """Make it durable."""
        body: dict[str, object] = {
            "oldest_open": self.oldest_open,
            "sealed_before": self.sealed_before,
            "accepted": self.accepted.as_json(),
        }
        if self.given_up_before is not None:
            body["given_up_before"] = self.given_up_before
        if self.members_kept:
            body["members_kept"] = True
        text = canonical(body)
        replace_durably(folder / _FILE, text + b"\n" + _digest(text))


def _digest(text: bytes) -> bytes:
    """Of what is in the file: a digit that flips makes another number, and no error of its own."""
    return hashlib.sha256(text).hexdigest().encode()
