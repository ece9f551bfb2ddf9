"""The cycle of one window: profile, plan, charge, train, validate, publish, notify, expire. Each
step is written when it is done, with all that belongs to it, by the journal
(`ptkstore.engine.journal`).

A step holds what later steps need (`ptkstore.engine.steps`), so a restart goes on after the last
one, with the same numbers. The table in docs/internals/engine.md says what a kill between any two
of them leaves; observers let tests kill there.

A window that does not carry all PTKs that are due trains as many as it does (`plans`). One that
publishes less than it should, for whatever reason, ends SHORT and says so in an event before its
data is destroyed (`shortfall`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from allocator.admission.settling import Current
from ptklib.errors import BudgetExceeded
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import CycleView, TrainedLine
from ptkstore.engine.asking import anyway
from ptkstore.engine.journal import Also
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import Candidate, training_loss
from ptkstore.engine.plans.registrations import active
from ptkstore.engine.plans.surplus import Held
from ptkstore.engine.profiles.on_trial import Outcome, trial_outcome, write_outcome
from ptkstore.engine.profiles.profiling import profile_due, train_peak
from ptkstore.engine.retry import patiently
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.engine.steps.of_ptks import TrainedPtk
from ptkstore.engine.steps.of_window import (
    STEPS as STEP_TYPES,
)
from ptkstore.engine.steps.of_window import (
    Done,
    Expired,
    Notified,
    Planned,
    Profiled,
    Published,
    Reserved,
    Sealed,
    Trained,
    Validated,
)
from ptkstore.engine.steps.step import Step
from ptkstore.engine.window.counting import count_blocks
from ptkstore.engine.window.plans import ADOPTED, Line, plan_window
from ptkstore.engine.window.shortfall import DONE, EVENT, PUBLISHED, SHORT, Shortfall, shortfall_of
from ptkstore.engine.window.stating import with_errors
from ptkstore.engine.window.training import assign, requests_of, too_large, train
from ptkstore.engine.window.trials import testable
from ptkstore.engine.window.validating import validate_new
from ptkstore.engine.window.views import cycle_view
from ptkstore.metadata import ResultsTransaction, Transaction
from ptkstore.metadata.catalogue.cycles import RUNNING
from ptkstore.metadata.catalogue.states import NOT_SHOWN

__all__ = ["STEPS", "Cycle"]

STEPS = tuple(kind.STEP for kind in STEP_TYPES)

Progress = Callable[[str], None]
AnyStep = TypeVar("AnyStep", bound=Step)


def _nothing(_tx: ResultsTransaction) -> None:
    """The step alone is written."""


def _at_once(write: Callable[[], AnyStep]) -> AnyStep:
    return write()


@dataclass(frozen=True)
class _Result(Generic[AnyStep]):
    """A step that is done, and what is to be written with it."""

    step: AnyStep
    also: Also = _nothing


class Cycle:
    """One window of one stream. Running it again resumes it; a finished one does nothing."""

    def __init__(self, parts: Parts, stream: str, window: int, progress: Progress) -> None:
        """Start the cycle in the metadata, or find it there."""
        self.parts = parts
        self.spec: StreamSpec = parts.specs[stream]
        self.window = window
        self.progress = progress
        with parts.journal.writing() as tx:
            self.id = tx.cycles.start(stream, window, at_ms=parts.public_ms())

    def run(self) -> CycleView:
        """All steps that are not done."""
        with self.parts.metadata.read() as tx:
            done = tx.cycles.get(self.id).status != RUNNING
        if not done:
            # A count that was taken is paid for, and exists nowhere else.
            sealed = self._step(Sealed, self._seal, trying=patiently)
            self._step(Profiled, lambda: self._profile(sealed))
            planned = self._step(Planned, lambda: self._plan(sealed))
            reserved = self._step(Reserved, lambda: self._reserve(sealed, planned))
            trained = self._step(Trained, lambda: self._train(sealed, planned, reserved))
            validated = self._step(Validated, lambda: self._validate(sealed, planned, trained))
            self._step(Published, lambda: self._publish(sealed, planned, trained, validated))
            self._step(Notified, self._notify)
            self._step(Expired, lambda: self._expire(sealed))
            with self.parts.journal.writing() as tx:
                end = DONE if _shortfall(tx, self.id) is None else SHORT
                tx.cycles.finish(
                    self.id, end, {"dp_records": sealed.dp_records}, at_ms=self.parts.public_ms()
                )
        with self.parts.metadata.read() as tx:
            return cycle_view(tx, self.id)

    def _step(
        self,
        kind: type[AnyStep],
        work: Callable[[], _Result[AnyStep]],
        *,
        trying: Callable[[Callable[[], AnyStep]], AnyStep] = _at_once,
    ) -> AnyStep:
        """The step as it was written; worked for now if it was not."""
        known = self.parts.journal.find(self.id, kind)
        if known is not None:
            return known
        self.parts.lead.require_lease()
        self.progress(f"{self.spec.name}, window {self.window}: {kind.STEP}")
        self.parts.observers.tell(kind.STEP, "begins")
        result = work()
        self.parts.observers.tell(kind.STEP, "worked")
        written = trying(lambda: self.parts.journal.write(self.id, result.step, also=result.also))
        self.parts.observers.tell(kind.STEP, "written")
        return written

    def _seal(self) -> _Result[Sealed]:
        with self.parts.metadata.read() as tx:
            blocks = tx.blocks.list(self.spec.name, self.window)
        counted = count_blocks(self.parts, self.spec, blocks, self.id)
        known = {block.name: block.dp_count or 0 for block in blocks}

        def also(tx: ResultsTransaction) -> None:
            for name, count in counted.counts.items():
                tx.blocks.set_dp_count(self.spec.name, name, count)

        # Noise may make a count negative; clamping is post-processing.
        dp_records = sum(max(0, count) for count in {**known, **counted.counts}.values())
        return _Result(Sealed(tuple(known), dp_records, counted.lost), also)

    def _profile(self, sealed: Sealed) -> _Result[Profiled]:
        return _Result(
            profile_due(self.parts, self.spec, self.window, self.id, sealed, self.progress)
        )

    def _plan(self, sealed: Sealed) -> _Result[Planned]:
        with self.parts.metadata.read() as tx:
            accepted = active(tx, self.spec.name)
            due = [ptk for ptk in accepted if self.window % ptk.row.train_every == 0]
            old = tx.plans.latest(self.spec.name, status=ADOPTED)
            line = _line(tx, self.spec.name, accepted)
        # Without a test there is no version of a PTK on trial.
        due = testable(self.parts, self.spec, sealed.blocks, sealed.dp_records, due)
        # What a stream uses of its windows may have changed since the cycle began.
        self.spec = self.parts.specs.current(self.spec.name)
        privacy_filter = self.parts.privacy_filter(self.spec.name)
        # Profiles were charged to the tags of the profile slice; the plan's begin after it.
        loss = training_loss(
            self.spec, privacy_filter, train_peak(self.parts, self.spec, sealed.blocks)
        )
        window_plan = anyway(self.parts.ask)(
            plan_window,
            self.spec,
            privacy_filter,
            loss,
            due,
            line,
            window=self.window,
            held=Held(sealed.dp_records, len(sealed.blocks), self.parts.workers.memory_bytes),
            current=Current.of(old.body) if old is not None else None,
        )
        settled = window_plan.settled
        assigned = assign(
            self.parts,
            self.spec,
            window_plan.trained,
            due,
            sealed.dp_records,
            len(sealed.blocks),
            self.window,
            fewest=None if window_plan.richer is None else settled.plan,
        )
        assigned = with_errors(self.parts, self.spec, assigned)
        large = too_large(self.parts, assigned)
        planned = Planned(
            plan=settled.plan.as_json(),
            coordinate=settled.coordinate,
            capacity=settled.problem.capacity if settled.problem is not None else None,
            view=window_plan.view.as_json(),
            assigned=tuple(ptk for ptk in assigned if ptk.name not in large),
            due=tuple(ptk.row.name for ptk in due),
            left_out={ptk.id: ptk.reason for ptk in window_plan.left_out} | large,
            left_out_since=line.after(self.window, due, window_plan.left_out),
        )

        def also(tx: ResultsTransaction) -> None:
            body, now_ms = planned.as_json(), self.parts.public_ms()
            tx.plans.put(self.spec.name, self.window, body, window_plan.status, at_ms=now_ms)

        return _Result(planned, also)

    def _reserve(self, sealed: Sealed, planned: Planned) -> _Result[Reserved]:
        requests = (
            requests_of(self.parts, self.spec, sealed.blocks, planned.assigned, self.id)
            if sealed.blocks
            else []
        )
        known = [self.parts.ledger.find(self.spec.name, str(request.key)) for request in requests]
        fresh = [request for request, number in zip(requests, known, strict=True) if number is None]
        if fresh:
            try:
                self.parts.ledger.reserve_all(fresh)
            except BudgetExceeded as refusal:
                told = {"reason": refusal.reason, "message": refusal.message}

                def also(tx: ResultsTransaction) -> None:
                    tx.events.add(
                        "plan.refused", self.spec.name, told, at_ms=self.parts.public_ms()
                    )

                return _Result(Reserved(reserved=False, reason=refusal.reason), also)
        return _Result(Reserved(reserved=True))

    def _train(self, sealed: Sealed, planned: Planned, reserved: Reserved) -> _Result[Trained]:
        names = {ptk.name for ptk in planned.assigned}
        ptks: dict[str, TrainedPtk] = {}
        for name in planned.due:
            if name not in names:
                # Cycles that an earlier version planned do not say why.
                ptks[name] = _skipped(name, planned.left_out.get(name, "NOT_IN_PLAN"))
        if not reserved.reserved:
            # A plan is charged as a whole or not at all.
            refused = {name: _skipped(name, reserved.reason) for name in names}
            return _Result(Trained(ptks | refused))
        with self.parts.metadata.read() as tx:
            ptks |= self.parts.journal.parts(tx, self.id, TrainedPtk)
        rest = [ptk for ptk in planned.assigned if ptk.name not in ptks]

        def done(trained: Mapping[str, TrainedPtk]) -> None:
            ptks.update(self.parts.journal.write_parts(self.id, trained))
            self.parts.observers.tell("train", "stored")

        if rest and sealed.blocks:
            train(self.parts, self.spec, sealed.blocks, rest, self.id, str(self.window), done)
        return _Result(Trained(ptks))

    def _validate(self, sealed: Sealed, planned: Planned, trained: Trained) -> _Result[Validated]:
        new = _new(trained)
        validated = validate_new(
            self.parts,
            self.spec,
            self.id,
            sealed.blocks,
            sealed.dp_records,
            new,
            planned.assigned,
        )
        return _Result(validated)

    def _publish(
        self, sealed: Sealed, planned: Planned, trained: Trained, validated: Validated
    ) -> _Result[Published]:
        # A state that was tested is the one whose certificate says so.
        new = {
            name: replace(ptk, digest=validated.ptks[name].digest)
            if name in validated.ptks
            else ptk
            for name, ptk in _new(trained).items()
        }
        # What the lake says of the new states is asked before the transaction: nobody may wait for
        # the lake in one.
        manifests = {
            name: json.loads(self.parts.lake.get(str(ptk.digest))[1]) for name, ptk in new.items()
        }
        versions = {name: ptk.line.version or 0 for name, ptk in new.items()}
        known = Trained({**trained.ptks, **new})
        outcomes = self._outcomes(sealed, planned, manifests)

        def also(tx: ResultsTransaction) -> None:
            self._release(tx, known, validated, manifests)
            for state, outcome in outcomes:
                write_outcome(tx, state, outcome, now_ms=self.parts.public_ms())

        return _Result(Published(versions), also)

    def _outcomes(
        self, sealed: Sealed, planned: Planned, manifests: Mapping[str, Any]
    ) -> list[tuple[Assigned, Outcome]]:
        """What tests change of PTKs on trial."""
        outcomes = []
        for state in planned.assigned:
            validation = manifests.get(state.name, {}).get("validation")
            if not state.on_trial or not validation:
                continue
            with self.parts.metadata.read() as tx:
                outcome = trial_outcome(tx, self.spec, state, validation, sealed.dp_records)
            if outcome is not None:
                outcomes.append((state, outcome))
        return outcomes

    def _release(
        self,
        tx: ResultsTransaction,
        trained: Trained,
        validated: Validated,
        manifests: Mapping[str, Any],
    ) -> None:
        """Versions, statuses and events, that of a short window among them."""
        now_ms = self.parts.public_ms()
        rows = {row.name: row for row in tx.ptks.list(self.spec.name)}
        states: dict[int, tuple[int | None, str, object]] = {}
        verdicts: dict[int, str] = {}
        told: list[tuple[str, str, object]] = []
        for name, ptk in trained.ptks.items():
            row, line = rows[name], ptk.line
            if name in manifests:
                states[row.id] = (line.version, str(ptk.digest), manifests[name])
                if row.status == "FAILED":
                    tx.ptks.set_status(row.id, "ACTIVE", at_ms=now_ms)
                body: dict[str, Any] = {
                    "ptk": name,
                    "version": line.version,
                    "digest": ptk.digest,
                    "window": self.window,
                }
                validated_ptk = validated.ptks.get(name)
                if validated_ptk is not None:
                    verdicts[row.id] = validated_ptk.verdict
                    body |= {"validation": validated_ptk.verdict, "reason": validated_ptk.reason}
                # Nobody is handed a version that was not shown to keep its target.
                hidden = validated_ptk is not None and validated_ptk.verdict == NOT_SHOWN
                told.append(("ptk.not_shown" if hidden else "ptk.state", name, body))
            elif line.outcome in ("TRAIN_LOST", "TRAIN_FAILED"):
                tx.ptks.set_status(
                    row.id, "FAILED", reason=line.reason or line.outcome, at_ms=now_ms
                )
                told.append(("ptk.failed", name, ptk.as_json()))
        short = _shortfall(tx, self.id)
        if short is not None:
            told.append((EVENT, self.spec.name, short.event(self.window)))
        tx.states.add_all(states, self.window, now_ms, cycle=self.id, verdicts=verdicts)
        tx.events.add_all(told, at_ms=now_ms)

    def _notify(self) -> _Result[Notified]:
        self.parts.notifier.drain()
        return _Result(Notified())

    def _expire(self, sealed: Sealed) -> _Result[Expired]:
        living = set(self.parts.ledger.blocks(self.spec.name, retired=False))
        gone = [name for name in sealed.blocks if name in living]
        if gone:
            self.parts.ledger.retire(self.spec.name, gone, why="window expired")
        self.parts.writer(self.spec.name).expire(*sealed.blocks)

        def also(tx: ResultsTransaction) -> None:
            tx.blocks.set_statuses(self.spec.name, sealed.blocks, "expired")

        return _Result(Expired(sealed.blocks), also)


def _new(trained: Trained) -> dict[str, TrainedPtk]:
    return {name: ptk for name, ptk in trained.ptks.items() if ptk.line.outcome == PUBLISHED}


def _skipped(name: str, reason: str) -> TrainedPtk:
    return TrainedPtk(TrainedLine(name, "SKIPPED", reason=reason))


def _shortfall(tx: Transaction, cycle: int) -> Shortfall | None:
    return shortfall_of(Done.of(tx.cycles.main_steps(cycle)))


def _line(tx: Transaction, stream: str, accepted: Sequence[Candidate]) -> Line:
    """Where PTKs stand after the window before. Who is gone has left the line."""
    before = tx.plans.latest(stream)
    names = {ptk.row.name for ptk in accepted}
    since = before.body.get("left_out_since", {}) if before is not None else {}
    newest = tx.states.newest(ptk.row.id for ptk in accepted)
    return Line(
        left_out_since={name: window for name, window in since.items() if name in names},
        newest={
            ptk.row.name: newest[ptk.row.id].window for ptk in accepted if ptk.row.id in newest
        },
    )
