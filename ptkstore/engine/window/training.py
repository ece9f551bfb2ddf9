"""The charges of a plan, training in workers, states into the lake.

Order, for every PTK: its charge is reserved (with all others of the plan, or none), spent durably,
and only then are its blocks opened. A charge that was spent without a state to show for it stays
spent, and the PTK fails this window (TRAIN_LOST): nothing is ever trained twice on one charge.

Before any of this memory is set aside for each PTK from planned numbers (`memory`); one that may
need more than a worker has is left out of the plan's charges and told so (SKIPPED,
MEMORY_TOO_SMALL). What a state takes from earlier ones is in `continuing`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any

import safetensors.numpy

from allocator.plan import Assignment, Plan
from allocator.ranges import ptk_ranges
from ptklib.encoding.error_place import failure_of
from ptklib.errors import GrantRefused, Refused
from ptklib.ledger.commands import Reserve
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import TAG_SPACE, Slice, TagRange
from ptklib.privacy.amounts import show
from ptklib.ptk import Arrays
from ptklib.state import State
from ptkstore.api.over import ALL, Over
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import TrainedLine
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import Candidate, charge_delta, ptk_of, records_per_unit
from ptkstore.engine.retry import passes, patiently
from ptkstore.engine.room.memory import (
    most_in_slice,
    most_in_window,
    require_room,
    training_bytes,
)
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.engine.steps.of_ptks import TrainedPtk
from ptkstore.engine.window.continuing import EarlierStates, continued, earlier_of
from ptkstore.lake import StateDamaged, StateMissing
from ptkstore.streams.reading.opened import GRANT_SECONDS, spend_and_open
from ptkstore.workers.protocol import KEEP_BYTES, TrainJob, TrainOutcome

__all__ = ["assign", "requests_of", "too_large", "train"]

_LOG = logging.getLogger(__name__)
_STORERS = 8


def assign(
    parts: Parts,
    spec: StreamSpec,
    plan: Plan,
    candidates: Sequence[Candidate],
    dp_records: int,
    blocks: int,
    window: int,
    *,
    fewest: Plan | None = None,
) -> list[Assigned]:
    """Ranges of tags for a plan: its partitions side by side from the end of the profile slice on,
    each as long as its samples need in a window of that DP number of records. A PTK that needs less
    than its partitions hold gets the first of them.

    ``fewest`` is the plan of fewest samples where this is a richer one: what was needed is certified
    beside what was used.
    """
    if plan.total_samples is None:
        return []
    cut = ptk_ranges(plan, dp_records, start=Fraction(spec.profile_share))
    by_name = {candidate.row.name: candidate for candidate in candidates}
    most_records = most_in_window(dp_records, blocks, spec)
    least = () if fewest is None else fewest.assignments
    needed_by = {assignment.id: assignment for assignment in least}
    assigned = []
    with parts.metadata.read() as tx:
        # The next version comes after all, those among them that were not shown to be good.
        newest = tx.states.last(by_name[assignment.id].row.id for assignment in plan.assignments)
    for assignment in plan.assignments:
        row = by_name[assignment.id].row
        # Ends are multiples of 2^-48: whole tags.
        tags = [
            (int(piece.start * TAG_SPACE), int(piece.stop * TAG_SPACE))
            for piece in cut[assignment.id]
        ]
        needed = math.ceil(Fraction(assignment.samples, dp_records) * TAG_SPACE)
        latest = newest.get(row.id)
        before = continued(row, latest, window)
        ranges = _trimmed(tags, needed)
        share = Fraction(sum(stop - start for start, stop in ranges), TAG_SPACE)
        most = most_in_slice(most_records, share, records_per_unit(spec))
        assigned.append(
            Assigned(
                ptk=row.id,
                name=row.name,
                kind=row.kind,
                config=row.config,
                epsilon=assignment.level,
                delta=show(charge_delta(spec, by_name[assignment.id].ptk)),
                samples=assignment.samples,
                target=row.target,
                ranges=ranges,
                previous=before.previous,
                previous_oldest=before.oldest,
                previous_newest=before.newest,
                over=row.over,
                on_trial=by_name[assignment.id].on_trial,
                parts=before.parts,
                version=latest.version + 1 if latest is not None else 1,
                minimum=_minimum(needed_by.get(assignment.id)),
                memory_bytes=training_bytes(
                    spec, by_name[assignment.id].ptk, window=most_records, most=most
                ),
            )
        )
    return assigned


def _minimum(assignment: Assignment | None) -> dict[str, Any] | None:
    return (
        None if assignment is None else {"epsilon": assignment.level, "samples": assignment.samples}
    )


def too_large(parts: Parts, assigned: Sequence[Assigned]) -> dict[str, str]:
    """PTKs that may need more memory than a worker has, by name, and why. Public: see `memory`."""
    reasons = {}
    for planned in assigned:
        try:
            require_room(planned.memory_bytes or 0, parts.workers.memory_bytes, "training")
        except Refused as refusal:
            reasons[planned.name] = f"{refusal.reason}: {refusal.message}"
    return reasons


def _trimmed(ranges: Sequence[tuple[int, int]], tags: int) -> tuple[tuple[int, int], ...]:
    """The first so many tags of some ranges."""
    trimmed = []
    for start, stop in ranges:
        if tags > 0:
            trimmed.append((start, min(stop, start + tags)))
            tags -= stop - start
    return tuple(trimmed)


def requests_of(
    parts: Parts, spec: StreamSpec, blocks: Sequence[str], assigned: Sequence[Assigned], cycle: int
) -> list[Reserve]:
    """The charges of a plan, keyed by cycle and PTK so that asking again is asking once."""
    requests = []
    for planned in assigned:
        ptk = ptk_of(planned.kind, planned.config)
        cost = ptk.cost(planned.epsilon, planned.delta, records_per_unit=records_per_unit(spec))
        slices = [Slice(tuple(blocks), TagRange(start, stop)) for start, stop in planned.ranges]
        requests.append(
            parts.ledger.request(
                spec.name,
                slices,
                cost,
                contexts=("door:ptk", f"ptk:{planned.name}"),
                key=_key(cycle, planned.name),
                ttl_seconds=GRANT_SECONDS,
            )
        )
    return requests


def _key(cycle: int, name: str) -> str:
    # The count of the window's blocks has the key that a PTK of this name would have.
    return f"cycle-{cycle}/ptk/{name}" if name == "count" else f"cycle-{cycle}/{name}"


def train(
    parts: Parts,
    spec: StreamSpec,
    blocks: Sequence[str],
    assigned: Sequence[Assigned],
    cycle: int,
    window: str,
    done: Callable[[Mapping[str, TrainedPtk]], None],
) -> None:
    """Spend, train and store; ``done`` is told by name what became of PTKs, once states are in the
    lake or they have failed.
    """
    # Asked again: a cycle may go on after a restart with less memory.
    large = too_large(parts, assigned)
    if large:
        done(
            {
                planned.name: _line(planned, "SKIPPED", large[planned.name])
                for planned in assigned
                if planned.name in large
            }
        )
    # All that can fail for want of a server comes before charges are spent, or is patient.
    earlier, broken = _earlier(
        parts, [planned for planned in assigned if planned.name not in large], int(window)
    )
    if broken:
        done(broken)
    ready = [planned for planned in assigned if planned.name in earlier]
    if not ready:
        return
    requests = requests_of(parts, spec, blocks, ready, cycle)
    try:
        grants = parts.ledger.reserve_all(requests)
    except Refused:
        # Not all stand any more: after a crash some may be spent, and what they paid for is lost.
        ready, grants, lost = _standing(parts, ready, requests)
        done(lost)
    if not ready:
        return
    units = records_per_unit(spec)
    jobs = [
        TrainJob(
            name=assigned.name,
            kind=assigned.kind,
            config=assigned.config,
            epsilon=assigned.epsilon,
            delta=assigned.delta,
            ranges=assigned.ranges,
            records_per_unit=units,
            previous=parts.lake.get(assigned.previous)[0]
            if assigned.previous and earlier[assigned.name] is None
            else None,
        )
        for assigned in ready
    ]
    try:
        opener = spend_and_open(parts.path, spec, grants, parts.ledger)
    except GrantRefused as refusal:
        done({assigned.name: _line(assigned, "TRAIN_LOST", refusal.reason) for assigned in ready})
        return
    jobs = [replace(job, opener=opener) for job in jobs]
    parts.observers.tell("train", "spent")
    by_name = {assigned.name: assigned for assigned in ready}
    # Storing is waiting for the disk, mostly: do it side by side, while others still train.
    with ThreadPoolExecutor(_STORERS) as pool:
        stored = {
            train_outcome.name: pool.submit(
                _outcome,
                parts,
                spec,
                by_name[train_outcome.name],
                earlier[train_outcome.name],
                train_outcome,
                window,
            )
            for together, keep_bytes in _together(parts.workers.memory_bytes, jobs, by_name)
            for train_outcome in parts.workers.train(together, keep_bytes)
        }
    told = {assigned.name: stored[assigned.name].result() for assigned in ready}
    patiently(lambda: done(told))


def _together(
    allowed: int, jobs: Sequence[TrainJob], by_name: dict[str, Assigned]
) -> Iterator[tuple[list[TrainJob], int]]:
    """Jobs that a worker may have at once beside what the largest of them needs, and what is
    left to keep records in.

    A worker gets the last states of all its jobs with them. By sizes that are public.
    """
    waiting: list[TrainJob] = []
    held = needed = 0
    for job in jobs:
        size = 0 if job.previous is None else len(job.previous)
        largest = max(needed, by_name[job.name].memory_bytes or 0)
        if waiting and held + size + largest > allowed:
            yield waiting, _left(allowed - held - needed)
            waiting, held, largest = [], 0, by_name[job.name].memory_bytes or 0
        waiting.append(job)
        held, needed = held + size, largest
    if waiting:
        yield waiting, _left(allowed - held - needed)


def _left(spare: int) -> int:
    return max(0, min(KEEP_BYTES, spare))


def _standing(
    parts: Parts, assigned: Sequence[Assigned], requests: Sequence[Reserve]
) -> tuple[list[Assigned], list[Grant], dict[str, TrainedPtk]]:
    ready: list[Assigned] = []
    grants: list[Grant] = []
    lost: dict[str, TrainedPtk] = {}
    for planned, request in zip(assigned, requests, strict=True):
        try:
            grants += parts.ledger.reserve_all([request])
            ready.append(planned)
        except Refused as refusal:
            outcome = "TRAIN_LOST" if refusal.reason == "KEY_REUSED" else "SKIPPED"
            lost[planned.name] = _line(planned, outcome, refusal.reason)
    return ready, grants, lost


def _earlier(
    parts: Parts, assigned: Sequence[Assigned], window: int
) -> tuple[dict[str, EarlierStates | None], dict[str, TrainedPtk]]:
    """What states are put together with, by name; and the PTKs whose earlier states do not go
    together.
    """
    earlier: dict[str, EarlierStates | None] = {}
    broken: dict[str, TrainedPtk] = {}
    for planned in assigned:
        try:
            earlier[planned.name] = earlier_of(
                planned, window, lambda digest: parts.lake.get(digest)[0]
            )
        except Exception as error:
            if passes(error) or isinstance(error, StateMissing | StateDamaged):
                raise
            broken[planned.name] = _line(planned, "TRAIN_FAILED", failure_of(error))
    return earlier, broken


def _outcome(
    parts: Parts,
    spec: StreamSpec,
    assigned: Assigned,
    earlier: EarlierStates | None,
    trained: TrainOutcome,
    window: str,
) -> TrainedPtk:
    if trained.arrays is None:
        _LOG.warning("PTK %s failed in training: %s", assigned.name, trained.logged)
        return _line(assigned, "TRAIN_FAILED", trained.failure)
    fresh = safetensors.numpy.load(trained.arrays)
    if earlier is None:
        return _stored(parts, spec, assigned, fresh, window)
    try:
        arrays = earlier.with_new(ptk_of(assigned.kind, assigned.config), fresh)
    except Exception as error:
        # States alone were read: what went wrong may be told.
        return _line(assigned, "TRAIN_FAILED", failure_of(error))
    if Over.of(assigned.over).word == "rolling":
        own = _state(spec, assigned, fresh, (window, window))
        digest = patiently(lambda: parts.lake.put(*own.to_bytes()))
        assigned = replace(assigned, parts=(*assigned.parts, (window, digest)))
    return _stored(parts, spec, assigned, arrays, window)


def _line(assigned: Assigned, outcome: str, reason: str) -> TrainedPtk:
    return TrainedPtk(TrainedLine(assigned.name, outcome, epsilon=assigned.epsilon, reason=reason))


def _stored(
    parts: Parts, spec: StreamSpec, assigned: Assigned, arrays: Arrays, window: str
) -> TrainedPtk:
    """The new version, in the lake."""
    state = _state(
        spec,
        assigned,
        arrays,
        (assigned.previous_oldest or window, window),
        previous=assigned.previous,
        over=None if assigned.over == ALL else assigned.over,
        parts=assigned.parts or None,
    )
    digest = patiently(lambda: parts.lake.put(*state.to_bytes()))
    line = TrainedLine(
        assigned.name,
        "PUBLISHED",
        version=assigned.version,
        epsilon=assigned.epsilon,
        samples=assigned.samples,
    )
    return TrainedPtk(line, digest)


def _state(
    spec: StreamSpec,
    assigned: Assigned,
    arrays: Arrays,
    windows: tuple[str, str],
    **made_of: Any,
) -> State:
    """A state with its certificate, and what is told there of earlier states."""
    return State.make(
        ptk_of(assigned.kind, assigned.config),
        arrays,
        name=assigned.name,
        epsilon=assigned.epsilon,
        delta=assigned.delta,
        version=assigned.version,
        stream=spec.name,
        unit=spec.unit,
        records_per_unit=records_per_unit(spec),
        composition=spec.policy.composition,
        windows=windows,
        samples=assigned.samples,
        target=assigned.target,
        minimum=assigned.minimum,
        **made_of,
    )
