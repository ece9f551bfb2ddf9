"""The charges of a plan, training in workers, states into the lake.

Order, for every PTK: its charge is reserved (with all others of the plan, or none), spent durably, and only then are its blocks
opened. A charge that was spent without a state to show for it stays spent, and the PTK fails this window (TRAIN_LOST): nothing
is ever trained twice on one charge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from ptkstore.engine.patience import patiently
from ptkstore.engine.planning import Candidate, charge_delta, ptk_of, records_per_unit
from ptkstore.streams import StreamSpec
from ptkstore.streams.opened import spend_and_open
from ptkstore.views import TrainedLine
from ptkstore.workers.train import Lesson, Trained

__all__ = ["GRANT_SECONDS", "Assigned", "assign", "requests_of", "train"]

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

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; tags as texts, for they do not fit doubles."""
        return asdict(self) | {"ranges": [[str(start), str(stop)] for start, stop in self.ranges]}

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Assigned:
        """Read `as_json` back."""
        return cls(**(body | {"ranges": tuple((int(start), int(stop)) for start, stop in body["ranges"])}))


def assign(
    home: Home, spec: StreamSpec, plan: Plan, candidates: Sequence[Candidate], dp_records: int
) -> list[Assigned]:
    """Ranges of tags for a plan: its partitions side by side from the end of the profile slice on, each as long as its samples
    need in a window of that DP number of records. A PTK that needs less than its partitions hold gets the first of them."""
    if plan.total_samples is None:
        return []
    cut = ptk_ranges(plan, dp_records, start=Fraction(spec.profile_share))
    by_name = {one.row.name: one for one in candidates}
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
                ranges=_trimmed(tags, needed),
                previous=latest.digest if latest is not None and same else None,
                previous_oldest=latest.manifest["windows"][0] if latest is not None and same else None,
                version=latest.version + 1 if latest is not None else 1,
            )
        )
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
    requests = requests_of(home, spec, blocks, assigned, cycle)
    ready = list(assigned)
    try:
        grants = home.ledger.reserve_all(requests)
    except Refused:
        # Not all stand any more: after a crash some may be spent, and what they paid for is lost.
        ready, grants, lost = _standing(home, assigned, requests)
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
            for one in home.workers.train(opened, lessons)
        }
    told = {one.name: stored[one.name].result() for one in ready}
    patiently(lambda: done(told))


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
