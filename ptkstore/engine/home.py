"""The parts of a store in one directory, opened together and closed together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptklib.privacy.filters import Filter
from ptkstore.bus import LocalBus, Notifier, RedisBus
from ptkstore.engine.following import Followers
from ptkstore.engine.lead import Alone, Lead, LeadLost
from ptkstore.engine.specs import Specs
from ptkstore.lake import DirectoryLake, Lake
from ptkstore.ledger import Ledger
from ptkstore.metadata import Metadata, Transaction
from ptkstore.public_time import public_ms
from ptkstore.streams import StreamDamaged, StreamWriter
from ptkstore.streams.progress import Progress
from ptkstore.streams.spans import Spans
from ptkstore.streams.vault import Vault
from ptkstore.views import CycleView
from ptkstore.workers.pool import WorkerPool

__all__ = ["Adapters", "Home"]


@dataclass(frozen=True, kw_only=True)
class Adapters:
    """What opens the parts of a store that live elsewhere; what is None lives in the store's directory."""

    ledger: Callable[[], Ledger] | None = None
    metadata: Callable[[], Metadata] | None = None
    lake: Callable[[], Lake] | None = None
    bus: Callable[[], LocalBus | RedisBus] | None = None


@dataclass
class Home:
    """Ledger, metadata, lake, bus, workers and the writers of all streams."""

    path: Path
    clock: Callable[[], float]
    ledger: Ledger
    metadata: Metadata
    lake: Lake
    bus: LocalBus | RedisBus
    notifier: Notifier
    workers: WorkerPool
    writers: dict[str, StreamWriter] = field(default_factory=dict)
    # Streams whose writer could not be opened when it was wanted last.
    unopened: set[str] = field(default_factory=set)
    judges: dict[str, Filter] = field(default_factory=dict)
    # Finished cycles as they are told, the newest ones.
    cycles: dict[int, CycleView] = field(default_factory=dict)
    # What was read of the journal for the map of the ledger, by stream, until there is more.
    newest_charges: dict[str, tuple[object, Any]] = field(default_factory=dict)
    # Who spent what, by stream, until there is more.
    spenders: dict[str, tuple[object, Any]] = field(default_factory=dict)
    # Shares of the epsilon that losses amount to, by stream: see the map of the ledger.
    shares: dict[str, dict[tuple[int, ...], float]] = field(default_factory=dict)
    opening: threading.Lock = field(default_factory=threading.Lock)
    # Who may write streams and run windows; changed by a server that shares the store with others.
    lead: Lead = field(default_factory=Alone)
    # Called with the name of every step when its work begins and when it is written; tests kill the process there.
    on_step: Callable[[str, str], None] = lambda _step, _moment: None
    followers: Followers = field(init=False)
    specs: Specs = field(init=False)

    def __post_init__(self) -> None:
        """Make what needs several parts."""
        self.followers = Followers(self.metadata, self.bus)
        self.specs = Specs(self.metadata)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Callable[[], float] = time.time,
        workers: int | None = None,
        adapters: Adapters | None = None,
    ) -> Home:
        """Open the store in a directory, or make one there. The one place where parts that live elsewhere come in."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        elsewhere = adapters or Adapters()
        ledger = elsewhere.ledger() if elsewhere.ledger else Ledger.open(path / "ledger.db", clock=clock)
        try:
            metadata = elsewhere.metadata() if elsewhere.metadata else Metadata.open(path / "meta.db")
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
            workers=WorkerPool(workers),
        )

    def now_ms(self) -> int:
        """The time, in milliseconds, to reckon with. What is written down or told is `public_ms`."""
        return int(self.clock() * 1000)

    def public_ms(self) -> int:
        """The time as it is written down: see `ptkstore.public_time`."""
        return public_ms(self.now_ms())

    def writer(self, stream: str) -> StreamWriter:
        """The writer of a stream, opened when first used: opening repairs what a crash left."""
        with self.opening:
            self.lead.require_lock()
            if stream not in self.writers:
                self.unopened.add(stream)
                self._require_files(stream)
                self.writers[stream] = StreamWriter.open(self.path, self.specs[stream], clock=self.clock)
                self.unopened.discard(stream)
            return self.writers[stream]

    def watermark_ms(self, stream: str) -> int:
        """Where the oldest open block of a stream begins, whoever writes it."""
        try:
            return self.writer(stream).watermark_ms
        except LeadLost:
            spans = Spans(self.specs[stream])
            return Progress.read(Vault(self.path, stream).files, spans.first).oldest_open * spans.span_ms

    @contextmanager
    def writing_step(self) -> Iterator[Transaction]:
        """A transaction for what a window comes to: nothing is written by a server that does not lead any more."""
        with self.metadata.write() as tx:
            self.lead.fence(tx)
            yield tx

    def close_writers(self) -> None:
        """Let the streams go: another server writes them, or nobody."""
        with self.opening:
            for writer in self.writers.values():
                writer.close()
            self.writers.clear()
            self.unopened.clear()

    def _require_files(self, stream: str) -> None:
        """A stream that had blocks has files. Begun anew, it would take records again that were charged before."""
        if not (self.path / "streams" / stream / "stream.json").exists() and self.ledger.blocks(stream):
            raise StreamDamaged(
                "STREAM_FILES_MISSING",
                f"stream {stream!r} has blocks in the ledger and no files here: mount them, or run `sage restore`",
                stream=stream,
            )

    def judge(self, stream: str) -> Filter:
        """The filter of a stream; kept, for it remembers demands."""
        if stream not in self.judges:
            self.judges[stream] = self.specs[stream].policy.filter()
        return self.judges[stream]

    def close(self) -> None:
        """Close everything."""
        self.workers.close()
        self.followers.close()
        self.notifier.stop()
        self.bus.close()
        self.close_writers()
        self.metadata.close()
        self.ledger.close()
