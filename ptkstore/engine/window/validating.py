"""New states of measured kinds are tested before they are published: charged, opened once, judged.

Order: what is tested, how and where is written first (`trials`), for a restart must not choose
again; then the charges are reserved, each by itself, spent durably in one step, and only then are
blocks opened. A verdict goes into the certificate of its state, which is put into the lake again
with it, and is written. A test of which the charge was spent and nothing is written is lost
(VALIDATION_LOST): its charge stays spent, nothing is tested twice on one charge, and the state is
published as NOT_TESTED. So is one whose test failed: the failure says nothing of the state.

=============  ==================================================================================
VALIDATED      the mean loss is at most the target, but for a chance of `profiler.on_trial.ETA`
NOT_SHOWN      the test did not accept: the version is there, and nobody gets it without asking;
               of a PTK on trial also where there was no test, and why
NOT_TESTED     no test, and why: the promise is that of the profile
=============  ==================================================================================
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from profiler.levels import privacy_levels
from profiler.on_trial import ETA
from ptklib.errors import GrantRefused, Refused
from ptklib.ledger.commands import Reserve
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import Slice, TagRange
from ptklib.state import State
from ptklib.validators.verdict import ACCEPT
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import charge_delta, closed_form, ptk_of, records_per_unit
from ptkstore.engine.retry import patiently
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.engine.steps.of_ptks import LISTED, TrainedPtk, ValidatedPtk, ValidationList
from ptkstore.engine.steps.of_window import Published, Validated
from ptkstore.engine.window.trials import Trial, plan_trials
from ptkstore.metadata.catalogue.states import NOT_SHOWN, VALIDATED
from ptkstore.streams.reading.opened import GRANT_SECONDS, spend_and_open
from ptkstore.workers.protocol import KEEP_BYTES, ValidateJob, ValidateOutcome

__all__ = ["NOT_TESTED", "VALIDATION_LOST", "validate_new"]

_LOG = logging.getLogger(__name__)
NOT_TESTED = "NOT_TESTED"
VALIDATION_LOST = "VALIDATION_LOST"


def validate_new(
    parts: Parts,
    spec: StreamSpec,
    cycle: int,
    blocks: Sequence[str],
    dp_records: int,
    new: Mapping[str, TrainedPtk],
    assigned: Sequence[Assigned],
) -> Validated:
    """What became of the tests of the new states that need one, by name."""
    # A window that an earlier version published is not tested afterwards.
    if not blocks or parts.journal.find(cycle, Published) is not None:
        return Validated()
    states = [state for state in assigned if state.name in new and _is_measured(parts, spec, state)]
    if not states:
        return Validated()
    listed = parts.journal.find(cycle, ValidationList, LISTED)
    if listed is None:
        planned = plan_trials(parts, spec, blocks, dp_records, states)
        listed = parts.journal.write(cycle, planned, part=LISTED)
    tests = _Tests(parts, spec, cycle, blocks, new)
    for state in states:
        if state.name in listed.untested:
            tests.told(state, None, None, listed.untested[state.name])
    trials = {name: Trial.from_json(body) for name, body in listed.trials.items()}
    tests.run([(state, trials[state.name]) for state in states if state.name in trials])
    return Validated(tests.validated)


class _Tests:
    """The tests of a window."""

    def __init__(
        self,
        parts: Parts,
        spec: StreamSpec,
        cycle: int,
        blocks: Sequence[str],
        new: Mapping[str, TrainedPtk],
    ) -> None:
        self.parts, self.spec, self.cycle = parts, spec, cycle
        self.blocks, self.new = tuple(blocks), new
        self.validated: dict[str, ValidatedPtk] = {}

    def run(self, wanted: Sequence[tuple[Assigned, Trial]]) -> None:
        """All that are not done."""
        ready: list[tuple[Assigned, Trial]] = []
        grants: list[Grant] = []
        for state, trial in wanted:
            if self._known(state):
                continue
            try:
                grants += self.parts.ledger.reserve_all([self._request(state, trial)])
                ready.append((state, trial))
            except Refused as refusal:
                # After a crash it may be spent: what it paid for is lost.
                lost = refusal.reason == "KEY_REUSED"
                self.told(state, trial, None, VALIDATION_LOST if lost else refusal.reason)
        if not ready:
            return
        jobs = [self._job(state, trial) for state, trial in ready]
        try:
            opener = spend_and_open(self.parts.path, self.spec, grants, self.parts.ledger)
        except GrantRefused as refusal:
            for state, trial in ready:
                self.told(state, trial, None, refusal.reason)
            return
        self.parts.observers.tell("validate", "spent")
        by_name = {state.name: (state, trial) for state, trial in ready}
        opened = [replace(job, opener=opener) for job in jobs]
        for outcome in self.parts.workers.validate(opened, self._keep_bytes(jobs)):
            state, trial = by_name[outcome.name]
            if outcome.logged:
                _LOG.warning("the test of PTK %s failed: %s", state.name, outcome.logged)
            self.told(state, trial, outcome, outcome.failure)

    def told(
        self, state: Assigned, trial: Trial | None, outcome: ValidateOutcome | None, reason: str
    ) -> None:
        """Write what became of one, with the certificate that says so."""
        if self._known(state):
            return
        verdict = outcome.verdict if outcome is not None else None
        # On trial there is no promise but that of the test.
        name = NOT_SHOWN if state.on_trial else NOT_TESTED
        if verdict is not None:
            name = VALIDATED if verdict.outcome == ACCEPT else NOT_SHOWN
        body: dict[str, Any] = {"verdict": name} | ({"reason": reason} if reason else {})
        if trial is not None:
            body |= {
                **trial.as_json(),
                "eta": str(ETA),
                "cost": trial.test.cost.as_json(),
            }
        if verdict is not None:
            body |= {"evidence": verdict.evidence, "threshold": verdict.threshold}
        digest = patiently(lambda: self._certify(state, body))
        step = ValidatedPtk(state.name, name, digest, reason)
        write = self.parts.journal.write
        self.validated[state.name] = patiently(lambda: write(self.cycle, step, part=_part(state)))
        self.parts.observers.tell("validate", "stored")

    def _known(self, state: Assigned) -> bool:
        if state.name not in self.validated:
            written = self.parts.journal.find(self.cycle, ValidatedPtk, _part(state))
            if written is not None:
                self.validated[state.name] = written
        return state.name in self.validated

    def _request(self, state: Assigned, trial: Trial) -> Reserve:
        return self.parts.ledger.request(
            self.spec.name,
            [Slice(self.blocks, TagRange(start, stop)) for start, stop in trial.ranges],
            trial.test.cost,
            contexts=("door:validate", f"ptk:{state.name}"),
            key=f"cycle-{self.cycle}/validate/{state.ptk}",
            ttl_seconds=GRANT_SECONDS,
        )

    def _job(self, state: Assigned, trial: Trial) -> ValidateJob:
        arrays = self.parts.lake.get(str(self.new[state.name].digest))[0]
        test = trial.test.as_json()
        return ValidateJob(state.name, state.kind, state.config, arrays, test, trial.ranges)

    def _keep_bytes(self, jobs: Sequence[ValidateJob]) -> int:
        """What is left of a worker's memory beside half of it for work, and all states."""
        spare = self.parts.workers.memory_bytes // 2 - sum(len(job.state) for job in jobs)
        return max(0, min(KEEP_BYTES, spare))

    def _certify(self, tested: Assigned, body: Mapping[str, Any]) -> str:
        """The state with what was found, in the lake. Everything in it is public or DP."""
        state = State.from_bytes(*self.parts.lake.get(str(self.new[tested.name].digest)))
        manifest = replace(state.manifest, validation=json.loads(json.dumps(body)))
        return self.parts.lake.put(*State(state.ptk, state.arrays, manifest).to_bytes())


def _part(state: Assigned) -> str:
    return str(state.ptk)


def _is_measured(parts: Parts, spec: StreamSpec, state: Assigned) -> bool:
    """Whether its promise rests on a profile that was measured: a closed form needs no test."""
    ptk = ptk_of(state.kind, state.config)
    levels = privacy_levels(parts.privacy_filter(spec.name).epsilon)[-1:]
    return not closed_form(
        ptk, state.target, levels, charge_delta(spec, ptk), records_per_unit(spec)
    )
