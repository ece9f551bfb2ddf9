"""Which entries a command leads to, or why it is refused.

`apply` checks a command against the state, folds the entries it leads to, and returns them for the
journal. A command that is refused changes nothing. Refusals are checked in this order; the first
that applies is the one reported:

======================  =========================  =================================================
reason                  raised as                  when
======================  =========================  =================================================
(see `commands`)        InvalidInput               the command itself is malformed (at construction)
STREAM_UNKNOWN          Refused                    no such stream
STREAM_EXISTS           Refused                    `CreateStream` of a name in use
BLOCK_EXISTS            Refused                    `AddBlocks` of a name in use
BLOCK_UNKNOWN           Refused                    a block that was never added
BLOCK_RETIRED           Refused                    a block that is closed
SLICES_OVERLAP          Refused                    two slices of one request share a point
COST_UNSUPPORTED        InvalidInput               the cost has no bound under the stream's composition
KEY_REUSED              Refused                    the key belongs to another request, or to one that was spent
TOO_MANY_RANGES         Refused                    a block would be cut into more than `MAX_RANGES` tag ranges
BUDGET_EXCEEDED         BudgetExceeded             a point would exceed the stream's policy
QUOTA_EXCEEDED          BudgetExceeded             a point would exceed a context's quota
CHARGE_UNKNOWN          GrantRefused               no such charge
GRANT_USED              GrantRefused               the charge was spent before
GRANT_RELEASED          GrantRefused               the charge was released before
GRANT_EXPIRED           GrantRefused               spend at or after its expiry
BLOCK_RETIRED           Refused                    spend after a block of the charge was closed
======================  =========================  =================================================

Every refusal depends on the book alone, never on the records, so it tells nothing about them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ptklib.errors import BudgetExceeded, GrantRefused, Refused
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
from ptklib.ledger.drafts import drafted
from ptklib.ledger.lookup import MAX_SHOWN, blocks_of, named, retired, stream_of
from ptklib.ledger.loss_map import LossMap, Rows
from ptklib.ledger.slices import TAG_SPACE, TagRange
from ptklib.ledger.state import RESERVED, SPENT, Block, Charge, Entry, LedgerState, Stream, runs_of
from ptklib.privacy.amounts import show
from ptklib.privacy.filters import Filter

__all__ = ["MAX_RANGES", "apply", "check_spend"]

# A block is cut only where charges begin and end; this many ranges mean that somebody cuts at
# random.
MAX_RANGES = 4096
# From so many blocks on a first look at their ceilings pays.
_MANY = 8


def apply(state: LedgerState, command: Command) -> list[Entry]:
    """Fold what ``command`` leads to into ``state`` and return the entries, or refuse and change
    nothing.
    """
    return _HANDLERS[type(command)](command, state)


def _fold(state: LedgerState, entry: Entry) -> list[Entry]:
    state.evolve(entry)
    return [entry]


def _create_stream(command: CreateStream, state: LedgerState) -> list[Entry]:
    if command.stream in state.streams:
        raise Refused(
            "STREAM_EXISTS", f"stream {command.stream!r} exists already", stream=command.stream
        )
    policy = command.policy
    filters = policy.filter().as_json()
    return _fold(
        state,
        {"kind": "stream", "stream": command.stream, "policy": policy.as_json(), "filter": filters},
    )


def _set_quota(command: SetQuota, state: LedgerState) -> list[Entry]:
    stream = stream_of(state, command.stream)
    share = Fraction(command.share)
    quota = stream.filter.scaled(share).as_json()
    entry = {
        "kind": "quota",
        "stream": stream.name,
        "context": command.context,
        "share": show(share),
        "filter": quota,
    }
    return _fold(state, entry)


def _add_blocks(command: AddBlocks, state: LedgerState) -> list[Entry]:
    stream = stream_of(state, command.stream)
    taken = [name for name in command.blocks if name in stream.by_name]
    if taken or len(set(command.blocks)) != len(command.blocks):
        raise Refused(
            "BLOCK_EXISTS",
            f"blocks must have new names: {named(taken or command.blocks)}",
            blocks=taken,
        )
    return _fold(state, {"kind": "blocks", "stream": stream.name, "blocks": list(command.blocks)})


def _retire(command: Retire, state: LedgerState) -> list[Entry]:
    stream = stream_of(state, command.stream)
    blocks = blocks_of(stream, command.blocks)
    runs = runs_of(block.index for block in blocks)
    return _fold(state, {"kind": "retire", "stream": stream.name, "runs": runs, "why": command.why})


def _reserve_all(command: ReserveAll, state: LedgerState) -> list[Entry]:
    entries: list[Entry] = []
    try:
        for request in command.requests:
            entries += _reserve(request, state)
    except BaseException:
        for entry in reversed(entries):
            state.undo(entry)
        raise
    return entries


def _reserve(command: Reserve, state: LedgerState) -> list[Entry]:
    draft = drafted(command, state)
    stream, slices, row = draft.stream, draft.slices, draft.row
    entry = draft.entry(len(state.fates))
    if command.key is not None and command.key in stream.keys:
        _check_same(state, stream.keys[command.key], entry)
        return []
    _check_ranges(slices)
    for blocks, tags in slices:
        _check_room(stream, command, blocks, tags, row)
    for context in command.contexts:
        if context in stream.quotas:
            for blocks, tags in slices:
                _check_quota(stream, command, context, blocks, tags, row)
    state.take(draft.charge(len(state.fates), command), spent=command.spend_at_ms is not None)
    return [entry]


def check_spend(state: LedgerState, command: Spend) -> None:
    """Refuse a spend that `apply` would refuse; changes nothing."""
    charge = _reserved(state, command.charge)
    if command.at_ms >= charge.expires_at_ms:
        raise GrantRefused(
            "GRANT_EXPIRED",
            f"charge {charge.number} is too old to be spent: reserve again",
            charge=charge.number,
        )
    closed = [block.name for block in state.blocks_of(charge) if block.retired is not None]
    if closed:
        raise retired(charge.stream, closed)


def _spend(command: Spend, state: LedgerState) -> list[Entry]:
    check_spend(state, command)
    return _fold(state, {"kind": "spend", "charge": command.charge, "at_ms": command.at_ms})


def _release(command: Release, state: LedgerState) -> list[Entry]:
    charge = _reserved(state, command.charge)
    return _fold(state, {"kind": "release", "charge": charge.number, "why": "released"})


def _expire(command: Expire, state: LedgerState) -> list[Entry]:
    entries: list[Entry] = []
    for charge in [
        charge for charge in state.reserved.values() if charge.expires_at_ms <= command.at_ms
    ]:
        entries += _fold(state, {"kind": "release", "charge": charge.number, "why": "expired"})
    return entries


_HANDLERS: dict[type, Callable[[Any, LedgerState], list[Entry]]] = {
    AddBlocks: _add_blocks,
    CreateStream: _create_stream,
    Expire: _expire,
    Release: _release,
    Reserve: _reserve,
    ReserveAll: _reserve_all,
    Retire: _retire,
    SetQuota: _set_quota,
    Spend: _spend,
}


def _reserved(state: LedgerState, number: int) -> Charge:
    charge = state.reserved.get(number)
    if charge is not None:
        return charge
    if number >= len(state.fates):
        raise GrantRefused("CHARGE_UNKNOWN", f"there is no charge {number}", charge=number)
    if state.fates[number] == SPENT:
        raise GrantRefused(
            "GRANT_USED", f"charge {number} was spent before: a grant serves once", charge=number
        )
    raise GrantRefused(
        "GRANT_RELEASED", f"charge {number} was released: reserve again", charge=number
    )


def _check_same(state: LedgerState, number: int, entry: Entry) -> None:
    charge = state.reserved.get(number)
    asked = charge.as_json() if charge is not None else {}
    wanted = ("slices", "cost", "contexts", "spent_at_ms")
    if not asked or any(asked.get(part) != entry.get(part) for part in wanted):
        fate = "reserved for another request" if state.fates[number] == RESERVED else "spent"
        raise Refused(
            "KEY_REUSED",
            f"key {entry['key']!r} belongs to charge {number}, which is {fate}",
            charge=number,
        )


def _check_ranges(slices: list[tuple[list[Block], TagRange]]) -> None:
    """Only new cuts count; looked at closely only where the limit is near."""
    near: dict[int, tuple[Block, set[int]]] = {}
    for blocks, tags in slices:
        for block in blocks:
            if len(block.loss.starts) + 2 * len(slices) > MAX_RANGES:
                near.setdefault(block.index, (block, set()))[1].update((tags.start, tags.stop))
    for block, bounds in near.values():
        cuts = bounds - set(block.loss.starts) - {TAG_SPACE}
        if cuts and len(block.loss.starts) + len(cuts) > MAX_RANGES:
            raise Refused(
                "TOO_MANY_RANGES",
                f"block {block.name!r} is cut into {len(block.loss.starts)} tag ranges, at most "
                f"{MAX_RANGES} are kept: "
                "use the ranges that exist",
                blocks=[block.name],
            )


def _check_room(
    stream: Stream, command: Reserve, blocks: list[Block], tags: TagRange, row: Rows
) -> None:
    if len(blocks) > _MANY and _surely_fits(stream.filter, blocks, row):
        return
    full = _full(stream.filter, [block.loss.within(tags) for block in blocks], row)
    if full:
        raise _exceeded(
            "BUDGET_EXCEEDED",
            f"the policy of stream {stream.name!r}",
            stream.filter,
            command,
            [(blocks[at].name, loss) for at, loss in full],
        )


def _surely_fits(privacy_filter: Filter, blocks: list[Block], row: Rows) -> bool:
    """One look at the ceilings of many blocks; where that is not enough, they are made exact for
    the next time.
    """
    ceilings = np.concatenate([block.loss.ceiling for block in blocks]).reshape(
        len(blocks), privacy_filter.width
    )
    if privacy_filter.judge(ceilings, row).all():
        return True
    for block in blocks:
        block.loss.tighten()
    return False


def _check_quota(
    stream: Stream, command: Reserve, context: str, blocks: list[Block], tags: TagRange, row: Rows
) -> None:
    quota = stream.quotas[context]
    nothing = LossMap.empty(quota.width)
    full = _full(
        quota, [block.contexts.get(context, nothing).within(tags) for block in blocks], row
    )
    if full:
        raise _exceeded(
            "QUOTA_EXCEEDED",
            f"the quota of context {context!r} ({stream.shares[context]} of stream "
            f"{stream.name!r})",
            quota,
            command,
            [(blocks[at].name, loss) for at, loss in full],
            context=context,
        )


def _full(privacy_filter: Filter, losses: list[Rows], row: Rows) -> list[tuple[int, Rows]]:
    """The positions whose points cannot all carry ``row`` more, each with the loss of one such
    point.
    """
    if len(losses) == 1 and len(losses[0]) == 1:
        return (
            []
            if privacy_filter.judge_one(losses[0][0].tolist(), row.tolist())
            else [(0, losses[0][0])]
        )
    stacked = losses[0] if len(losses) == 1 else np.concatenate(losses)
    admitted = privacy_filter.judge(stacked, row)
    if admitted.all():
        return []
    ends = np.cumsum([len(rows) for rows in losses])
    refused = np.flatnonzero(~admitted)
    owners, first = np.unique(np.searchsorted(ends, refused, side="right"), return_index=True)
    return [(int(at), stacked[refused[k]]) for at, k in zip(owners, first, strict=True)]


def _exceeded(
    reason: str,
    whose: str,
    privacy_filter: Filter,
    command: Reserve,
    full: list[tuple[str, Rows]],
    **details: object,
) -> BudgetExceeded:
    left = {name: show(privacy_filter.left(loss.tolist())) for name, loss in full[:MAX_SHOWN]}
    return BudgetExceeded(
        reason,
        f"{whose} has no room for {command.cost} on {len(full)} block(s): left for one more pure "
        "charge: "
        + ", ".join(f"{name} {epsilon}" for name, epsilon in left.items())
        + (" …" if len(full) > MAX_SHOWN else ""),
        stream=command.stream,
        asked=command.cost.as_json(),
        left=left,
        blocks=[name for name, _ in full[:MAX_SHOWN]],
        blocks_refused=len(full),
        **details,
    )
