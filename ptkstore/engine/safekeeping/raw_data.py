"""Is everything there that was acknowledged, and is it as it was written? What the doctor says of
the files of streams.

Frames are authenticated, and what is in them is dropped at once: the answer depends on the disk,
never on a record. A writer may be at work meanwhile: what it destroys or adds is no finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptklib.errors import SageError
from ptkstore.api.views import Finding
from ptkstore.engine.parts import Parts
from ptkstore.ledger.key_file import read_key
from ptkstore.streams.blocks.acknowledged import lost, read_known
from ptkstore.streams.blocks.file import walk
from ptkstore.streams.blocks.frames import unlock
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.faults import BlockRefused
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.progress.recovery import check_promises
from ptkstore.streams.spans import Spans

__all__ = ["examine_raw_data"]

# How often a stream is looked at before what is found is believed: a writer may have been between
# two steps.
_LOOKS = 3


def examine_raw_data(parts: Parts) -> Iterator[Finding]:
    """One finding per stream."""
    for name in sorted(parts.specs):
        vault, spans = Vault(parts.path, name), Spans(parts.specs[name])
        if not vault.files.exists():
            continue
        for look in range(_LOOKS):
            try:
                _look(vault, spans)
            except (SageError, FileNotFoundError) as error:
                if look + 1 == _LOOKS:
                    told = (
                        f"{error.reason}: {error.message}"
                        if isinstance(error, SageError)
                        else "a file is gone"
                    )
                    yield Finding("ERROR", f"raw data of {name}", told)
            else:
                yield Finding(
                    "OK",
                    f"raw data of {name}",
                    "all that was acknowledged is there, and as it was written",
                )
                break


def _look(vault: Vault, spans: Spans) -> None:
    known = read_known(vault, read_key(vault.keys / "tags.key"))
    progress = Progress.read(vault.files, spans.first)
    if known is None:
        return
    check_promises(vault, spans, progress.sealed_before, progress.oldest_open, known)
    for name, extent in known.extents.items():
        _authenticate(vault, name, extent.length)


def _authenticate(vault: Vault, name: str, length: int) -> None:
    try:
        cipher = vault.key(name)
        with vault.reading(name) as descriptor:
            stop = 0
            for placed_frame in walk(descriptor):
                if placed_frame.frame.stop > length:
                    break
                if unlock(cipher, vault.stream, name, placed_frame.frame, descriptor) is None:
                    break
                stop = placed_frame.frame.stop
    except BlockRefused:
        # Destroyed meanwhile, or else the next look says so.
        return
    if stop != length:
        raise lost(vault.stream, "a block")
