"""What is so: streams, blocks with their losses, reserved charges, the fate of every charge.

The state changes in one way only: `LedgerState.evolve` folds one *entry* into it. Entries are plain
JSON values; they carry every number that was decided (demands, capacities) as integers, so folding
the same entries gives the same state bit for bit on any machine, whatever its float libraries do.
Folding never refuses: `decide` already said yes.

Entries (``kind`` and fields)::

    stream   stream, policy, filter                      a stream was opened
    quota    stream, context, share, filter              a context's quota was set
    blocks   stream, blocks                              blocks were added, in order
    reserve  charge, stream, slices, cost, demand, expires_at_ms, and where there are: contexts, key, spent_at_ms
             slices = [[runs of block indices [first, count], ...], start, stop]; with spent_at_ms it is SPENT at once
    spend    charge, at_ms
    release  charge, why
    retire   stream, runs, why

Memory grows with the blocks that live and the charges that are reserved; a finished charge keeps
one byte, a retired block one vector (its highest loss per component). Details of both stay in the
journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import JournalDamaged
from ptklib.ledger.loss_map import LossMap
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import TAG_SPACE, WHOLE, TagRange
from ptklib.privacy.filters import Filter, filter_from_json

__all__ = [
    "RELEASED",
    "RESERVED",
    "SPENT",
    "Block",
    "Charge",
    "Entry",
    "LedgerState",
    "Run",
    "Stream",
    "runs_of",
]

Entry = dict[str, Any]
Run = tuple[int, int]

RESERVED, SPENT, RELEASED = 0, 1, 2


class Block:
    """One block: its loss over the tags, and the part of it that each context caused."""

    __slots__ = ("contexts", "index", "keys", "loss", "name", "retired")

    def __init__(self, index: int, name: str, loss: LossMap) -> None:
        """A block with ``loss`` and no contexts; ``retired`` says why it was closed, None while it
        lives.
        """
        self.index = index
        self.name = name
        self.loss = loss
        self.contexts: dict[str, LossMap] = {}
        self.retired: str | None = None
        # Keys of charges whose newest block this is: they are forgotten when it retires.
        self.keys: list[str] = []


@dataclass(slots=True)
class Stream:
    """One stream: its promise, the filter that keeps it, its blocks in order."""

    name: str
    policy: Policy
    filter: Filter
    quotas: dict[str, Filter] = field(default_factory=dict)
    shares: dict[str, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    by_name: dict[str, Block] = field(default_factory=dict)
    alive: dict[str, Block] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)


class Charge(NamedTuple):
    """A reserved charge: what is needed to spend it or to give it back."""

    number: int
    stream: str
    slices: tuple[tuple[tuple[Run, ...], TagRange], ...]
    cost: dict[str, Any]
    demand: NDArray[np.int64]
    contexts: tuple[str, ...]
    key: str | None
    expires_at_ms: int

    @classmethod
    def from_json(cls, body: Entry) -> Charge:
        """Read the fields of a ``reserve`` entry."""
        return cls(
            body["charge"],
            body["stream"],
            tuple(
                [
                    (tuple(map(tuple, runs)), _tags(start, stop))
                    for runs, start, stop in body["slices"]
                ]
            ),
            body["cost"],
            np.array(body["demand"], dtype=np.int64),
            tuple(body.get("contexts", ())),
            body.get("key"),
            body["expires_at_ms"],
        )

    def as_json(self) -> Entry:
        """The fields of the ``reserve`` entry that made this charge."""
        body = {
            "charge": self.number,
            "stream": self.stream,
            "slices": [
                [[list(run) for run in runs], tags.start, tags.stop] for runs, tags in self.slices
            ],
            "cost": self.cost,
            "demand": self.demand.tolist(),
            "expires_at_ms": self.expires_at_ms,
        }
        if self.contexts:
            body["contexts"] = list(self.contexts)
        if self.key is not None:
            body["key"] = self.key
        return body


def runs_of(indices: Iterable[int]) -> list[list[int]]:
    """Block indices as sorted runs ``[first, count]``, so that a thousand days cost a few bytes."""
    ordered = sorted(indices)
    if len(ordered) == 1:
        return [[ordered[0], 1]]
    runs: list[list[int]] = []
    for index in ordered:
        if runs and runs[-1][0] + runs[-1][1] == index:
            runs[-1][1] += 1
        else:
            runs.append([index, 1])
    return runs


class LedgerState:
    """The whole state. Read it freely; change it through `evolve` alone."""

    __slots__ = ("_folds", "fates", "reserved", "streams")

    def __init__(self) -> None:
        """An empty book."""
        self.streams: dict[str, Stream] = {}
        self.reserved: dict[int, Charge] = {}
        # One byte per charge ever made, indexed by its number: RESERVED, SPENT or RELEASED.
        self.fates = bytearray()
        self._folds: dict[str, Callable[[Entry], None]] = {
            "stream": self._fold_stream,
            "quota": self._fold_quota,
            "blocks": self._fold_blocks,
            "reserve": self._fold_reserve,
            "spend": self._fold_spend,
            "release": self._fold_release,
            "retire": self._fold_retire,
        }

    def evolve(self, entry: Entry) -> None:
        """Fold one entry into the state."""
        self._folds[entry["kind"]](entry)

    def undo(self, entry: Entry) -> None:
        """Take back the newest entry, which must be a ``reserve``: the state is as it was before,
        bit for bit.
        """
        charge = Charge.from_json(entry)
        assert entry["kind"] == "reserve"
        assert charge.number == len(self.fates) - 1
        self.reserved.pop(charge.number, None)
        self._lay(charge, LossMap.take_back)
        self._forget_key(charge)
        self.fates.pop()

    def blocks_of(self, charge: Charge) -> Iterator[Block]:
        """All blocks a charge covers, slice by slice."""
        blocks = self.streams[charge.stream].blocks
        for runs, _ in charge.slices:
            for first, count in runs:
                yield from blocks[first : first + count]

    def _fold_stream(self, entry: Entry) -> None:
        policy = Policy.from_json(entry["policy"])
        self.streams[entry["stream"]] = Stream(
            entry["stream"], policy, filter_from_json(entry["filter"])
        )

    def _fold_quota(self, entry: Entry) -> None:
        stream = self.streams[entry["stream"]]
        stream.quotas[entry["context"]] = filter_from_json(entry["filter"])
        stream.shares[entry["context"]] = entry["share"]

    def _fold_blocks(self, entry: Entry) -> None:
        stream = self.streams[entry["stream"]]
        for name in entry["blocks"]:
            block = Block(len(stream.blocks), name, LossMap.empty(stream.filter.width))
            stream.blocks.append(block)
            stream.by_name[name] = stream.alive[name] = block

    def _fold_reserve(self, entry: Entry) -> None:
        self.take(Charge.from_json(entry), spent="spent_at_ms" in entry)

    def take(self, charge: Charge, *, spent: bool) -> None:
        """Fold a ``reserve`` entry that is at hand as a charge."""
        if charge.number != len(self.fates):
            raise JournalDamaged(
                "ENTRY_OUT_OF_ORDER",
                f"charge {charge.number} does not follow charge {len(self.fates) - 1}",
            )
        if spent:
            self.fates.append(SPENT)
        else:
            self.fates.append(RESERVED)
            self.reserved[charge.number] = charge
        self._lay(charge, LossMap.add)
        if charge.key is not None:
            stream = self.streams[charge.stream]
            stream.keys[charge.key] = charge.number
            stream.blocks[_newest(charge)].keys.append(charge.key)

    def _fold_spend(self, entry: Entry) -> None:
        charge = self.reserved.pop(entry["charge"])
        self.fates[charge.number] = SPENT

    def _fold_release(self, entry: Entry) -> None:
        charge = self.reserved.pop(entry["charge"])
        self.fates[charge.number] = RELEASED
        self._lay(charge, LossMap.take_back)
        self._forget_key(charge)

    def _fold_retire(self, entry: Entry) -> None:
        stream = self.streams[entry["stream"]]
        for first, count in entry["runs"]:
            for block in stream.blocks[first : first + count]:
                block.retired = entry["why"]
                block.loss = LossMap([0], block.loss.peak()[np.newaxis].copy())
                block.contexts.clear()
                for key in block.keys:
                    stream.keys.pop(key, None)
                block.keys.clear()
                del stream.alive[block.name]

    def _lay(
        self, charge: Charge, lay: Callable[[LossMap, TagRange, NDArray[np.int64]], None]
    ) -> None:
        stream = self.streams[charge.stream]
        demand = charge.demand
        for runs, tags in charge.slices:
            for first, count in runs:
                for block in stream.blocks[first : first + count]:
                    # A closed block keeps its highest loss for ever, also when a reservation on it
                    # lapses.
                    if block.retired is None:
                        lay(block.loss, tags, demand)
                        for context in charge.contexts:
                            _lay_context(block, context, tags, demand, lay)

    def _forget_key(self, charge: Charge) -> None:
        stream = self.streams[charge.stream]
        # The key may be gone already (its block retired), and even belong to another charge by now.
        if charge.key is not None and stream.keys.get(charge.key) == charge.number:
            del stream.keys[charge.key]
            stream.blocks[_newest(charge)].keys.remove(charge.key)


def _lay_context(
    block: Block,
    context: str,
    tags: TagRange,
    demand: NDArray[np.int64],
    lay: Callable[[LossMap, TagRange, NDArray[np.int64]], None],
) -> None:
    loss = block.contexts.get(context)
    if loss is None:
        loss = block.contexts[context] = LossMap.empty(len(demand))
    lay(loss, tags, demand)
    if len(loss.starts) == 1 and not loss.rows.any():
        del block.contexts[context]


def _newest(charge: Charge) -> int:
    return max(runs[-1][0] + runs[-1][1] - 1 for runs, _ in charge.slices)


def _tags(start: int, stop: int) -> TagRange:
    return WHOLE if start == 0 and stop == TAG_SPACE else TagRange(start, stop)
