"""The cycle of one window: profile, plan, charge, train, publish, notify, expire. Each step is written when it is done.

A step's row holds what later steps need, so a restart goes on after the last row, with the same numbers. The table in
docs/internals/engine.md says what a kill between any two rows leaves; `on_step` of the home lets tests kill there.

A window that does not carry all PTKs that are due trains as many as it does (`window_plans`). One that publishes less than it
should, for whatever reason, ends SHORT and says so in an event before its data is destroyed (`shortfall`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from allocator.settling import Current
from ptklib.errors import BudgetExceeded
from ptkstore.engine.counting import count_blocks
from ptkstore.engine.home import Home
from ptkstore.engine.planning import Candidate
from ptkstore.engine.profiling import profile_due, train_peak
from ptkstore.engine.registrations import active
from ptkstore.engine.shortfall import DONE, EVENT, PUBLISHED, SHORT, Shortfall, lines_of, shortfall_of
from ptkstore.engine.training import Assigned, assign, requests_of, too_large, train
from ptkstore.engine.window_plans import ADOPTED, Line, plan_window
from ptkstore.metadata import rows
from ptkstore.metadata.cycles import RUNNING
from ptkstore.metadata.rows import Block
from ptkstore.streams import StreamSpec
from ptkstore.views import CycleView, TrainedLine

__all__ = ["STEPS", "Cycle", "cycle_view", "cycle_views", "known_cycle_view", "shortened"]

STEPS = ("sealed", "profiled", "planned", "reserved", "trained", "published", "notified", "expired")
# Finished cycles that are remembered.
_KEPT = 16

Progress = Callable[[str], None]


class Cycle:
    """One window of one stream. Running it again resumes it; a finished one does nothing."""

    def __init__(self, home: Home, stream: str, window: int, progress: Progress) -> None:
        """Start the cycle in the metadata, or find it there."""
        self.home = home
        self.spec: StreamSpec = home.specs[stream]
        self.window = window
        self.progress = progress
        with home.writing_step() as tx:
            self.id = tx.cycles.start(stream, window, at_ms=home.public_ms())

    def run(self) -> CycleView:
        """All steps that are not done."""
        with self.home.metadata.read() as tx:
            done = tx.cycles.get(self.id).status != "RUNNING"
        if not done:
            sealed = self._step("sealed", self._seal)
            self._step(
                "profiled", lambda: profile_due(self.home, self.spec, self.window, self.id, sealed, self.progress)
            )
            planned = self._step("planned", lambda: self._plan(sealed))
            reserved = self._step("reserved", lambda: self._reserve(sealed, planned))
            trained = self._step("trained", lambda: self._train(sealed, planned, reserved))
            self._step("published", lambda: self._manifests(trained), publish=trained)
            self._step("notified", self._notify)
            self._step("expired", lambda: self._expire(sealed))
            with self.home.writing_step() as tx:
                end = DONE if _shortfall(tx, self.id) is None else SHORT
                tx.cycles.finish(self.id, end, {"dp_records": sealed["dp_records"]}, at_ms=self.home.public_ms())
        with self.home.metadata.read() as tx:
            return cycle_view(tx, self.id)

    def _step(self, name: str, work: Callable[[], Any], *, publish: Any = None) -> Any:
        with self.home.metadata.read() as tx:
            found = tx.cycles.step(self.id, name)
        if found is not None:
            return found.body
        self.home.lead.require_lease()
        self.progress(f"{self.spec.name}, window {self.window}: {name}")
        self.home.on_step(name, "begins")
        body = work()
        self.home.on_step(name, "worked")
        with self.home.writing_step() as tx:
            if publish is not None:
                body = self._publish(tx, publish, body)
            written = tx.cycles.add_step(self.id, name, body, at_ms=self.home.public_ms()).body
        self.home.on_step(name, "written")
        return written

    def _blocks(self) -> Sequence[Block]:
        with self.home.metadata.read() as tx:
            return tx.blocks.list(self.spec.name, self.window)

    def _seal(self) -> dict[str, Any]:
        blocks = self._blocks()
        known = count_blocks(self.home, self.spec, blocks, self.id)
        counted = self._blocks()
        return {
            "blocks": [block.name for block in counted],
            # Noise may make a count negative; clamping is post-processing.
            "dp_records": sum(max(0, block.dp_count or 0) for block in counted),
            "count_lost": not known,
        }

    def _plan(self, sealed: dict[str, Any]) -> dict[str, Any]:
        with self.home.metadata.read() as tx:
            accepted = active(tx, self.spec.name)
            due = [one for one in accepted if self.window % one.row.train_every == 0]
            old = tx.plans.latest(self.spec.name, status=ADOPTED)
            line = _line(tx, self.spec.name, accepted)
        judge = self.home.judge(self.spec.name)
        # Profiles were charged to the tags of the profile slice; the plan's begin after it.
        loss = train_peak(self.home, self.spec, sealed["blocks"])
        found = plan_window(
            self.spec,
            judge,
            loss,
            due,
            line,
            window=self.window,
            dp_records=sealed["dp_records"],
            current=Current.of(old.body) if old is not None else None,
        )
        settled = found.settled
        assigned = assign(self.home, self.spec, settled.plan, due, sealed["dp_records"], len(sealed["blocks"]))
        large = too_large(self.home, assigned)
        body = {
            "plan": settled.plan.as_json(),
            "coordinate": settled.coordinate,
            "capacity": settled.problem.capacity if settled.problem is not None else None,
            "view": found.view.as_json(),
            "assigned": [one.as_json() for one in assigned if one.name not in large],
            "due": [one.row.name for one in due],
            "left_out": {one.id: one.reason for one in found.left_out} | large,
            "left_out_since": line.after(self.window, due, found.left_out),
        }
        with self.home.writing_step() as tx:
            if tx.cycles.step(self.id, "planned") is None:
                tx.plans.put(self.spec.name, self.window, body, found.status, at_ms=self.home.public_ms())
                return dict(tx.cycles.add_step(self.id, "planned", body, at_ms=self.home.public_ms()).body)
        return body

    def _reserve(self, sealed: dict[str, Any], planned: dict[str, Any]) -> dict[str, Any]:
        assigned = [Assigned.from_json(one) for one in planned["assigned"]]
        requests = requests_of(self.home, self.spec, sealed["blocks"], assigned, self.id) if sealed["blocks"] else []
        known = [self.home.ledger.find(self.spec.name, str(one.key)) for one in requests]
        fresh = [one for one, number in zip(requests, known, strict=True) if number is None]
        if fresh:
            try:
                self.home.ledger.reserve_all(fresh)
            except BudgetExceeded as refusal:
                with self.home.writing_step() as tx:
                    body = {"reason": refusal.reason, "message": refusal.message}
                    tx.events.add("plan.refused", self.spec.name, body, at_ms=self.home.public_ms())
                return {"reserved": False, "reason": refusal.reason}
        return {"reserved": True}

    def _train(self, sealed: dict[str, Any], planned: dict[str, Any], reserved: dict[str, Any]) -> dict[str, Any]:
        # Cycles that an earlier version planned do not say why.
        left_out = planned.get("left_out", {})
        assigned = [Assigned.from_json(one) for one in planned["assigned"]]
        names = {one.name for one in assigned}
        lines: dict[str, Any] = {}
        for name in planned["due"]:
            if name not in names:
                reason = left_out.get(name, "NOT_IN_PLAN")
                lines[name] = TrainedLine(name, "SKIPPED", reason=reason).as_json()
        if not reserved["reserved"]:
            # A plan is charged as a whole or not at all.
            refused = {name: TrainedLine(name, "SKIPPED", reason=reserved["reason"]).as_json() for name in names}
            return lines | refused
        prefix = "trained:"
        with self.home.metadata.read() as tx:
            known = {one.step.removeprefix(prefix): one.body for one in tx.cycles.steps(self.id) if prefix in one.step}
        rest = [one for one in assigned if one.name not in known]
        lines |= known

        def done(bodies: dict[str, dict[str, Any]]) -> None:
            with self.home.writing_step() as tx:
                named = {prefix + name: body for name, body in bodies.items()}
                for step in tx.cycles.add_steps(self.id, named, at_ms=self.home.public_ms()):
                    lines[step.step.removeprefix(prefix)] = step.body
            self.home.on_step("train", "stored")

        if rest and sealed["blocks"]:
            train(self.home, self.spec, sealed["blocks"], rest, self.id, str(self.window), done)
        return lines

    def _manifests(self, trained: dict[str, Any]) -> dict[str, Any]:
        """What the lake says of the new states: asked before the transaction, for nobody may wait for the lake in one."""
        new = [line["digest"] for line in trained.values() if line["outcome"] == PUBLISHED]
        return {digest: json.loads(self.home.lake.get(digest)[1]) for digest in new}

    def _publish(self, tx: Any, trained: dict[str, Any], manifests: dict[str, Any]) -> dict[str, Any]:
        now_ms = self.home.public_ms()
        rows = {row.name: row for row in tx.ptks.list(self.spec.name)}
        published: dict[str, int] = {}
        states: dict[int, tuple[int, str, Any]] = {}
        told: list[tuple[str, str, Any]] = []
        for name, line in trained.items():
            row = rows[name]
            if line["outcome"] == PUBLISHED:
                states[row.id] = (line["version"], line["digest"], manifests[line["digest"]])
                if row.status == "FAILED":
                    tx.ptks.set_status(row.id, "ACTIVE", at_ms=now_ms)
                body = {"ptk": name, "version": line["version"], "digest": line["digest"], "window": self.window}
                told.append(("ptk.state", name, body))
                published[name] = line["version"]
            elif line["outcome"] in ("TRAIN_LOST", "TRAIN_FAILED"):
                tx.ptks.set_status(row.id, "FAILED", reason=line["reason"] or line["outcome"], at_ms=now_ms)
                told.append(("ptk.failed", name, line))
        short = _shortfall(tx, self.id)
        if short is not None:
            told.append((EVENT, self.spec.name, short.event(self.window)))
        tx.states.add_all(states, self.window, now_ms, cycle=self.id)
        tx.events.add_all(told, at_ms=now_ms)
        return published

    def _notify(self) -> None:
        self.home.notifier.drain()

    def _expire(self, sealed: dict[str, Any]) -> dict[str, Any]:
        living = set(self.home.ledger.blocks(self.spec.name, retired=False))
        gone = [name for name in sealed["blocks"] if name in living]
        if gone:
            self.home.ledger.retire(self.spec.name, gone, why="window expired")
        self.home.writer(self.spec.name).expire(*sealed["blocks"])
        with self.home.writing_step() as tx:
            tx.blocks.set_statuses(self.spec.name, sealed["blocks"], "expired")
        return {"expired": sealed["blocks"]}


def known_cycle_view(home: Home, tx: Any, cycle: rows.Cycle) -> CycleView:
    """`cycle_view`, remembered for the newest cycles that are finished: these never change, and are long with many PTKs."""
    if cycle.status == RUNNING:
        return cycle_view(tx, cycle.id)
    found = home.cycles.get(cycle.id)
    if found is None:
        found = home.cycles[cycle.id] = cycle_view(tx, cycle.id)
        while len(home.cycles) > _KEPT:
            home.cycles.pop(min(home.cycles, default=0), None)
    return found


def shortened(cycle: CycleView, most: int) -> CycleView:
    """A cycle that tells of so many PTKs, those without a new version first, and counts all."""
    lost = [one for one in cycle.trained if one.outcome != PUBLISHED]
    rest = (one for one in cycle.trained if one.outcome == PUBLISHED)
    told = (*lost[:most], *islice(rest, max(0, most - len(lost))))
    return replace(cycle, trained=told, outcomes=dict(sorted(Counter(one.outcome for one in cycle.trained).items())))


def cycle_view(tx: Any, cycle: int) -> CycleView:
    """A cycle for people, from its rows."""
    return cycle_views(tx, [tx.cycles.get(cycle)])[0]


def cycle_views(tx: Any, cycles: Sequence[rows.Cycle]) -> list[CycleView]:
    """Cycles for people, all of them at once: a page may have a thousand."""
    done = tx.cycles.main_steps_of([one.id for one in cycles])
    return [_view(one, {step.step: step.body for step in done.get(one.id, ())}) for one in cycles]


def _view(row: rows.Cycle, steps: Mapping[str, Any]) -> CycleView:
    short = shortfall_of(steps)
    return CycleView(
        stream=row.stream,
        window=row.window,
        status=row.status,
        steps=tuple(steps),
        plan_status=steps["planned"]["view"]["status"] if "planned" in steps else "",
        dp_records=steps["sealed"]["dp_records"] if "sealed" in steps else 0,
        trained=lines_of(steps),
        shortfall=short.text if short is not None else "",
        changes=short.changes if short is not None else (),
    )


def _shortfall(tx: Any, cycle: int) -> Shortfall | None:
    return shortfall_of({step.step: step.body for step in tx.cycles.main_steps(cycle)})


def _line(tx: Any, stream: str, accepted: Sequence[Candidate]) -> Line:
    """Where PTKs stand after the window before. Who is gone has left the line."""
    before = tx.plans.latest(stream)
    names = {one.row.name for one in accepted}
    since = before.body.get("left_out_since", {}) if before is not None else {}
    newest = tx.states.newest(one.row.id for one in accepted)
    return Line(
        left_out_since={name: window for name, window in since.items() if name in names},
        newest={one.row.name: newest[one.row.id].window for one in accepted if one.row.id in newest},
    )
