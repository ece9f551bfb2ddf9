"""Profiles of PTKs that have no closed form, measured in a window on its profile slice.

Order: who is profiled, and on which part of the slice, is written first; then, PTK by PTK, all charges of its schedule are
reserved (or none), each is spent durably right before its piece is opened, the result of each level is written as it ends,
and what was not used is released. A restart finds the levels that are written; a level of which something was spent and
nothing is written is lost (PROFILE_LOST): its charges stay, and nothing is measured twice on one charge. Profile, status
and event of a PTK appear in one transaction.

PTKs that are profiled in the same window have disjoint parts of the profile slice, so their charges never meet. What
comes back from a piece is DP; records stay in this process and this call.

Reason: PROFILE_LOST.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from profiler.grid import MEASURED, chosen
from profiler.levels import privacy_levels
from profiler.measure import FAILED, NOT_REACHED, REACHED, RISK_ABOVE_TARGET, LevelResult
from profiler.pieces import Charge, Piece
from profiler.profiles import MEASURED_SOURCE, MeasuredProfile, measured_profile
from profiler.schedule import Schedule, Terms, schedule
from profiler.staleness import Made, stale
from profiler.tasks import Answer, Task, lower_release, run
from ptklib.errors import GrantRefused, SageError
from ptklib.ledger.commands import Reserve
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import Slice, TagRange
from ptklib.privacy.amounts import show
from ptklib.ptk import Batches
from ptkstore.engine.home import Home
from ptkstore.engine.planning import Candidate, fresh_loss
from ptkstore.engine.profile_terms import terms_of
from ptkstore.engine.registrations import candidate, decide, has_closed_form
from ptkstore.engine.training import GRANT_SECONDS
from ptkstore.metadata import rows
from ptkstore.metadata.store import Transaction
from ptkstore.streams import StreamSpec
from ptkstore.streams.opened import Opened, read_opened, require_open, spend_and_open

__all__ = ["MAX_AGE_WINDOWS", "profile_due", "train_peak"]

MAX_AGE_WINDOWS = 30


def train_peak(home: Home, spec: StreamSpec, blocks: Sequence[str]) -> tuple[int, ...]:
    """The largest loss per component over the points that plans may use: those after the profile slice."""
    return home.ledger.peak(spec.name, blocks, TagRange.of_shares(Fraction(spec.profile_share), 1))


def profile_due(
    home: Home, spec: StreamSpec, window: int, cycle: int, sealed: dict[str, Any], progress: Callable[[str], None]
) -> dict[str, Any]:
    """Profile what is new or stale; what became of each PTK, by name."""
    with home.metadata.read() as tx:
        planned = tx.cycles.step(cycle, "planned") is not None
    if planned or not sealed["blocks"]:
        return {}
    with home.metadata.write() as tx:
        due = {"ptks": _due(home, tx, spec, sealed)}
        names = tx.cycles.add_step(cycle, "profiled:list", due, at_ms=home.now_ms()).body["ptks"]
    found = {}
    for place, ptk in enumerate(names):
        with home.metadata.read() as tx:
            one = candidate(tx, tx.ptks.get(ptk))
            done = tx.cycles.step(cycle, f"profiled:{ptk}")
        if done is None:
            part = _Part(home, spec, cycle, tuple(sealed["blocks"]), one, place, len(names), sealed["dp_records"])
            progress(f"{spec.name}, window {window}: profile {one.row.name}")
            body = part.profile(progress)
        else:
            body = done.body
        found[one.row.name] = body
    return found


def _due(home: Home, tx: Transaction, spec: StreamSpec, sealed: dict[str, Any]) -> list[int]:
    """Ids of the PTKs to profile, in their order."""
    if Fraction(spec.profile_share) == 0:
        return []
    judge = home.judge(spec.name)
    found = []
    for row in tx.ptks.list(spec.name):
        if row.status not in ("WAITING", "ACTIVE", "FAILED"):
            continue
        if has_closed_form(spec, judge, Candidate.of(row)):
            continue
        last = tx.profiles.latest(row.id, row.config_version, row.target)
        if last is None or row.status == "WAITING" or _stale(home, spec, row, last, sealed["dp_records"]):
            found.append(row.id)
    return found


def _stale(home: Home, spec: StreamSpec, row: rows.Ptk, last: rows.Profile, dp_records: int) -> str:
    made = Made(last.created_ms or 0, last.config_version, last.target, last.samples["dp_records"])
    return stale(
        made,
        now_ms=home.now_ms(),
        max_age_ms=MAX_AGE_WINDOWS * spec.window_seconds * 1000,
        config_version=row.config_version,
        target=row.target,
        dp_records=(dp_records,),
    )


@dataclass
class _Part:
    """One PTK's part of the profile slice of a window."""

    home: Home
    spec: StreamSpec
    cycle: int
    blocks: tuple[str, ...]
    one: Candidate
    place: int
    parts: int
    dp_records: int

    def profile(self, progress: Callable[[str], None]) -> dict[str, Any]:
        """Measure, then write profile and status together."""
        epsilon = self.home.judge(self.spec.name).epsilon
        levels = privacy_levels(epsilon)
        terms = terms_of(self.spec, self.one)
        expected = int(self.dp_records * Fraction(self.spec.profile_share) / self.parts)
        usable = self._affordable(levels, terms) or [levels[0]]
        plan = schedule(self.one.ptk, terms, chosen(usable, MEASURED), expected)
        bench = _LedgerBench(self)
        known = self._known(plan, bench)
        found = measured_profile(
            self.one.ptk,
            terms,
            levels,
            bench,
            expected,
            plan=plan,
            known=known,
            finished=self._finished,
            progress=lambda text: progress(f"{self.one.row.name}: {text}"),
        )
        return self._write(found)

    def _affordable(self, levels: Sequence[Fraction], terms: Terms) -> list[Fraction]:
        """Levels whose training and lower test fit beside the window's count."""
        judge = self.home.judge(self.spec.name)
        fresh = np.array([fresh_loss(self.spec, judge)], dtype=np.int64)
        lower = lower_release(terms.prices.lower, terms.records_per_unit).cost
        found = []
        for level in levels:
            price = self.one.ptk.cost(level, terms.delta, records_per_unit=terms.records_per_unit)
            demand = judge.demand(price + lower if self.one.ptk.tags.exact_minimiser else price)
            if judge.admits(fresh, np.array(demand, dtype=np.int64)).all():
                found.append(level)
        return found

    def key(self, charge: Charge) -> str:
        """Of a charge in the ledger: asking again is asking once."""
        return f"cycle-{self.cycle}/profile-{self.one.row.id}/{charge.name}"

    def request(self, charge: Charge) -> Reserve:
        """The reservation of one charge."""
        return self.home.ledger.request(
            self.spec.name,
            [Slice(self.blocks, self.tags(charge.piece))],
            charge.cost,
            contexts=("door:profile", f"ptk:{self.one.row.name}"),
            key=self.key(charge),
            ttl_seconds=GRANT_SECONDS,
        )

    def tags(self, piece: Piece) -> TagRange:
        """A piece as tags: this PTK's part of the profile slice, then the piece's part of that."""
        width = Fraction(self.spec.profile_share) / self.parts
        ends = (width * (self.place + end) for end in (piece.start, piece.stop))
        # Rounded alike for neighbours, so that they never overlap.
        return TagRange.of_shares(*(end.limit_denominator(10**15) for end in ends))

    def _known(self, plan: Schedule, bench: _LedgerBench) -> dict[Fraction, LevelResult]:
        """Levels that are written, and those that a crash took: something was spent and nothing is written."""
        found: dict[Fraction, LevelResult] = {}
        with self.home.metadata.read() as tx:
            steps = {one.step: one.body for one in tx.cycles.steps(self.cycle)}
        for level in plan.levels:
            body = steps.get(self._step(level.level))
            spent = [one.name for one in level.charges if bench.is_spent(one)]
            if body is not None:
                found[level.level] = LevelResult.from_json(body)
            elif spent:
                found[level.level] = LevelResult(level.level, FAILED, charged=tuple(spent), reason="PROFILE_LOST")
            if level.level in found:
                bench.give_back(level.charges)
        return found

    def _finished(self, result: LevelResult) -> None:
        with self.home.metadata.write() as tx:
            tx.cycles.add_step(self.cycle, self._step(result.level), result.as_json(), at_ms=self.home.now_ms())
        self.home.on_step("profile", "level")

    def _step(self, level: Fraction) -> str:
        return f"profiled:{self.one.row.id}:{show(level)}"

    def _write(self, found: MeasuredProfile) -> dict[str, Any]:
        row, now_ms = self.one.row, self.home.now_ms()
        # Something was found out, if only that no level is enough.
        known = found.status in (REACHED, NOT_REACHED, RISK_ABOVE_TARGET)
        body = found.as_json() | {"dp_records": self.dp_records, "window_cycle": self.cycle}
        with self.home.metadata.write() as tx:
            fresh = tx.ptks.get(row.id)
            same = (fresh.config_version, fresh.target) == (row.config_version, row.target)
            if known and same:
                levels = [show(level) for level in found.profile.levels]
                tx.profiles.put(row.id, row.config_version, row.target, levels, body, MEASURED_SOURCE, at_ms=now_ms)
            if same and fresh.status in ("WAITING", "ACTIVE", "FAILED"):
                self._settle(tx, fresh, found, now_ms)
            told = {"ptk": row.name, "status": found.status, "trainings": found.trainings}
            tx.events.add("ptk.profiled", row.name, told, at_ms=now_ms)
            step = tx.cycles.add_step(self.cycle, f"profiled:{row.id}", told, at_ms=now_ms)
        return dict(step.body)

    def _settle(self, tx: Transaction, row: rows.Ptk, found: MeasuredProfile, now_ms: int) -> None:
        """Accept or reject a PTK that waited. One that trains already keeps its status: the next plan tells."""
        if row.status != "WAITING":
            return
        if found.status == REACHED:
            decide(tx, self.spec, self.home.judge(self.spec.name), candidate(tx, row), now_ms)
            return
        reason = f"profile: {found.status}, {found.results[-1].reason}"[:1000]
        if found.status in (NOT_REACHED, RISK_ABOVE_TARGET):
            suggestion: dict[str, Any] = {"nearest_target": _nearest(found), "changes": []}
            tx.ptks.set_status(row.id, "REJECTED", reason=reason, suggestion=suggestion, at_ms=now_ms)
            tx.events.add("ptk.rejected", row.name, {"reason": reason, **suggestion}, at_ms=now_ms)
        elif found.status == FAILED and found.results[-1].reason != "PROFILE_LOST":
            tx.ptks.set_status(row.id, "REJECTED", reason=reason, at_ms=now_ms)
            tx.events.add("ptk.rejected", row.name, {"reason": reason}, at_ms=now_ms)
        else:
            # Too little data, no budget, or a crash: the next window may do.
            tx.ptks.set_status(row.id, "WAITING", reason=reason, at_ms=now_ms)


def _nearest(found: MeasuredProfile) -> float | None:
    """The target, in thousandths, at which the best state seen would have passed: its risk is 3/4 of what is promised."""
    risks = [look.risk for one in found.results for look in one.looks]
    nearest = math.ceil(min(risks) * 4 / 3 * 1000) / 1000 if risks else 1.0
    return nearest if nearest < 1 else None


class _LedgerBench:
    """The bench of the profiler on the ledger and the vault."""

    def __init__(self, part: _Part) -> None:
        self._part = part
        self._grants: dict[str, Grant] = {}
        self._spent: set[str] = set()
        self._kept: list[tuple[pa.RecordBatch, NDArray[np.uint64]]] | None = None

    def reserve(self, charges: Sequence[Charge]) -> None:
        """All or none, durably."""
        if charges:
            grants = self._part.home.ledger.reserve_all([self._part.request(one) for one in charges])
            self._grants |= {one.name: grant for one, grant in zip(charges, grants, strict=True)}
        self._part.home.on_step("profile", "reserved")

    def run(self, tasks: Sequence[Task]) -> list[Answer]:
        """Spend all charges in one durable step, then read and run."""
        if not tasks:
            return []
        part = self._part
        grants = [self._grants[task.charge.name] for task in tasks]
        try:
            opened = spend_and_open(part.home.path, part.spec, grants, part.home.ledger)
        except GrantRefused as refusal:
            return [Answer(failure=refusal.reason, charged=False) for _ in tasks]
        self._spent |= {task.charge.name for task in tasks}
        part.home.on_step("profile", "spent")
        return [run(task, self._records(opened, task)) for task in tasks]

    def release(self, charges: Sequence[Charge]) -> None:
        """Give back what was not spent."""
        for one in charges:
            grant = self._grants.pop(one.name, None)
            if grant is not None and one.name not in self._spent:
                self._part.home.ledger.release(grant)

    def is_spent(self, charge: Charge) -> bool:
        """True when the ledger has it as spent, by this process or one before."""
        ledger = self._part.home.ledger
        number = ledger.find(self._part.spec.name, self._part.key(charge))
        return number is not None and ledger.fate(number) == "SPENT"

    def give_back(self, charges: Sequence[Charge]) -> None:
        """Release reservations that a process before this one left."""
        ledger = self._part.home.ledger
        for one in charges:
            number = ledger.find(self._part.spec.name, self._part.key(one))
            if number is None or ledger.fate(number) != "RESERVED":
                continue
            try:
                ledger.release(ledger.reserve_all([self._part.request(one)])[0])
            except SageError:
                continue  # It lapses by itself.

    def _records(self, opened: Opened, task: Task) -> Callable[[], Batches]:
        tags = self._part.tags(task.charge.piece)

        def records() -> Batches:
            require_open(opened, tags.start, tags.stop)
            for batch, marks in self._read(opened):
                inside = (marks >= np.uint64(tags.start)) & (marks <= np.uint64(tags.stop - 1))
                if inside.any():
                    yield batch.filter(pa.array(inside))

        return records

    def _read(self, opened: Opened) -> list[tuple[pa.RecordBatch, NDArray[np.uint64]]]:
        """The records of this PTK's part, read once: blocks are decrypted as a whole, and a task sees its piece only."""
        if self._kept is None:
            width = Fraction(self._part.spec.profile_share) / self._part.parts
            whole = TagRange.of_shares(width * self._part.place, width * (self._part.place + 1))
            kept = []
            columns = list(self._part.one.ptk.columns())
            for batch, marks in read_opened(opened):
                inside = (marks >= np.uint64(whole.start)) & (marks <= np.uint64(whole.stop - 1))
                kept.append((batch.select(columns).filter(pa.array(inside)), marks[inside]))
            self._kept = kept
        return self._kept
