"""Profiles of PTKs that have no closed form, measured in a window on its profile slice.

Order: who is profiled and why, and on which part of the slice, is written first; then, PTK by PTK,
all charges of its schedule are reserved (or none), each is spent durably right before its piece is
opened, the result of each level is written as it ends, and what was not used is released. A restart
finds the levels that are written; a level of which something was spent and nothing is written is
lost (PROFILE_LOST): its charges stay, and nothing is measured twice on one charge. So is a level
whose worker died: that is no verdict about the PTK, which waits for the next window. Profile,
status and event of a PTK appear in one transaction.

PTKs that are profiled in the same window have disjoint parts of the profile slice, so their charges
never meet. Trainings and looks of a round run side by side in the worker processes
(`profile_bench`). A PTK that is retired, or gets another configuration or target, while it is
profiled is cancelled before the next round: what ran stays charged, the rest is given back.

The witness of each level is kept in the lake as version 0 of its PTK: it was trained with DP and is
charged already.

Reason: PROFILE_LOST.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from profiler.fitting import fitted_schedule
from profiler.grid import MEASURED
from profiler.levels import privacy_levels
from profiler.measuring.results import (
    FAILED,
    NOT_REACHED,
    REACHED,
    RISK_ABOVE_TARGET,
    TRIED,
    LevelResult,
)
from profiler.measuring.retraining import lifted
from profiler.measuring.schedule import Schedule
from profiler.measuring.tasks import Noise, SystemNoise, lower_release
from profiler.measuring.terms import ProfileTerms
from profiler.profiles import MEASURED_SOURCE, MeasuredProfile, measured_profile
from ptklib.ledger.slices import TagRange
from ptklib.privacy.amounts import show
from ptklib.state import State
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import Registration
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.answering import answer_of
from ptkstore.engine.plans.deciding import PtkDecision, decided
from ptkstore.engine.plans.planning import Candidate, fresh_loss
from ptkstore.engine.plans.registrations import candidate, others_than, told
from ptkstore.engine.plans.window_size import terms_of
from ptkstore.engine.profiles.bench import LedgerBench, ProfilePlace
from ptkstore.engine.profiles.on_trial import any_on_trial, put_on_trial, trainable
from ptkstore.engine.profiles.reuse import Earlier, due, earlier, identity, look_again
from ptkstore.engine.profiles.terms import OLDER, certified, told_of_trial, vain
from ptkstore.engine.retry import patiently
from ptkstore.engine.steps.of_ptks import LISTED, ProfiledLevel, ProfiledPtk, ProfileList
from ptkstore.engine.steps.of_window import Planned, Profiled, Sealed
from ptkstore.engine.steps.step import row_name
from ptkstore.engine.turns import PlanContended
from ptkstore.metadata import ResultsTransaction, Transaction, rows
from ptkstore.workers.protocol import PROFILE_LOST

__all__ = ["profile_due", "train_peak"]

_LIVING = ("WAITING", "ACTIVE", "FAILED")
# Not the PTK's fault, as far as anybody knows: the next window may do.
_UNLUCKY = (PROFILE_LOST,)
# The system's, outside tests.
NOISE: Noise = SystemNoise()


def train_peak(parts: Parts, spec: StreamSpec, blocks: Sequence[str]) -> tuple[int, ...]:
    """The largest loss per component over the points that plans may use: those after the profile
    slice.
    """
    return parts.ledger.peak(spec.name, blocks, TagRange.of_shares(Fraction(spec.profile_share), 1))


def profile_due(
    parts: Parts,
    spec: StreamSpec,
    window: int,
    cycle: int,
    sealed: Sealed,
    progress: Callable[[str], None],
) -> Profiled:
    """Profile what is new or stale; what became of each PTK, by name."""
    if parts.journal.find(cycle, Planned) is not None or not sealed.blocks:
        return Profiled()
    if parts.journal.find(cycle, ProfileList, LISTED) is None:
        look_again(parts, spec, sealed.dp_records)
    with parts.metadata.read() as tx:
        wanted = due(parts, tx, spec, sealed.dp_records)
    # The part of the slice that is kept for the tests of PTKs on trial is nobody's to profile on.
    places = len(wanted) + (1 if wanted and any_on_trial(parts, spec) else 0)
    listed = parts.journal.write(
        cycle, ProfileList(tuple(wanted), tuple(wanted.values()), places), part=LISTED
    )
    ptks: dict[str, ProfiledPtk] = {}
    for number, ptk in enumerate(listed.ptks):
        with parts.metadata.read() as tx:
            subject = candidate(tx, tx.ptks.get(ptk))
        profiled = parts.journal.find(cycle, ProfiledPtk, str(ptk))
        if profiled is None:
            place = ProfilePlace(parts, spec, cycle, sealed.blocks, subject, number, listed.places)
            progress(f"{spec.name}, window {window}: profile {subject.row.name}")
            profiled = _Part(place, window, sealed.dp_records).profile(progress)
        ptks[subject.row.name] = profiled
    return Profiled(ptks)


@dataclass
class _Part:
    """The profile of one PTK in a window."""

    place: ProfilePlace
    window: int
    dp_records: int
    witnesses: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Short names."""
        self.parts, self.spec = self.place.parts, self.place.spec
        self.cycle, self.candidate = self.place.cycle, self.place.candidate

    def profile(self, progress: Callable[[str], None]) -> ProfiledPtk:
        """Measure what is not known, then write profile and status together."""
        levels = privacy_levels(self.parts.privacy_filter(self.spec.name).epsilon)
        terms = terms_of(self.spec, self.candidate)
        expected = int(self.dp_records * Fraction(self.spec.profile_share) / self.place.places)
        usable = self._affordable(levels, terms) or [levels[0]]
        plan = fitted_schedule(self.candidate.ptk, terms, usable, expected, MEASURED)
        bench = LedgerBench(self.place, self.dp_records)
        with self.parts.metadata.read() as tx:
            before = earlier(self.parts, tx, self.spec, self.candidate.row, terms, self.dp_records)
        known = self._known(plan, bench, before)
        measured = measured_profile(
            self.candidate.ptk,
            terms,
            levels,
            bench,
            expected,
            plan=plan,
            known=known,
            noise=NOISE,
            finished=self._finished,
            cancelled=self._cancelled,
            progress=lambda text: progress(f"{self.candidate.row.name}: {text}"),
        )
        measured = put_on_trial(self.parts, self.spec, measured, terms, self.dp_records)
        return self._write(measured, terms, before)

    def _affordable(self, levels: Sequence[Fraction], terms: ProfileTerms) -> list[Fraction]:
        """Levels whose training and lower test fit beside the window's count."""
        privacy_filter = self.parts.privacy_filter(self.spec.name)
        fresh = np.array([fresh_loss(self.spec, privacy_filter)], dtype=np.int64)
        lower = lower_release(terms.prices.lower, terms.records_per_unit).cost
        ptk, affordable = self.candidate.ptk, []
        for level in levels:
            price = ptk.cost(level, terms.delta, records_per_unit=terms.records_per_unit)
            demand = privacy_filter.demand(price + lower if ptk.tags.exact_minimiser else price)
            if privacy_filter.admits(fresh, np.array(demand, dtype=np.int64)).all():
                affordable.append(level)
        return affordable

    def _known(
        self, plan: Schedule, bench: LedgerBench, before: Earlier
    ) -> dict[Fraction, LevelResult]:
        """Levels that are written, those that a crash took (something was spent and nothing is
        written), and reused ones.
        """
        level_results: dict[Fraction, LevelResult] = {}
        with self.parts.metadata.read() as tx:
            steps = {step.step: step.body for step in tx.cycles.steps(self.cycle)}
        for level in plan.levels:
            name, body = (
                show(level.level),
                steps.get(row_name(ProfiledLevel, self._part(level.level))),
            )
            spent = [charge.name for charge in level.charges if bench.is_spent(charge)]
            if body is not None:
                written = ProfiledLevel.from_json(body)
                level_results[level.level] = written.result
                self.witnesses |= {name: written.witness} if written.witness else {}
            elif spent:
                level_results[level.level] = LevelResult(
                    level.level, FAILED, charged=tuple(spent), reason=PROFILE_LOST
                )
            elif level.level in before.results:
                level_results[level.level] = before.results[level.level]
                self.witnesses |= {name: before.witnesses[name]} if name in before.witnesses else {}
            if level.level in level_results:
                bench.give_back(level.charges)
        return level_results

    def _finished(self, result: LevelResult) -> None:
        witness = None
        if result.state is not None:
            witness = self.witnesses[show(result.level)] = patiently(lambda: self._keep(result))
        level, part = ProfiledLevel(result, witness), self._part(result.level)
        patiently(lambda: self.parts.journal.write(self.cycle, level, part=part))
        self.parts.observers.tell("profile", "level")

    def _keep(self, result: LevelResult) -> str:
        """The witness as version 0, in the lake.

        Release of a DP state whose charge is spent: no further cost.
        """
        assert result.state is not None
        terms = terms_of(self.spec, self.candidate)
        state = State.make(
            self.candidate.ptk,
            result.state,
            name=self.candidate.row.name,
            epsilon=result.level,
            delta=terms.delta,
            version=0,
            stream=self.spec.name,
            unit=self.spec.unit,
            records_per_unit=terms.records_per_unit,
            composition=self.spec.policy.composition,
            windows=(str(self.window), str(self.window)),
            samples=result.size,
            target=self.candidate.row.target,
        )
        return self.parts.lake.put(*state.to_bytes())

    def _cancelled(self) -> bool:
        def read() -> rows.PtkRow:
            with self.parts.metadata.read() as tx:
                return tx.ptks.get(self.candidate.row.id)

        fresh = patiently(read)
        return fresh.status not in _LIVING or not self._same(fresh)

    def _same(self, fresh: rows.PtkRow) -> bool:
        row = self.candidate.row
        return (fresh.config_version, fresh.target) == (row.config_version, row.target)

    def _part(self, level: Fraction) -> str:
        return f"{self.candidate.row.id}:{show(level)}"

    def _write(
        self, measured: MeasuredProfile, terms: ProfileTerms, before: Earlier
    ) -> ProfiledPtk:
        """Profile, status and event in one transaction.

        What becomes of one that waited is planned before it is opened.
        """
        row = self.candidate.row
        privacy_filter = self.parts.privacy_filter(self.spec.name)

        def read(tx: Transaction) -> tuple[Sequence[Candidate], Candidate]:
            fresh = tx.ptks.get(row.id)
            trial = measured.status == TRIED
            newcomer = Candidate(fresh, self.candidate.ptk, measured.profile, trial)
            return others_than(tx, fresh), newcomer

        def answer(others: Sequence[Candidate], newcomer: Candidate) -> Registration | None:
            if newcomer.row.status != "WAITING" or not self._same(newcomer.row):
                return None
            return self._answer(
                measured,
                lambda: self.parts.ask(answer_of, self.spec, privacy_filter, others, newcomer),
            )

        def write(
            tx: ResultsTransaction, newcomer: Candidate, answered: Registration | None
        ) -> ProfiledPtk:
            return self._written(
                tx, newcomer.row, measured, self._body(measured, terms, before), answered
            )

        try:
            decision = PtkDecision(
                self.spec.name, row.name, read, answer, write, self.parts.journal.writing
            )
            return decided(self.parts.metadata, decision)
        except PlanContended as busy:
            # The profile is paid for and kept; what becomes of the PTK is settled in the
            # background.
            later = Registration(
                row.name, "REJECTED", reason=f"not planned yet: {busy.message}", refining=True
            )
            with self.parts.journal.writing() as tx:
                fresh = tx.ptks.get(row.id)
                waits = fresh.status == "WAITING" and self._same(fresh)
                answered = self._answer(measured, lambda: later) if waits else None
                return self._written(
                    tx, fresh, measured, self._body(measured, terms, before), answered
                )

    def _body(
        self, measured: MeasuredProfile, terms: ProfileTerms, before: Earlier
    ) -> dict[str, Any]:
        now_ms = self.parts.public_ms()
        body = measured.as_json() | identity(self.spec, self.candidate.row, terms)
        body |= {
            "dp_records": self.dp_records,
            "window_cycle": self.cycle,
            "witnesses": self.witnesses,
        }
        return body | {"made_ms": now_ms if before.made_ms is None else min(now_ms, before.made_ms)}

    def _written(
        self,
        tx: ResultsTransaction,
        fresh: rows.PtkRow,
        measured: MeasuredProfile,
        body: dict[str, Any],
        answered: Registration | None,
    ) -> ProfiledPtk:
        row, now_ms = self.candidate.row, self.parts.public_ms()
        # Something was found out, if only that no level is enough.
        known = measured.status in (REACHED, TRIED, NOT_REACHED, RISK_ABOVE_TARGET)
        if known and self._same(fresh) and fresh.status in _LIVING:
            levels = [show(level) for level in measured.profile.levels]
            tx.profiles.put(
                row.id, row.config_version, row.target, levels, body, MEASURED_SOURCE, at_ms=now_ms
            )
        if answered is None and not known and fresh.status in ("ACTIVE", "FAILED"):
            self._distrust(tx, fresh, measured, now_ms)
        if answered is not None and measured.status in (REACHED, TRIED):
            told(tx, fresh, answered, now_ms)
        elif answered is not None:
            self._unreached(tx, answered, now_ms)
        profiled = ProfiledPtk(row.name, measured.status, measured.trainings)
        kind = "ptk.profiled" if known else "ptk.not_profiled"
        outcome = profiled.as_json() | {"reason": _outcome(measured)}
        tx.events.add(kind, row.name, outcome, at_ms=now_ms)
        return self.parts.journal.write_in(tx, self.cycle, profiled, part=str(row.id))

    def _answer(
        self, measured: MeasuredProfile, planned: Callable[[], Registration]
    ) -> Registration:
        """What becomes of a PTK that waited.

        One that trains already keeps its status: the next plan tells.
        """
        if measured.status == REACHED:
            answer = planned()
            warned = measured.vain and answer.status == "ACTIVE"
            return replace(answer, reason=vain(measured.as_json())) if warned else answer
        if measured.status == TRIED:
            answer = planned()
            trial = told_of_trial(measured.profile)
            return replace(answer, reason=trial) if answer.status == "ACTIVE" else answer
        reason = f"profile: {measured.status}, {measured.results[-1].reason}"[:1000]
        if measured.status in (NOT_REACHED, RISK_ABOVE_TARGET):
            return Registration(
                self.candidate.row.name,
                "REJECTED",
                reason=reason,
                nearest_target=_nearest(measured, trainable(self.spec, self.dp_records)),
            )
        if measured.status == FAILED and measured.results[-1].reason not in _UNLUCKY:
            return Registration(self.candidate.row.name, "REJECTED", reason=reason)
        # Too little data, no budget, or a crash: the next window may do.
        return Registration(self.candidate.row.name, "WAITING", reason=reason)

    def _distrust(
        self, tx: Transaction, fresh: rows.PtkRow, measured: MeasuredProfile, now_ms: int
    ) -> None:
        """A profile of the older rule certified a witness only. Where it could not be renewed, its
        PTK waits: nothing is published on it.
        """
        last = tx.profiles.latest(fresh.id, fresh.config_version, fresh.target)
        if last is not None and not certified(last.samples):
            reason = f"{OLDER} ({measured.status}, {measured.results[-1].reason})"[:1000]
            tx.ptks.set_status(fresh.id, "WAITING", reason=reason, at_ms=now_ms)

    def _unreached(self, tx: Transaction, answered: Registration, now_ms: int) -> None:
        row, reason = self.candidate.row, answered.reason
        if answered.status == "WAITING":
            tx.ptks.set_status(row.id, "WAITING", reason=reason, at_ms=now_ms)
            return
        suggestion: dict[str, Any] = {"nearest_target": answered.nearest_target, "changes": []}
        tx.ptks.set_status(row.id, "REJECTED", reason=reason, suggestion=suggestion, at_ms=now_ms)
        tx.events.add("ptk.rejected", row.name, {"reason": reason, **suggestion}, at_ms=now_ms)


def _outcome(measured: MeasuredProfile) -> str:
    """What became of it, for people."""
    if measured.status == REACHED:
        return "its target is reached"
    if measured.status == TRIED:
        return "on trial: its states are tested"
    last = measured.results[-1].reason if measured.results else ""
    return f"no profile that it can train by: {last or measured.status}"[:1000]


def _nearest(measured: MeasuredProfile, most: int) -> float | None:
    """The target, in thousandths, at which the best states seen would have passed, with one more
    margin for the noise; of sizes that a window with ``most`` records to train on can plan.
    """
    reach = [
        look.risk + 2 * look.margin
        for result in measured.results
        for look in result.looks
        if lifted(look.samples, look.states) <= most
    ]
    nearest = math.ceil(min(reach) * 1000) / 1000 if reach else 1.0
    return nearest if nearest < 1 else None
