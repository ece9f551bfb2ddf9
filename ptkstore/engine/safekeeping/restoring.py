"""After an old copy was put back: everything before now is given up, so that nothing is spent
twice.

A copy of the ledger from yesterday does not know what was charged since. The releases of that time
are out in the world, so the true loss of any record that was there is unknown, and anything up to
the whole promise. Unit, sensitivity, cost: nothing is read or released here. Why the promise holds
afterwards, for an event-level stream and every record:

- a record that arrived before the restore may have been charged in the lost book. No block that
  could hold it is charged again: blocks that the ledger knows are retired, spans up to now that it
  does not know are entered and retired, raw data that survived is destroyed with its keys, and
  records of that time that are sent again are quarantined (`StreamWriter.give_up`);
- a record that arrives later, from after that moment, was in no lost charge: its loss is what the
  ledger says.

At user level a user may have joined a cohort that nobody remembers, so no later record is known to
be of a fresh user: the stream ends. Streams that the copy does not know are given up with the files
they left. Versions and tokens go back with the metadata; docs/guides/operate says what to do about
them. Reasons: BACKUP_INVALID, STORE_EXISTS.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ptklib.errors import InvalidInput, JournalDamaged
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.guarded_lake import GuardedLake
from ptkstore.engine.head_guard import begin_restoring
from ptkstore.engine.parts import Parts
from ptkstore.engine.safekeeping.agreement import GIVEN_UP
from ptkstore.engine.safekeeping.backup import DATABASES, Backup, read_backup
from ptkstore.lake import DirectoryLake
from ptkstore.ledger.key_file import read_or_make_key
from ptkstore.private_files import sync_directory
from ptkstore.streams import StreamDamaged, StreamWriter
from ptkstore.streams.blocks.acknowledged import forget
from ptkstore.streams.blocks.binding import bind_anew
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.cohorts.cohorts import forget_members
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.spans import Spans

__all__ = ["GivenUp", "give_up_past", "put_back_databases", "put_back_states"]

_AT_ONCE = 10_000


@dataclass(frozen=True, kw_only=True)
class GivenUp:
    """What a restore did to one stream, in public numbers.

    Records from ``goes_on_ms`` on may be trained on; None: it ended.
    """

    stream: str
    blocks_retired: int
    windows_lost: int
    goes_on_ms: int | None


def put_back_databases(backup: Path, path: Path) -> Backup:
    """Put the databases of a backup into a store's directory that has none.

    The store stays shut until `give_up_past`.
    """
    made, _ = read_backup(backup)
    there = [name for name in DATABASES if (path / name).exists()]
    if there:
        raise InvalidInput(
            "STORE_EXISTS",
            f"{path} has a {there[0]} already: move it away, a restore overwrites nothing",
        )
    path.mkdir(parents=True, exist_ok=True)
    begin_restoring(path)
    for name in made.databases:
        _copy_durably(backup / name, path / name)
    sync_directory(path)
    return made


def _copy_durably(source: Path, target: Path) -> None:
    """A copy that nobody else may read."""
    made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with source.open("rb") as old, open(made, "wb") as new:
        shutil.copyfileobj(old, new)
        new.flush()
        os.fsync(new.fileno())


def put_back_states(backup: Path, parts: Parts) -> int:
    """Put every state of a backup into the lake; those that are there stay as they are.

    Returns how many the backup has.
    """
    _, digests = read_backup(backup)
    lake, into = DirectoryLake(backup / "lake"), parts.lake
    # Their charges are older than the ledger that was put back, and the store is shut.
    into = into.behind if isinstance(into, GuardedLake) else into
    for digest in digests:
        into.put(*lake.get(digest))
    return len(digests)


def give_up_past(parts: Parts, until_ms: int) -> list[GivenUp]:
    """Give up everything that arrived before now in all streams; ``until_ms`` is now, or later
    where streams run ahead of it.

    Interrupted, it can be done again. No other process may have the store open.
    """
    begin_restoring(parts.path)
    specs = {**_strays(parts), **parts.specs}
    given_ups = [_give_up(parts, specs[name], until_ms) for name in sorted(specs)]
    for name in sorted(parts.ledger.streams().keys() - specs.keys()):
        _retire_living(parts, name)
    bind_anew(parts.path, parts.ledger)
    parts.head_guard.end_restoring(_sealed(parts))
    return given_ups


def _strays(parts: Parts) -> dict[str, StreamSpec]:
    """Streams that were made after the copy: nobody knows them, but for the files they left."""
    strays = {}
    for file in sorted((parts.path / "streams").glob("*/stream.json")):
        # That of a stream which is known may be damaged: it is written anew.
        if file.parent.name not in parts.specs:
            spec = StreamSpec.from_json_text(file.read_bytes())
            strays[spec.name] = spec
    return strays


def _sealed(parts: Parts) -> dict[str, int]:
    """How far every stream is sealed by now."""
    return {
        name: Progress.read(
            Vault(parts.path, name).files, Spans(parts.specs[name]).first
        ).sealed_before
        for name in parts.specs
    }


def _give_up(parts: Parts, spec: StreamSpec, until_ms: int) -> GivenUp:
    spans = Spans(spec)
    known = parts.ledger.blocks(spec.name) if spec.name in parts.ledger.streams() else []
    # A stream whose watermark ran ahead of the clock goes on after what was sealed.
    ends_ms = max(
        ((spans.block_number(name) + 1) * spans.span_ms for name in known), default=until_ms
    )
    with _writer(parts, spec) as writer:
        writer.give_up(max(until_ms, ends_ms))
        goes_on_ms = writer.watermark_ms
    retired = _retire(parts, spec, goes_on_ms) if spec.name in parts.ledger.streams() else 0
    lost = _close_books(parts, spec) if spec.name in parts.specs else 0
    return GivenUp(
        stream=spec.name,
        blocks_retired=retired,
        windows_lost=lost,
        goes_on_ms=None if spec.unit == "user" else goes_on_ms,
    )


def _writer(parts: Parts, spec: StreamSpec) -> StreamWriter:
    """The stream's writer, whatever state its files are in: what is damaged, or has lost its keys,
    goes as well.
    """
    try:
        return StreamWriter.open(parts.path, spec, clock=parts.clock)
    except (StreamDamaged, JournalDamaged):
        _start_over(Vault(parts.path, spec.name), spec)
        return StreamWriter.open(parts.path, spec, clock=parts.clock)


def _start_over(vault: Vault, spec: StreamSpec) -> None:
    """Leave nothing to read, and nothing that is damaged.

    How far the stream was sealed is kept where it can be read.
    """
    vault.destroy(*vault.blocks())
    forget(vault)
    tags = vault.keys / "tags.key"
    try:
        key = read_or_make_key(tags)
    except JournalDamaged:
        tags.unlink()
        key = read_or_make_key(tags)
    (vault.files / "stream.json").unlink(missing_ok=True)
    first = Spans(spec).first
    try:
        Progress.read(vault.files, first)
    except StreamDamaged:
        (vault.files / "progress.json").unlink()
    if spec.unit == "user":
        _forget_members(vault, key, first)


def _forget_members(vault: Vault, key: bytes, first: int) -> None:
    """Who has joined may be what cannot be read; the stream ends, and takes nobody any more."""
    progress = Progress.read(vault.files, first)
    progress.members_kept = False
    progress.write(vault.files)
    forget_members(vault, key)


def _retire(parts: Parts, spec: StreamSpec, goes_on_ms: int) -> int:
    """Retire all living blocks, and the spans after the newest known one: no later copy of their
    data may be charged.

    With its block a charge gives its key up, so metadata that are older than the ledger may use the
    numbers of cycles again.
    """
    ledger, spans = parts.ledger, Spans(spec)
    known = {spans.block_number(name) for name in ledger.blocks(spec.name)}
    if known:
        gap = [spans.name(number) for number in range(max(known) + 1, goes_on_ms // spans.span_ms)]
        for start in range(0, len(gap), _AT_ONCE):
            ledger.add_blocks(spec.name, gap[start : start + _AT_ONCE])
    return _retire_living(parts, spec.name)


def _retire_living(parts: Parts, stream: str) -> int:
    living = parts.ledger.blocks(stream, retired=False)
    for start in range(0, len(living), _AT_ONCE):
        parts.ledger.retire(stream, living[start : start + _AT_ONCE], why=GIVEN_UP)
    return len(living)


def _close_books(parts: Parts, spec: StreamSpec) -> int:
    """In the metadata: blocks that are not there any more, and windows that will never be
    finished.
    """
    now_ms = parts.public_ms()
    with parts.metadata.write() as tx:
        tx.blocks.give_up(spec.name)
        windows = tx.cycles.give_up(spec.name, at_ms=now_ms)
        tx.events.add(
            "stream.restored",
            spec.name,
            {"stream": spec.name, "windows": windows},
            at_ms=now_ms,
        )
    return windows
