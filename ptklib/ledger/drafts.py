"""What of a reservation can be worked out before its turn.

Which blocks are meant, what is demanded of them and how most of the entry is spelled is the same
whenever a request is decided, as long as its blocks live: a draft holds all of that. Whether there
is room is not in it; that is decided in the turn, on the state of the turn. Where several servers
share a book everybody waits for whoever has the turn, so callers draft while they wait.

A draft is kept with its request and used again only on the very state it was made of, while all its
blocks live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptklib.encoding.canonical import ReserveEntry, spelled_reserve
from ptklib.errors import Refused
from ptklib.ledger.commands import Reserve
from ptklib.ledger.lookup import missing, stream_of
from ptklib.ledger.loss_map import Rows
from ptklib.ledger.slices import TagRange
from ptklib.ledger.state import Block, Charge, Entry, LedgerState, Run, Stream, runs_of
from ptklib.privacy.costs import Cost

__all__ = ["Draft", "drafted"]

_MAX_RECENT = 1024
# Where a request keeps its draft.
_KEPT = "_draft"


@dataclass(slots=True)
class Draft:
    """A request on one state: its blocks, what it demands, and the fields of its entry but for the
    charge's number.
    """

    stream: Stream
    slices: list[tuple[list[Block], TagRange]]
    runs: tuple[tuple[tuple[Run, ...], TagRange], ...]
    row: Rows
    fields: Entry
    text: str

    def holds(self, state: LedgerState) -> bool:
        """True while the request would be drafted in the same way."""
        if state.streams.get(self.stream.name) is not self.stream:
            return False
        for blocks, _ in self.slices:
            for block in blocks:
                if block.retired is not None:
                    return False
        return True

    def entry(self, number: int) -> Entry:
        """The entry of charge ``number``."""
        entry = ReserveEntry(self.fields)
        entry["charge"] = number
        entry.spelled = self.text
        return entry

    def charge(self, number: int, request: Reserve) -> Charge:
        """The charge of that entry."""
        return Charge(
            number,
            self.stream.name,
            self.runs,
            self.fields["cost"],
            self.row,
            request.contexts,
            request.key,
            request.expires_at_ms,
        )


def drafted(request: Reserve, state: LedgerState) -> Draft:
    """The draft of a request, made now or before.

    Refused: STREAM_UNKNOWN, BLOCK_UNKNOWN, BLOCK_RETIRED, SLICES_OVERLAP.
    """
    known: Draft | None = request.__dict__.get(_KEPT)
    if known is not None and known.holds(state):
        return known
    stream = stream_of(state, request.stream)
    alive = stream.alive
    try:
        slices = [
            ([alive[name] for name in slice_.blocks], slice_.tags) for slice_ in request.slices
        ]
    except KeyError:
        raise missing(
            stream, [name for slice_ in request.slices for name in slice_.blocks]
        ) from None
    _check_overlap(slices)
    row = stream.filter.demand_row(request.cost)
    runs = [runs_of(block.index for block in blocks) for blocks, _ in slices]
    listed = [
        [slice_runs, tags.start, tags.stop]
        for slice_runs, (_, tags) in zip(runs, slices, strict=True)
    ]
    fields: Entry = {
        "kind": "reserve",
        "stream": stream.name,
        "slices": listed,
        "cost": _cost_json(request.cost),
        "demand": _listed(row),
        "expires_at_ms": request.expires_at_ms,
    }
    if request.contexts:
        fields["contexts"] = list(request.contexts)
    if request.spend_at_ms is not None:
        fields["spent_at_ms"] = request.spend_at_ms
    if request.key is not None:
        fields["key"] = request.key
    tagged = tuple(
        [(_tuples(slice_runs), tags) for slice_runs, (_, tags) in zip(runs, slices, strict=True)]
    )
    draft = Draft(stream, slices, tagged, row, fields, spelled_reserve(fields))
    request.__dict__[_KEPT] = draft
    return draft


def _tuples(runs: list[list[int]]) -> tuple[Run, ...]:
    return tuple([(first, count) for first, count in runs])


def _check_overlap(slices: list[tuple[list[Block], TagRange]]) -> None:
    if len(slices) == 1:
        return
    seen: dict[int, list[TagRange]] = {}
    for blocks, tags in slices:
        for block in blocks:
            ranges = seen.setdefault(block.index, [])
            if any(tags.overlaps(other) for other in ranges):
                raise Refused(
                    "SLICES_OVERLAP",
                    "the slices of one request must be disjoint, two share tags of block "
                    f"{block.name!r}",
                    blocks=[block.name],
                )
            ranges.append(tags)


_LISTED: dict[int, tuple[Rows, list[int]]] = {}


def _listed(row: Rows) -> list[int]:
    """A demand as a list.

    Rows are shared by all charges of one cost, and so are these; nobody writes to them.
    """
    recent = _LISTED.get(id(row))
    if recent is not None and recent[0] is row:
        return recent[1]
    values: list[int] = row.tolist()
    if len(_LISTED) >= _MAX_RECENT:
        _LISTED.clear()
    _LISTED[id(row)] = (row, values)
    return values


_RECENT: dict[int, tuple[Cost, dict[str, Any]]] = {}


def _cost_json(cost: Cost) -> dict[str, Any]:
    """The same cost objects come again and again; nobody writes to the answer."""
    recent = _RECENT.get(id(cost))
    if recent is not None and recent[0] is cost:
        return recent[1]
    body = cost.as_json()
    if len(_RECENT) >= _MAX_RECENT:
        _RECENT.clear()
    _RECENT[id(cost)] = (cost, body)
    return body
