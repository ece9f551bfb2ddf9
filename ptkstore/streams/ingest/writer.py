"""Ingest: batches in, durable encrypted frames out, sealed blocks at the end of their span.

`append` returns when every record of the batch is durable, and says nothing about the records but
which of them cannot be in this stream at all (`refused`). What a crash interrupts was not
acknowledged: after it the batch is there as a whole or not at all, and sending it again under the
same number is always safe: numbers count per sender (caller, producer, session; see `accepted`).
Several threads may append; they share fsyncs. One process at a time writes a stream. A writer whose
write failed recovers by itself (`breakdown`).

A sealed block never changes. Which blocks exist, and when they are sealed, follows from watermarks
that the caller declares (or from the clock), never from the event times that were seen: those are
data. Empty spans get sealed blocks like all others.

Accepting a batch goes in this order, and nothing is changed by what is refused: checks of the batch
by itself; is it a duplicate; does it reach too far (`reach`); where do its records go, and who
joins (in memory); make the files of its event times; make the joins durable; make the frames
durable; answer. A crash in between leaves at most users who joined the cohort in which the same
batch will put them when it is sent again (`member_log`), and parts of a batch, which are cut off.
No answer depends on who was seen before, and neither does the number of files that are made or
synced.

Reasons: those of `encoding`, `reach` and `accepted`, NAME_INVALID, SEQ_INVALID, SESSION_INVALID,
WATERMARK_INVALID, WATERMARK_TOO_FAR, SPEC_CHANGED, BLOCK_UNKNOWN, BLOCK_NOT_SEALED, STREAM_LOCKED,
STREAM_CLOSED, STREAM_UNAVAILABLE, STREAM_KEYS_MISSING, STREAM_DAMAGED, FRAME_DAMAGED, STREAM_ENDED.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

import pyarrow as pa

from ptklib.encoding.error_place import kind_of
from ptklib.errors import InvalidInput, Refused, SageError
from ptklib.ledger.slices import check_name
from ptkstore.api.refused import RefusedRecords
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.closing import Closing
from ptkstore.ledger.group_commit import GroupCommit
from ptkstore.streams.blocks.acknowledged import Acknowledged, lost
from ptkstore.streams.blocks.encoding import Encoding
from ptkstore.streams.blocks.file import BlockFile
from ptkstore.streams.blocks.group import BlockPart, make_files, write_parts
from ptkstore.streams.blocks.vault import Vault, replace_durably
from ptkstore.streams.cohorts.cohorts import Cohorts
from ptkstore.streams.faults import BlockRefused, StreamUnavailable
from ptkstore.streams.ingest.breakdown import Breakdown
from ptkstore.streams.ingest.reach import check_reach
from ptkstore.streams.ingest.routing import Checked, Router, Split
from ptkstore.streams.progress.accepted import Verdict, refusal
from ptkstore.streams.progress.exposure import Exposure, exposure_of
from ptkstore.streams.progress.moves import Moves
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.progress.recovery import recover
from ptkstore.streams.progress.senders import Sender, caller_mark
from ptkstore.streams.spans import Spans
from ptkstore.streams.tags import random_tags, user_tags

__all__ = ["MAX_SPANS_AT_ONCE", "Ack", "StreamWriter"]

MAX_SPANS_AT_ONCE = 4096
_SPEC_FILE = "stream.json"
_LEAST_PROOF = 1 << 16
# What the stored form and the cut into blocks depend on: it cannot change once the stream exists.
_FIXED = (
    "name",
    "columns",
    "time_column",
    "unit",
    "user_column",
    "records_per_user",
    "window_seconds",
    "block_seconds",
)


class Ack(NamedTuple):
    """The batch is durable, now or since before. ``watermark_ms`` is where the oldest open block
    begins: public.

    ``refused`` are the records of this batch that were left out, which is for its producer alone;
    sent again, the same.
    """

    duplicate: bool
    watermark_ms: int
    refused: tuple[RefusedRecords, ...] = ()


class _Batch(NamedTuple):
    """A checked batch on its way to the disk."""

    sender: Sender
    seq: int
    checked: Checked


class StreamWriter(Closing):
    """The one writer of a stream. Thread-safe."""

    def __init__(self, store: Path, spec: StreamSpec, clock: Callable[[], float]) -> None:
        """Take the stream's lock and recover. Most people want `open`."""
        self.spec = spec
        self._clock = clock
        self._encoding = Encoding(spec)
        self._spans = Spans(spec)
        self._vault = Vault(store, spec.name)
        self._vault.prepare()
        self._group: GroupCommit[_Batch, Ack] = GroupCommit(self._commit)
        self._breakdown = Breakdown(spec.name)
        # Blocks that a write failed in, and how many bytes it wanted there.
        self._unproven: dict[str, int] = {}
        self._lock = _take_lock(self._vault.keys / "lock", spec.name)
        try:
            self._load()
        except BaseException:
            os.close(self._lock)
            raise

    @classmethod
    def open(
        cls, store: str | Path, spec: StreamSpec, *, clock: Callable[[], float] = time.time
    ) -> Self:
        """Open the stream in the store directory, or make it there.

        Refused: STREAM_LOCKED, SPEC_CHANGED.
        """
        try:
            return cls(Path(store), spec, clock)
        except OSError as error:
            raise StreamUnavailable(
                "STREAM_UNAVAILABLE",
                f"stream {spec.name!r} cannot be opened ({kind_of(error)}): ask again when it can "
                "be written",
                stream=spec.name,
            ) from None

    @property
    def fault(self) -> SageError | None:
        """Why nothing can be written at the moment; None while all is well."""
        return self._breakdown.fault

    @property
    def watermark_ms(self) -> int:
        """Where the oldest open block begins."""
        return self._progress.oldest_open * self._spans.span_ms

    @property
    def sealed_before(self) -> int:
        """The number of the first span that is not sealed."""
        return self._progress.sealed_before

    def append(
        self,
        batch: pa.RecordBatch,
        *,
        producer: str,
        seq: int,
        fingerprint: str | None = None,
        caller: str = "",
        session: str = "",
    ) -> Ack:
        """Make a batch durable. Neither the answer nor a refusal depends on anything but this batch
        and public facts.

        ``seq`` counts the batches of (caller, producer, session) upwards; ``session`` is what
        `begin` gave.
        """
        sender = Sender.checked(caller, producer, session)
        if type(seq) is not int or not 0 <= seq < 2**63:
            raise InvalidInput(
                "SEQ_INVALID", "seq must be a whole number from 0, counting upwards per producer"
            )
        if self.spec.unit == "user" and self._progress.given_up_before is not None:
            raise Refused(
                "STREAM_ENDED",
                f"stream {self.spec.name!r} ended with a restore: make a new one for new users",
            )
        if fingerprint is not None and fingerprint != self.spec.fingerprint:
            raise InvalidInput(
                "SCHEMA_MISMATCH", f"the schema's fingerprint must be {self.spec.fingerprint}"
            )
        columns, refused = self._encoding.encode(batch)
        if self.spec.user_column is None:
            tags = random_tags(len(columns[0]))
        else:
            place = self._encoding.schema.get_field_index(self.spec.user_column)
            tags = user_tags(columns[place], self._tag_key)
        stored = pa.RecordBatch.from_arrays(
            [pa.array(tags), *columns], schema=self._encoding.stored_schema
        )
        ack = self._group.submit(
            _Batch(sender, seq, Checked(stored, tags, self._router.spans_of(stored)))
        )
        return ack._replace(refused=refused) if refused else ack

    def begin(self, *, producer: str = "", caller: str = "") -> str:
        """A new session, whose batches are numbered from 0.

        With a ``producer`` it ends the producer's session before.
        """
        if producer:
            check_name(producer, "producer")
        with self._group.alone():
            self._check_alive()
            session, must_write = self._progress.accepted.issue(caller_mark(caller), producer)
            if must_write:
                self._guarded(self._keep_progress)
            return session

    def require_session(self, *, producer: str, session: str, caller: str = "") -> None:
        """Raise SESSION_ENDED or SESSION_UNKNOWN where nothing in this session would be taken."""
        sender = Sender.checked(caller, producer, session)
        verdict = self._progress.accepted.judge_session(sender)
        if verdict is not Verdict.NEW:
            raise refusal(verdict, sender)

    def check(self) -> None:
        """Recover if a write failed and it is time to try; raise what is wrong, if anything is."""
        with self._group.alone():
            self._check_alive()

    def seal_due(self, watermark_ms: int | None = None) -> list[str]:
        """Seal every block whose span ends at or before the watermark, empty ones too, and return
        their names in order.

        Without a watermark, it is the clock less ``lateness_seconds``. A watermark never goes back:
        an older one seals nothing.
        """
        if watermark_ms is None:
            watermark_ms = int(self._clock() * 1000) - self.spec.lateness_seconds * 1000
        if type(watermark_ms) is not int:
            raise InvalidInput(
                "WATERMARK_INVALID", "watermark_ms must be whole milliseconds since 1970"
            )
        with self._group.alone():
            self._check_alive()
            oldest = watermark_ms // self._spans.span_ms
            if oldest <= self._progress.oldest_open:
                return []
            if oldest - self._progress.oldest_open > MAX_SPANS_AT_ONCE:
                raise InvalidInput(
                    "WATERMARK_TOO_FAR",
                    f"a watermark may pass {MAX_SPANS_AT_ONCE} blocks at once: move it in steps, "
                    "or let the time column's "
                    "lower bound be where the stream begins",
                )
            self._progress.oldest_open = oldest
            return self._guarded(self._move_watermark)

    def sealed(self) -> list[str]:
        """The sealed blocks that have not expired, oldest first."""
        numbers = {
            self._number_of_block(name) for name in self._vault.blocks() if self._vault.holds(name)
        }
        return [
            self._spans.name(number)
            for number in sorted(numbers)
            if self._spans.first <= number < self._progress.sealed_before
        ]

    def expire(self, *blocks: str) -> None:
        """Make sealed blocks unrecoverable, with the late records quarantined in their time.

        Doing it again does nothing.
        """
        numbers = {block: self._spans.block_number(block) for block in blocks}
        for block, number in numbers.items():
            if number >= self._progress.sealed_before:
                raise BlockRefused(
                    "BLOCK_NOT_SEALED", f"block {block!r} is still open", block=block
                )
        with self._group.alone():
            self._check_alive()
            late = [self._spans.quarantine(number) for number in numbers.values()]
            self._guarded(lambda: self._destroy(*blocks, *late))

    def give_up(self, until_ms: int) -> None:
        """After a restore: destroy all that is held, and let nothing from before ``until_ms`` into
        a block ever again.

        What a lost book charged is not known, so no record that may have been charged may meet a
        fresh budget. Records of spans before the first one that begins at or after ``until_ms``
        (and after all that was sealed here) are quarantined. A user-level stream ends
        (STREAM_ENDED): who joined a cohort in the time that was lost is not known. Doing it again
        does nothing more. It does not tell what was there: which open blocks exist depends on event
        times.
        """
        with self._group.alone():
            self._check_alive()
            # Not from the spans of what is held: event times are data. What was never sealed was
            # never charged either.
            fence = max(-(-until_ms // self._spans.span_ms), self._progress.oldest_open)
            self._guarded(lambda: self._give_up(fence))

    def exposure(self, dp_counts: Mapping[str, int]) -> Exposure:
        """What the stream still holds; ``dp_counts`` are the published DP counts by block."""
        return exposure_of(
            self.spec, self._spans, self.sealed(), self._progress.oldest_open, dp_counts
        )

    def close(self) -> None:
        """Give up the stream's lock. Everything acknowledged is durable already."""
        with self._group.alone():
            try:
                self._acknowledged.close()
            finally:
                if self._lock >= 0:
                    os.close(self._lock)
                    self._lock = -1
                self._breakdown.closed()

    def _commit(
        self, batches: list[_Batch], _more: Callable[[], None]
    ) -> list[Ack | BaseException]:
        self._check_alive()
        return self._guarded(lambda: self._write_group(batches))

    def _write_group(self, batches: list[_Batch]) -> list[Ack | BaseException]:
        """Answers for all; the files, members and frames of those that are accepted become durable
        before.
        """
        if self._cohorts is not None:
            self._cohorts.begin()
        fresh: set[tuple[Sender, int]] = set()
        parts: list[BlockPart] = []
        begins: list[str] = []
        users = 0
        answers: list[Ack | BaseException] = []
        for sender, seq, checked in batches:
            verdict = self._progress.accepted.judge(sender, seq)
            duplicate = verdict is Verdict.DUPLICATE or (sender, seq) in fresh
            if verdict is not Verdict.NEW and not duplicate:
                answers.append(refusal(verdict, sender, seq))
                continue
            if not duplicate:
                try:
                    split = self._split(checked)
                except SageError as error:
                    answers.append(error)
                    continue
                total = len(split.parts)
                parts += [
                    BlockPart(name, rows, sender.text, seq, k, total)
                    for k, (name, rows) in enumerate(split.parts)
                ]
                begins += split.begins
                users += split.users
                fresh.add((sender, seq))
            answers.append(Ack(duplicate, self.watermark_ms))
        self._write(parts, begins, users)
        self._progress.accepted.update(fresh)
        return answers

    def _split(self, checked: Checked) -> Split:
        """Refuse a batch that reaches too far, by public facts alone; then say where its records
        go.
        """
        oldest_open = self._progress.oldest_open
        check_reach(self._spans, checked.spans, oldest_open, self.spec.horizon_blocks)
        return self._router.split(checked, oldest_open)

    def _write(self, parts: list[BlockPart], begins: list[str], users: int) -> None:
        """Files, then who joins, then frames.

        Of ``users`` users each could have touched another of the open files.
        """
        if not parts:
            return
        try:
            make_files(self._vault, self._files, begins)
            if self._cohorts is not None:
                self._cohorts.settle()
            write_parts(self._files, parts, least_syncs=min(users, len(self._files)))
            self._acknowledge(
                self._files[name] for name in dict.fromkeys(part.block for part in parts)
            )
        except BaseException:
            self._unproven = dict.fromkeys((part.block for part in parts), _LEAST_PROOF)
            for part in parts:
                self._unproven[part.block] += part.rows.nbytes
            raise

    def _guarded(self, work: Callable[[], list]) -> list:  # type: ignore[type-arg]
        """Run what writes.

        After a failure what is durable is uncertain: nothing is taken before `_heal` has found out.
        """
        try:
            return work()
        except SageError:
            raise
        except Exception as error:
            self._breakdown.failed(error)
        except BaseException as error:
            self._breakdown.failed(error)
            raise
        self._breakdown.require()
        raise AssertionError

    def _check_alive(self) -> None:
        if self._breakdown.due():
            self._heal()
        self._breakdown.require()

    def _heal(self) -> None:
        """Begin again with what is on the disk, as after a crash; the stream's lock stays ours."""
        try:
            for file in self._files.values():
                # Nobody was promised what lies beyond: it is not to be found durable because it can
                # be read.
                file.roll_back()
                file.close()
            self._acknowledged.let_go()
            self._load()
            # Reading is no proof: what was to be written must find room.
            for name in [block for block in self._unproven if block in self._files]:
                self._files[name].prove(self._unproven[name])
            self._unproven = {}
        except Exception as error:
            self._breakdown.failed(error)
        else:
            self._breakdown.healed()

    def _load(self) -> None:
        """Everything that is remembered between writes, from the disk."""
        self._tag_key = self._vault.tag_key()
        self._keep_spec()
        self._progress = Progress.read(self._vault.files, self._spans.first)
        self._acknowledged = Acknowledged(self._vault, self._tag_key)
        try:
            recovered = recover(self._vault, self._spans, self._progress, self._acknowledged)
            # ``dropped``: recovery cut off what nobody had been promised.
            self._files, self.dropped = recovered.files, recovered.dropped
            user_level = self.spec.unit == "user"
            self._cohorts = (
                Cohorts(self._vault, self._tag_key, self._progress) if user_level else None
            )
            self._router = Router(self.spec, self._spans, self._cohorts)
            self._router.given_up_before = self._progress.given_up_before
            self._moves = Moves.read(self._vault.files)
            if not self._moves.known:
                self._note_move()
            self._finish_sealing()
        except BaseException:
            self._acknowledged.let_go()
            raise

    def _keep_progress(self) -> list[str]:
        self._progress.write(self._vault.files)
        return []

    def _move_watermark(self) -> list[str]:
        self._note_move()
        self._progress.write(self._vault.files)
        return self._finish_sealing()

    def _note_move(self) -> None:
        """Before it is made: a move that is noted and not made is noted again when it is."""
        held = [self._spans.number(name) for name in self.sealed()]
        now_ms = int(self._clock() * 1000)
        self._moves.add(
            self._progress.oldest_open, now_ms, min([*held, self._progress.sealed_before])
        )

    def _finish_sealing(self) -> list[str]:
        """Seal everything before the oldest open span; `Progress` remembers that it is done."""
        progress = self._progress
        if progress.sealed_before == progress.oldest_open:
            return []
        numbers = range(progress.sealed_before, progress.oldest_open)
        sealed = []
        for number in numbers:
            name = self._spans.name(number)
            self._file(name).seal()
            sealed.append(self._files.pop(name))
            self._files.pop(self._spans.quarantine(number), None)
        self._acknowledge(sealed, sealed_before=progress.oldest_open)
        progress.sealed_before = progress.oldest_open
        progress.write(self._vault.files)
        return [self._spans.name(number) for number in numbers]

    def _acknowledge(self, files: Iterable[BlockFile], *, sealed_before: int | None = None) -> None:
        """Note how far files are durable, durably, before anybody hears of it."""
        extents = {file.block: file.extent for file in files}
        if extents:
            self._acknowledged.note(extents, sealed_before=sealed_before)

    def _give_up(self, fence: int) -> list[str]:
        # The raw data first: a crash before the end leaves nothing to charge.
        self._destroy(*self._vault.blocks())
        self._files.clear()
        progress = self._progress
        progress.oldest_open = progress.sealed_before = progress.given_up_before = fence
        self._acknowledged.note({}, sealed_before=fence)
        progress.write(self._vault.files)
        self._router.given_up_before = fence
        return []

    def _destroy(self, *names: str) -> list[str]:
        """Note that these go, then destroy them: what is gone without a note was lost."""
        there = {*self._vault.blocks(), *self._acknowledged.known.extents}
        self._acknowledged.destroying(name for name in names if name in there)
        self._vault.destroy(*names)
        self._acknowledged.destroyed()
        return []

    def _file(self, name: str) -> BlockFile:
        if name not in self._files:
            self._files[name] = BlockFile(self._vault, name)
        return self._files[name]

    def _number_of_block(self, name: str) -> int:
        """The span of a block, before all spans for a quarantine."""
        number = self._spans.number(name)
        return number if name == self._spans.name(number) else self._spans.first - 1

    def _keep_spec(self) -> None:
        """Write the specification down the first time; refuse one that contradicts it later."""
        path = self._vault.files / _SPEC_FILE
        if path.exists():
            before, now = self._read_spec(path).as_json(), self.spec.as_json()
            changed = [field for field in _FIXED if before[field] != now[field]]
            if changed:
                raise InvalidInput(
                    "SPEC_CHANGED",
                    f"stream {self.spec.name!r} exists with other {', '.join(changed)}: make a new "
                    "stream",
                    fields=changed,
                )
        replace_durably(path, self.spec.to_json_text().encode())

    def _read_spec(self, path: Path) -> StreamSpec:
        try:
            return StreamSpec.from_json_text(path.read_bytes())
        except (SageError, ValueError):
            raise lost(self.spec.name, "the specification") from None


def _take_lock(path: Path, stream: str) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise StreamUnavailable(
            "STREAM_LOCKED",
            f"stream {stream!r} is being written by another writer: one at a time",
            stream=stream,
        ) from None
    return descriptor
