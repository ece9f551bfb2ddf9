"""The parts of a store in one directory, opened together and closed together."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ptklib.errors import SageError
from ptklib.privacy.filters import Filter
from ptkstore.api.times import public_ms
from ptkstore.bus import LocalBus, RedisBus
from ptkstore.engine.asking import Ask, here
from ptkstore.engine.clock_guard import ClockGuard
from ptkstore.engine.following import Followers
from ptkstore.engine.guarded_lake import GuardedLake
from ptkstore.engine.head_guard import HeadGuard
from ptkstore.engine.journal import StepJournal
from ptkstore.engine.leader import Alone, Lead, LeadLost
from ptkstore.engine.notifier import Notifier
from ptkstore.engine.observers import Observers
from ptkstore.engine.specs import Specs
from ptkstore.lake import DirectoryLake, Lake
from ptkstore.ledger import Ledger
from ptkstore.metadata import Metadata
from ptkstore.streams import StreamDamaged, StreamWriter
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.spans import Spans
from ptkstore.workers.inline import InlineWorkers
from ptkstore.workers.processes import ProcessWorkers
from ptkstore.workers.protocol import Workers

__all__ = ["Adapters", "Parts"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Adapters:
    """What opens the parts of a store that live elsewhere; what is None lives in the store's
    directory.
    """

    ledger: Callable[[], Ledger] | None = None
    metadata: Callable[[], Metadata] | None = None
    lake: Callable[[], Lake] | None = None
    bus: Callable[[], LocalBus | RedisBus] | None = None
    workers: Callable[[], Workers] | None = None


@dataclass
class Parts:
    """Ledger, metadata, lake, bus, workers and the writers of all streams."""

    path: Path
    clock: Callable[[], float]
    ledger: Ledger
    metadata: Metadata
    lake: Lake
    bus: LocalBus | RedisBus
    notifier: Notifier
    workers: Workers
    writers: dict[str, StreamWriter] = field(default_factory=dict)
    # Streams whose writer could not be opened when it was wanted last.
    unopened: set[str] = field(default_factory=set)
    opening: threading.Lock = field(default_factory=threading.Lock)
    # Held while a window runs: one at a time.
    cycling: threading.Lock = field(default_factory=threading.Lock)
    # Who may write streams and run windows; changed by a server that shares the store with others.
    lead: Lead = field(default_factory=Alone)
    # Where windows and what-ifs are planned; changed by a server, which serves others meanwhile.
    ask: Ask = here
    # Who hears how far a window has come; tests kill the process there.
    observers: Observers = field(default_factory=Observers)
    # Whether the clock may say how far data has arrived.
    clock_guard: ClockGuard = field(init=False)
    followers: Followers = field(init=False)
    specs: Specs = field(init=False)
    head_guard: HeadGuard = field(init=False)
    # The one way for what windows come to into the metadata.
    journal: StepJournal = field(init=False)

    def __post_init__(self) -> None:
        """Make what needs several parts."""
        self.followers = Followers(self.metadata, self.bus)
        self.specs = Specs(self.metadata)
        self.head_guard = HeadGuard(self.path, self.ledger, self.metadata, self.lake, self._sealed)
        self.journal = StepJournal(
            self.metadata, self.head_guard, lambda: self.lead, self.public_ms
        )
        self.lake = GuardedLake(self.lake, self.head_guard.keep)
        self.clock_guard = ClockGuard(self.path, self.clock, other_ms=self._database_ms)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Callable[[], float] = time.time,
        workers: int | None = None,
        memory_bytes: int | None = None,
        adapters: Adapters | None = None,
    ) -> Parts:
        """Open the store in a directory, or make one there.

        The one place where parts that live elsewhere come in.
        """
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        elsewhere = adapters or Adapters()
        ledger = (
            elsewhere.ledger() if elsewhere.ledger else Ledger.open(path / "ledger.db", clock=clock)
        )
        try:
            metadata = (
                elsewhere.metadata() if elsewhere.metadata else Metadata.open(path / "meta.db")
            )
        except BaseException:
            ledger.close()
            raise
        bus = elsewhere.bus() if elsewhere.bus else LocalBus()
        return cls(
            path=path,
            clock=clock,
            ledger=ledger,
            metadata=metadata,
            lake=elsewhere.lake() if elsewhere.lake else DirectoryLake(path / "lake"),
            bus=bus,
            notifier=Notifier(metadata, bus),
            workers=elsewhere.workers()
            if elsewhere.workers
            else _workers(workers, memory_bytes, path),
        )

    def now_ms(self) -> int:
        """The time, in milliseconds, to reckon with.

        What is written down or told is `public_ms`.
        """
        return int(self.clock() * 1000)

    def public_ms(self) -> int:
        """The time as it is written down: see `ptkstore.api.times`."""
        return public_ms(self.now_ms())

    def _database_ms(self) -> int | None:
        with self.metadata.read() as tx:
            return tx.clock_ms()

    def writer(self, stream: str) -> StreamWriter:
        """The writer of a stream, opened when first used: opening repairs what a crash left."""
        with self.opening:
            self.lead.require_lock()
            if stream not in self.writers:
                self.unopened.add(stream)
                self._require_files(stream)
                self._require_newest(stream)
                self.writers[stream] = StreamWriter.open(
                    self.path, self.specs[stream], clock=self.clock
                )
                self.unopened.discard(stream)
                if self.writers[stream].dropped:
                    self._tell_dropped(stream)
            return self.writers[stream]

    def watermark_ms(self, stream: str) -> int:
        """Where the oldest open block of a stream begins, whoever writes it."""
        try:
            return self.writer(stream).watermark_ms
        except LeadLost:
            spans = Spans(self.specs[stream])
            return (
                Progress.read(Vault(self.path, stream).files, spans.first).oldest_open
                * spans.span_ms
            )

    def close_writers(self) -> None:
        """Let the streams go: another server writes them, or nobody."""
        with self.opening:
            for writer in self.writers.values():
                writer.close()
            self.writers.clear()
            self.unopened.clear()

    def _tell_dropped(self, stream: str) -> None:
        """Recovery cut off what a crash left of batches that nobody was promised.

        Which and how many is nobody's business.
        """
        _LOG.warning(
            "stream %r was recovered: an append that was not acknowledged was cut off", stream
        )
        try:
            with self.metadata.write() as tx:
                tx.events.add(
                    "stream.recovered", stream, {"stream": stream}, at_ms=self.public_ms()
                )
        except SageError as error:
            # The stream is sound all the same, and the log has it.
            _LOG.warning("no event of it could be written: %s", error.reason)

    def _sealed(self) -> dict[str, int]:
        return {name: writer.sealed_before for name, writer in list(self.writers.items())}

    def _require_newest(self, stream: str) -> None:
        """Refuse files that were sealed less far than is known elsewhere: expired records would be
        charged again.
        """
        known = self.head_guard.sealed_before(stream)
        sealed = Progress.read(
            Vault(self.path, stream).files, Spans(self.specs[stream]).first
        ).sealed_before
        if known is not None and sealed < known:
            raise StreamDamaged(
                "STREAM_SET_BACK",
                f"the files of stream {stream!r} are older than is known elsewhere: put the newest "
                "ones back. If an old copy "
                "was put back on purpose, run `sage restore`",
                stream=stream,
            )

    def _require_files(self, stream: str) -> None:
        """A stream that had blocks has files.

        Begun anew, it would take records again that were charged before.
        """
        if not (self.path / "streams" / stream / "stream.json").exists() and self.ledger.blocks(
            stream
        ):
            raise StreamDamaged(
                "STREAM_FILES_MISSING",
                f"stream {stream!r} has blocks in the ledger and no files here: mount them, or run "
                "`sage restore`",
                stream=stream,
            )

    def privacy_filter(self, stream: str) -> Filter:
        """The filter of a stream."""
        return self.specs.privacy_filter(stream)

    def close(self) -> None:
        """Close everything."""
        self.workers.close()
        self.followers.close()
        self.notifier.stop()
        self.bus.close()
        self.close_writers()
        self.metadata.close()
        self.ledger.close()


def _workers(number: int | None, memory_bytes: int | None, path: Path) -> Workers:
    if number == 0:
        return InlineWorkers(memory_bytes)
    return ProcessWorkers(number, memory_bytes, path)
