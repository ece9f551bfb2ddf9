"""The charges of a plan, training in workers, states into the lake.

Order, for every PTK: its charge is reserved (with all others of the plan, or none), spent durably, and only then are its blocks
opened. A charge that was spent without a state to show for it stays spent, and the PTK fails this window (TRAIN_LOST): nothing
is ever trained twice on one charge.

Before any of this memory is set aside for each PTK from planned numbers (`memory`); one that may need more than a worker has is
left out of the plan's charges and told so (SKIPPED, MEMORY_TOO_SMALL).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import safetensors.numpy

from allocator.plan import Plan
from allocator.ranges import ptk_ranges
from ptklib.errors import GrantRefused, Refused
from ptklib.ledger.commands import Reserve
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import TAG_SPACE, Slice, TagRange
from ptklib.privacy.amounts import show
from ptklib.state import State
from ptkstore.engine.home import Home
from ptkstore.engine.memory import most_in_slice, most_in_window, require_room, training_bytes
from ptkstore.engine.patience import patiently
from ptkstore.engine.planning import Candidate, charge_delta, ptk_of, records_per_unit
from ptkstore.streams import StreamSpec
from ptkstore.streams.opened import spend_and_open
from ptkstore.views import TrainedLine
from ptkstore.workers.train import KEEP_BYTES, Lesson, Trained

__all__ = ["GRANT_SECONDS", "Assigned", "assign", "requests_of", "too_large", "train"]

_LOG = logging.getLogger(__name__)
# Long enough for any cycle; a cycle that was interrupted for longer reserves again.
GRANT_SECONDS = 24 * 3600
_STORERS = 8


@dataclass(frozen=True)
class Assigned:
    """One PTK of a plan, as it is written into the cycle: enough to reserve, train and certify it after a restart."""

    ptk: int
    name: str
    kind: str
    config: dict[str, Any]
    epsilon: str
    delta: str
    samples: int
    target: float
    ranges: tuple[tuple[int, int], ...]
    previous: str | None
    previous_oldest: str | None
    version: int
    # What a worker may need to train it. None in cycles that were planned before memory was set aside.
    memory_bytes: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; tags as texts, for they do not fit doubles."""
        return asdict(self) | {"ranges": [[str(start), str(stop)] for start, stop in self.ranges]}

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Assigned:
        """Read `as_json` back."""
        return cls(**(body | {"ranges": tuple((int(start), int(stop)) for start, stop in body["ranges"])}))


def assign(
    home: Home, spec: StreamSpec, plan: Plan, candidates: Sequence[Candidate], dp_records: int, blocks: int
) -> list[Assigned]:
    """Ranges of tags for a plan: its partitions side by side from the end of the profile slice on, each as long as its samples
    need in a window of that DP number of records. A PTK that needs less than its partitions hold gets the first of them."""
    if plan.total_samples is None:
        return []
    cut = ptk_ranges(plan, dp_records, start=Fraction(spec.profile_share))
    by_name = {one.row.name: one for one in candidates}
    window = most_in_window(dp_records, blocks, spec)
    found = []
    with home.metadata.read() as tx:
        newest = tx.states.newest(by_name[one.id].row.id for one in plan.assignments)
    for one in plan.assignments:
        row = by_name[one.id].row
        # Ends are multiples of 2^-48: whole tags.
        tags = [(int(piece.start * TAG_SPACE), int(piece.stop * TAG_SPACE)) for piece in cut[one.id]]
        needed = math.ceil(Fraction(one.samples, dp_records) * TAG_SPACE)
        latest = newest.get(row.id)
        # A state continues the one before only if it was made by the same configuration.
        same = latest is not None and latest.manifest["config"] == row.config
        ranges = _trimmed(tags, needed)
        share = Fraction(sum(stop - start for start, stop in ranges), TAG_SPACE)
        most = most_in_slice(window, share, records_per_unit(spec))
        found.append(
            Assigned(
                ptk=row.id,
                name=row.name,
                kind=row.kind,
                config=row.config,
                epsilon=one.level,
                delta=show(charge_delta(spec, by_name[one.id].ptk)),
                samples=one.samples,
                target=row.target,
                ranges=ranges,
                previous=latest.digest if latest is not None and same else None,
                previous_oldest=latest.manifest["windows"][0] if latest is not None and same else None,
                version=latest.version + 1 if latest is not None else 1,
                memory_bytes=training_bytes(spec, by_name[one.id].ptk, window=window, most=most),
            )
        )
    return found


def too_large(home: Home, assigned: Sequence[Assigned]) -> dict[str, str]:
    """PTKs that may need more memory than a worker has, by name, and why. Public: see `memory`."""
    found = {}
    for one in assigned:
        try:
            require_room(one.memory_bytes or 0, home.workers.memory_bytes, "training")
        except Refused as refusal:
            found[one.name] = f"{refusal.reason}: {refusal.message}"
    return found


def _trimmed(ranges: Sequence[tuple[int, int]], tags: int) -> tuple[tuple[int, int], ...]:
    """The first so many tags of some ranges."""
    found = []
    for start, stop in ranges:
        if tags > 0:
            found.append((start, min(stop, start + tags)))
            tags -= stop - start
    return tuple(found)


def requests_of(
    home: Home, spec: StreamSpec, blocks: Sequence[str], assigned: Sequence[Assigned], cycle: int
) -> list[Reserve]:
    """The charges of a plan, keyed by cycle and PTK so that asking again is asking once."""
    found = []
    for one in assigned:
        ptk = ptk_of(one.kind, one.config)
        cost = ptk.cost(one.epsilon, one.delta, records_per_unit=records_per_unit(spec))
        slices = [Slice(tuple(blocks), TagRange(start, stop)) for start, stop in one.ranges]
        found.append(
            home.ledger.request(
                spec.name,
                slices,
                cost,
                contexts=("door:ptk", f"ptk:{one.name}"),
                key=f"cycle-{cycle}/{one.name}",
                ttl_seconds=GRANT_SECONDS,
            )
        )
    return found


def train(
    home: Home,
    spec: StreamSpec,
    blocks: Sequence[str],
    assigned: Sequence[Assigned],
    cycle: int,
    window: str,
    done: Callable[[dict[str, dict[str, Any]]], None],
) -> None:
    """Spend, train and store; ``done`` is told by name what became of PTKs, once states are in the lake or they have failed."""
    # Asked again: a cycle may go on after a restart with less memory.
    large = too_large(home, assigned)
    if large:
        done({one.name: _line(one, "SKIPPED", large[one.name]) for one in assigned if one.name in large})
    ready = [one for one in assigned if one.name not in large]
    requests = requests_of(home, spec, blocks, ready, cycle)
    try:
        grants = home.ledger.reserve_all(requests)
    except Refused:
        # Not all stand any more: after a crash some may be spent, and what they paid for is lost.
        ready, grants, lost = _standing(home, ready, requests)
        done(lost)
    if not ready:
        return
    units = records_per_unit(spec)
    lessons = [
        Lesson(
            name=one.name,
            kind=one.kind,
            config=one.config,
            epsilon=one.epsilon,
            delta=one.delta,
            ranges=one.ranges,
            records_per_unit=units,
            previous=home.lake.get(one.previous)[0] if one.previous else None,
        )
        for one in ready
    ]
    # All that can fail for want of a server comes before this, or is patient.
    try:
        opened = spend_and_open(home.path, spec, grants, home.ledger)
    except GrantRefused as refusal:
        done({one.name: _line(one, "TRAIN_LOST", refusal.reason) for one in ready})
        return
    home.on_step("train", "spent")
    by_name = {one.name: one for one in ready}
    # Storing is waiting for the disk, mostly: do it side by side, while others still train.
    with ThreadPoolExecutor(_STORERS) as pool:
        stored = {
            one.name: pool.submit(_outcome, home, spec, by_name[one.name], one, window)
            for together, keep_bytes in _together(home.workers.memory_bytes, lessons, by_name)
            for one in home.workers.train(opened, together, keep_bytes)
        }
    told = {one.name: stored[one.name].result() for one in ready}
    patiently(lambda: done(told))


def _together(
    allowed: int, lessons: Sequence[Lesson], by_name: dict[str, Assigned]
) -> Iterator[tuple[list[Lesson], int]]:
    """Lessons that a worker may have at once beside what the largest of them needs, and what is left to keep records in.

    A worker gets the last states of all its lessons with them. By sizes that are public.
    """
    waiting: list[Lesson] = []
    held = needed = 0
    for one in lessons:
        size = 0 if one.previous is None else len(one.previous)
        largest = max(needed, by_name[one.name].memory_bytes or 0)
        if waiting and held + size + largest > allowed:
            yield waiting, _left(allowed - held - needed)
            waiting, held, largest = [], 0, by_name[one.name].memory_bytes or 0
        waiting.append(one)
        held, needed = held + size, largest
    if waiting:
        yield waiting, _left(allowed - held - needed)


def _left(spare: int) -> int:
    return max(0, min(KEEP_BYTES, spare))


def _standing(
    home: Home, assigned: Sequence[Assigned], requests: Sequence[Reserve]
) -> tuple[list[Assigned], list[Grant], dict[str, dict[str, Any]]]:
    ready: list[Assigned] = []
    grants: list[Grant] = []
    lost: dict[str, dict[str, Any]] = {}
    for one, request in zip(assigned, requests, strict=True):
        try:
            grants += home.ledger.reserve_all([request])
            ready.append(one)
        except Refused as refusal:
            outcome = "TRAIN_LOST" if refusal.reason == "KEY_REUSED" else "SKIPPED"
            lost[one.name] = _line(one, outcome, refusal.reason)
    return ready, grants, lost


def _outcome(home: Home, spec: StreamSpec, one: Assigned, trained: Trained, window: str) -> dict[str, Any]:
    if trained.arrays is None:
        _LOG.warning("PTK %s failed in training: %s", one.name, trained.logged)
        return _line(one, "TRAIN_FAILED", trained.failure)
    return _store(home, spec, one, trained.arrays, window)


def _line(one: Assigned, outcome: str, reason: str) -> dict[str, Any]:
    return asdict(TrainedLine(one.name, outcome, epsilon=one.epsilon, reason=reason))


def _store(home: Home, spec: StreamSpec, one: Assigned, arrays: bytes, window: str) -> dict[str, Any]:
    state = State.make(
        ptk_of(one.kind, one.config),
        safetensors.numpy.load(arrays),
        name=one.name,
        epsilon=one.epsilon,
        delta=one.delta,
        version=one.version,
        stream=spec.name,
        unit=spec.unit,
        records_per_unit=records_per_unit(spec),
        composition=spec.policy.composition,
        windows=(one.previous_oldest or window, window),
        samples=one.samples,
        target=one.target,
        previous=one.previous,
    )
    digest = patiently(lambda: home.lake.put(*state.to_bytes()))
    line = TrainedLine(one.name, "PUBLISHED", version=one.version, epsilon=one.epsilon, samples=one.samples)
    return asdict(line) | {"digest": digest}
