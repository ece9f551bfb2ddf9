"""The ledger as people use it: durable, shared by threads and processes, and never behind what it
has promised.

A method returns only when its effect is durable. A refusal changes nothing. What a crash interrupts
either happened as a whole or did not happen; asking again with the same ``key`` finds out which.
Charges that were spent stay spent.

::

    with Ledger.open("budget/ledger.db") as ledger:
        ledger.create_stream("rides", Policy(epsilon=1, delta="1e-6"))
        ledger.add_blocks("rides", ["2026-01-01", "2026-01-02"])
        grant = ledger.reserve("rides", [Slice(("2026-01-01",))], PureCost(epsilon="0.1"))
        ledger.spend(grant)  # now, and only now, may the data be opened
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Self

from ptklib.encoding.mac import mac_of
from ptklib.errors import BudgetExceeded, GrantRefused, InvalidInput
from ptklib.ledger import queries
from ptklib.ledger.commands import (
    AddBlocks,
    Command,
    CreateStream,
    Expire,
    Release,
    Reserve,
    ReserveAll,
    Retire,
    SetQuota,
    Spend,
)
from ptklib.ledger.decide import check_spend
from ptklib.ledger.grants import Grant, issue, verify
from ptklib.ledger.lookup import stream_of
from ptklib.ledger.loss_map import LossMap
from ptklib.ledger.policy import Policy
from ptklib.ledger.queries import BlockView, Rest
from ptklib.ledger.slices import WHOLE, Slice, TagRange, names_of
from ptklib.ledger.snapshot import digest
from ptklib.ledger.state import Block, Entry
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptkstore.closing import Closing
from ptkstore.ledger.journals.chain import Commit, Head
from ptkstore.ledger.journals.protocol import DurableJournal
from ptkstore.ledger.journals.sqlite import Journal, connect
from ptkstore.ledger.key_file import read_key, read_or_make_key
from ptkstore.ledger.postgres.journal import PostgresJournal, connector
from ptkstore.ledger.verification import VerifiedLedger, verify_journal
from ptkstore.ledger.writer import Turn, Writer

__all__ = ["DEFAULT_TTL_SECONDS", "SNAPSHOT_EVERY", "BlockLoss", "Ledger"]

DEFAULT_TTL_SECONDS = 3600
SNAPSHOT_EVERY = 20_000
_MAX_JUDGED = 4096
_MAX_TTL_SECONDS = 10 * 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class BlockLoss:
    """What was spent at one block; ``index`` is its place among all blocks of the stream."""

    index: int
    name: str
    retired: bool
    loss: LossMap


def _loss_of(block: Block) -> BlockLoss:
    # Losses of living blocks go on changing when the lock is gone; those of closed ones never do.
    loss = (
        block.loss
        if block.retired is not None
        else LossMap(list(block.loss.starts), block.loss.rows.copy())
    )
    return BlockLoss(block.index, block.name, block.retired is not None, loss)


class Ledger(Closing):
    """A durable ledger. Thread-safe; several processes may open the same file or database."""

    def __init__(
        self,
        journal: DurableJournal,
        key: bytes,
        *,
        clock: Callable[[], float] = time.time,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        """Take over an open journal and replay it. Most people want `open`."""
        self._key = key
        self._clock = clock
        self._writer = Writer(journal, snapshot_every)
        # What is left at losses that were looked at before, by stream; used in the writer's quiet
        # alone.
        self._judged: dict[str, dict[bytes, Fraction]] = {}

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        key_path: str | Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the ledger in a file or at the URL of a PostgreSQL database, or make one there.

        The key of a file lies beside it as ``place.key`` unless told otherwise. For a database
        ``key_path`` must be given (LEDGER_URL_INVALID): the key never lies in the database, and
        every server that shares the book needs the same one.
        """
        if isinstance(place, str) and "://" in place:
            return cls._open_database(place, key_path, clock)
        path = Path(place)
        key_file = Path(key_path) if key_path is not None else path.with_name(path.name + ".key")
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not path.exists() or path.stat().st_size == 0
        key = read_or_make_key(key_file) if fresh else read_key(key_file)
        connection = connect(path)
        try:
            return cls(Journal(connection, key), key, clock=clock)
        except BaseException:
            connection.close()
            raise

    @classmethod
    def _open_database(
        cls, url: str, key_path: str | Path | None, clock: Callable[[], float]
    ) -> Self:
        if not url.startswith("postgresql") or key_path is None:
            raise InvalidInput(
                "LEDGER_URL_INVALID",
                "a ledger lives in a file, or in a PostgreSQL database with its key in a file of "
                "its own (key_path)",
            )
        key_file = Path(key_path)
        journal = PostgresJournal(
            connector(url), lambda fresh: (read_or_make_key if fresh else read_key)(key_file)
        )
        try:
            return cls(journal, read_key(key_file), clock=clock)
        except BaseException:
            journal.close()
            raise

    def create_stream(self, stream: str, policy: Policy) -> None:
        """Open a stream with its promise. Refused: STREAM_EXISTS."""
        self._do(CreateStream(stream, policy))

    def add_blocks(self, stream: str, blocks: Iterable[str]) -> None:
        """Add blocks, in order. Refused: STREAM_UNKNOWN, BLOCK_EXISTS."""
        self._do(AddBlocks(stream, names_of(blocks, "blocks")))

    def set_quota(self, stream: str, context: str, share: Number) -> None:
        """Let ``context`` use at most ``share`` of the capacity at every point, past charges
        included.
        """
        self._do(SetQuota(stream, context, share))

    def retire(self, stream: str, blocks: Iterable[str], *, why: str) -> None:
        """Close blocks for good. Refused: BLOCK_UNKNOWN, BLOCK_RETIRED."""
        self._do(Retire(stream, names_of(blocks, "blocks"), why))

    def reserve(
        self,
        stream: str,
        slices: Sequence[Slice],
        cost: Cost,
        *,
        contexts: Iterable[str] = (),
        key: str | None = None,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
    ) -> Grant:
        """Charge ``cost`` to every point of ``slices`` before anything is read; the grant opens
        them once.

        Refused: the table in ``ptklib.ledger.decide``. With a ``key``, asking again gives the same
        grant while it is unused.
        """
        request = self.request(
            stream, slices, cost, contexts=contexts, key=key, ttl_seconds=ttl_seconds
        )
        return self.reserve_all([request])[0]

    def request(
        self,
        stream: str,
        slices: Sequence[Slice],
        cost: Cost,
        *,
        contexts: Iterable[str] = (),
        key: str | None = None,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
    ) -> Reserve:
        """The request that `reserve` makes, for `reserve_all`."""
        return Reserve(
            stream=stream,
            slices=tuple(slices),
            cost=cost,
            contexts=names_of(contexts, "contexts"),
            key=key,
            expires_at_ms=self._now_ms() + _milliseconds(ttl_seconds),
        )

    def reserve_all(self, requests: Sequence[Reserve]) -> list[Grant]:
        """Several reservations, all or none."""
        command = ReserveAll(tuple(requests))

        def work(turn: Turn) -> list[Grant]:
            self._release_lapsed(turn, command)
            entries = self._reserve(turn, command)
            # A request with a key may have been known before; its charge is the one that stands
            # under the key.
            unkeyed = iter([entry["charge"] for entry in entries if "key" not in entry])
            streams = turn.state.streams
            numbers = [
                next(unkeyed) if request.key is None else streams[request.stream].keys[request.key]
                for request in command.requests
            ]
            return [issue(self._key, turn.state, turn.state.reserved[number]) for number in numbers]

        grants: list[Grant] = self._writer.submit(work, command.requests)
        return grants

    def spend(self, grant: Grant) -> None:
        """Start the work a grant was reserved for. Durable before it returns; there is no way back.

        Refused: GRANT_FORGED, GRANT_USED, GRANT_RELEASED, GRANT_EXPIRED, BLOCK_RETIRED.
        """
        self.spend_all([grant])

    def spend_all(self, grants: Sequence[Grant]) -> None:
        """`spend` several grants in one durable step: all, or, where one of them is refused,
        none.
        """
        for grant in grants:
            verify(self._key, grant)

        def work(turn: Turn) -> None:
            now_ms = self._now_ms()
            for grant in grants:
                self._require_standing(turn, grant)
                check_spend(turn.state, Spend(grant.charge, now_ms))
            if len({grant.charge for grant in grants}) != len(grants):
                raise GrantRefused(
                    "GRANT_USED", "a grant serves once, and one of these is named twice"
                )
            for grant in grants:
                turn.apply(Spend(grant.charge, now_ms))

        self._writer.submit(work)

    def release(self, grant: Grant) -> None:
        """Give a reservation back whose work never started.

        Refused: GRANT_FORGED, GRANT_USED, GRANT_RELEASED.
        """
        verify(self._key, grant)

        def work(turn: Turn) -> None:
            self._require_standing(turn, grant)
            turn.apply(Release(grant.charge))

        self._writer.submit(work)

    def charge(
        self,
        stream: str,
        slices: Sequence[Slice],
        cost: Cost,
        *,
        contexts: Iterable[str] = (),
        key: str | None = None,
    ) -> int:
        """`reserve` and `spend` in one durable step, for a caller that starts at once; returns the
        charge's number.

        A ``key`` that was used before is refused (KEY_REUSED): `find` tells what became of it.
        """
        now_ms = self._now_ms()
        reserve = self.request(stream, slices, cost, contexts=contexts, key=key)
        request = replace(reserve, expires_at_ms=now_ms + 1, spend_at_ms=now_ms)

        def work(turn: Turn) -> int:
            number: int = self._reserve(turn, request)[0]["charge"]
            return number

        spent: int = self._writer.submit(work, (request,))
        return spent

    def expire(self) -> int:
        """Release every reservation whose time is over; return how many."""
        count: int = self._writer.submit(lambda turn: len(turn.apply(Expire(self._now_ms()))))
        return count

    def left(self, stream: str, blocks: Sequence[str], tags: TagRange = WHOLE) -> Fraction:
        """The largest pure epsilon that one more charge on all of ``blocks`` x ``tags`` could
        have.
        """
        with self._writer.quiet() as state:
            return queries.left(state, stream, Slice(names_of(blocks, "blocks"), tags))

    def affordable(self, stream: str, cost: Cost, tags: TagRange = WHOLE) -> list[str]:
        """The living blocks, in order, that could carry ``cost`` on all of ``tags``."""
        with self._writer.quiet() as state:
            return queries.affordable(state, stream, cost, tags)

    def peak(self, stream: str, blocks: Sequence[str], tags: TagRange = WHOLE) -> tuple[int, ...]:
        """The largest loss per component of the stream's filter over the points of ``blocks`` x
        ``tags``.
        """
        with self._writer.quiet() as state:
            return queries.peak(state, stream, names_of(blocks, "blocks"), tags)

    def block(self, stream: str, name: str) -> BlockView:
        """One block with its losses, tag range by tag range."""
        with self._writer.quiet() as state:
            return queries.block_view(state, stream, name)

    def blocks(self, stream: str, *, retired: bool | None = None) -> list[str]:
        """The names of the blocks, in order; only the retired or only the living ones where
        asked.
        """
        with self._writer.quiet() as state:
            stream_state = stream_of(state, stream)
            return [
                block.name
                for block in stream_state.blocks
                if retired is None or (block.retired is not None) == retired
            ]

    def rests(self, stream: str, names: Iterable[str]) -> dict[str, Rest]:
        """What is left of some blocks, in one look; names that the book does not have are left
        out.
        """
        with self._writer.quiet() as state:
            judged = self._judged.setdefault(stream, {})
            if len(judged) > _MAX_JUDGED:
                judged.clear()
            return queries.rests(state, stream, names, judged)

    def losses(
        self, stream: str, begin: int | None, count: int
    ) -> tuple[int, int, list[BlockLoss]]:
        """The losses of ``count`` blocks from place ``begin`` on, of the newest without it; and the
        number of all blocks, and the place of the first.
        """
        with self._writer.quiet() as state:
            blocks = stream_of(state, stream).blocks
            first = max(0, len(blocks) - count) if begin is None else min(begin, len(blocks))
            return len(blocks), first, [_loss_of(block) for block in blocks[first : first + count]]

    def places(self, stream: str, prefix: str) -> tuple[int, int]:
        """The places of the first block whose name begins like this and of the one after the last;
        (0, 0) for none.
        """
        with self._writer.quiet() as state:
            places = [
                block.index
                for block in stream_of(state, stream).blocks
                if block.name.startswith(prefix)
            ]
        return (places[0], places[-1] + 1) if places else (0, 0)

    def count_retired(self, stream: str) -> int:
        """How many blocks were closed."""
        with self._writer.quiet() as state:
            stream_state = stream_of(state, stream)
            return len(stream_state.blocks) - len(stream_state.alive)

    def streams(self) -> dict[str, Policy]:
        """The streams with their promises."""
        with self._writer.quiet() as state:
            return {name: stream.policy for name, stream in state.streams.items()}

    def fate(self, charge: int) -> str:
        """RESERVED, SPENT or RELEASED."""
        with self._writer.quiet() as state:
            return queries.fate(state, charge)

    def find(self, stream: str, key: str) -> int | None:
        """The number of the charge that a key belongs to while it is reserved or spent, or None."""
        with self._writer.quiet() as state:
            return queries.find(state, stream, key)

    def history(self) -> Iterator[Entry]:
        """Every entry since the beginning, oldest first, checked against the chain as it is
        read.
        """
        with self._writer.quiet():
            entries = [entry for commit in self._writer.journal.replay() for entry in commit]
        yield from entries

    def commits(self, numbers: Iterable[int]) -> list[Commit]:
        """Some commits by number, in order, each checked against the one before it; those that
        there are not are left out.
        """
        wanted = sorted(set(numbers))
        with self._writer.quiet():
            return self._writer.journal.pick(wanted)

    @property
    def head(self) -> Head:
        """The newest commit.

        Keep it elsewhere to notice a journal that was cut or set back (`verify`).
        """
        with self._writer.quiet():
            return self._writer.journal.head

    def digest(self) -> str:
        """A fingerprint of the whole state; equal for equal histories."""
        with self._writer.quiet() as state:
            return digest(state)

    def snapshot(self) -> None:
        """Save the state now, so that the next start replays less.

        Happens by itself from time to time.
        """
        self._writer.save_snapshot()

    def verify(self, known: Head | None = None) -> VerifiedLedger:
        """Replay the whole journal from its first entry and check everything that can be checked.

        The chain of MACs, every snapshot against the replay, after each charge every point it
        covers against the policy, the replay against the state in memory, and that the journal
        still contains the commit ``known`` (a `head` kept elsewhere). Raises JournalDamaged:
        CHAIN_BROKEN, SNAPSHOT_INVALID, REPLAY_DIFFERS, POLICY_EXCEEDED, HISTORY_CUT.
        """
        with self._writer.quiet() as state:
            return verify_journal(self._writer.journal, state, known)

    @property
    def genesis(self) -> Head:
        """What stands before the first commit."""
        return self._writer.journal.genesis

    @property
    def identity(self) -> str:
        """Other for every ledger, the same for all who share one; public, and nobody makes a second
        of it without the key.
        """
        return self.derived_key(b"identity").hex()

    def derived_key(self, purpose: bytes) -> bytes:
        """A key for another purpose, that only those can make who have the ledger's."""
        return mac_of(self._key, b"sage derived v1", purpose)

    def close(self) -> None:
        """Close the journal. Everything promised is durable already."""
        self._writer.close()

    def _do(self, command: Command) -> None:
        self._writer.submit(lambda turn: turn.apply(command))

    def _require_standing(self, turn: Turn, grant: Grant) -> None:
        """A signed grant may outlive its charge when a journal is set back: it must be for the
        charge that stands.
        """
        charge = turn.state.reserved.get(grant.charge)
        if charge is not None and issue(self._key, turn.state, charge) != grant:
            raise GrantRefused(
                "GRANT_FORGED", f"the grant is not for charge {grant.charge} as it stands"
            )

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _reserve(self, turn: Turn, command: Reserve | ReserveAll) -> list[Entry]:
        """Apply; where there is no room, first give back what has expired (which stands even if
        there is none still).
        """
        try:
            return turn.apply(command)
        except BudgetExceeded:
            if not turn.apply(Expire(self._now_ms())):
                raise
            return turn.apply(command)

    def _release_lapsed(self, turn: Turn, command: ReserveAll) -> None:
        """A key whose reservation has lapsed is free again: its dead grant would be of no use."""
        for request in command.requests:
            stream = turn.state.streams.get(request.stream)
            number = (
                stream.keys.get(request.key)
                if stream is not None and request.key is not None
                else None
            )
            charge = turn.state.reserved.get(number) if number is not None else None
            if charge is not None and charge.expires_at_ms <= self._now_ms():
                turn.apply(Release(charge.number))


def _milliseconds(seconds: float) -> int:
    if not math.isfinite(seconds) or seconds <= 0 or seconds > _MAX_TTL_SECONDS:
        raise InvalidInput(
            "COMMAND_INVALID",
            f"ttl_seconds must be above 0 and at most {_MAX_TTL_SECONDS}, got {seconds}",
        )
    return max(1, int(seconds * 1000))
