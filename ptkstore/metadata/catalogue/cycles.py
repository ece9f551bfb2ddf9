"""Cycles: the journalled steps of a window. Reasons: CYCLE_UNKNOWN, CYCLE_FINISHED."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import sqlalchemy as sa

from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.slices import MAX_NAME
from ptkstore.metadata.catalogue.streams import Streams
from ptkstore.metadata.checks import (
    check_json,
    check_name,
    check_text,
    check_whole,
    check_whole_or_none,
)
from ptkstore.metadata.rows import CycleRow, StepRow
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import cycles, steps

__all__ = ["GIVEN_UP", "RUNNING", "CycleResults", "Cycles"]

RUNNING = "RUNNING"
GIVEN_UP = "GIVEN_UP"
_MOST_AT_ONCE = 500


class Cycles:
    """The cycles of the streams, one for each window."""

    def __init__(self, session: MetadataSession, streams: Streams) -> None:
        """Work inside one transaction."""
        self._session = session
        self._streams = streams

    def get(self, cycle: int) -> CycleRow:
        """The cycle of that id, or CYCLE_UNKNOWN."""
        row = self._session.one(sa.select(cycles).where(cycles.c.id == cycle))
        if row is None:
            raise Refused("CYCLE_UNKNOWN", f"there is no cycle {cycle!r}", cycle=cycle)
        return CycleRow(**row)

    def _found(self, cycle: int, names: Iterable[str]) -> dict[str, StepRow]:
        query = sa.select(steps).where(steps.c.cycle == cycle, steps.c.step.in_(list(names)))
        return {row["step"]: StepRow(**row) for row in self._session.all(query)}

    def step(self, cycle: int, step: str) -> StepRow | None:
        """That step of the cycle, or None when it is not done."""
        row = self._session.one(
            sa.select(steps).where(steps.c.cycle == cycle, steps.c.step == step)
        )
        return None if row is None else StepRow(**row)

    def steps(self, cycle: int) -> tuple[StepRow, ...]:
        """The steps that are done, in the order they were written."""
        query = sa.select(steps).where(steps.c.cycle == cycle).order_by(steps.c.id)
        return tuple(StepRow(**row) for row in self._session.all(query))

    def main_steps(self, cycle: int) -> tuple[StepRow, ...]:
        """The steps that are done but for those of single PTKs, such as ``trained:NAME``, of which
        there may be thousands.
        """
        return self.main_steps_of([cycle]).get(cycle, ())

    def main_steps_of(self, cycles: Sequence[int]) -> dict[int, tuple[StepRow, ...]]:
        """`main_steps` of several cycles, as far as they have any."""
        main_steps: dict[int, list[StepRow]] = {}
        for part in _parts(cycles):
            query = (
                sa.select(steps)
                .where(steps.c.cycle.in_(part), steps.c.step.not_like("%:%"))
                .order_by(steps.c.id)
            )
            for row in self._session.all(query):
                main_steps.setdefault(row["cycle"], []).append(StepRow(**row))
        return {cycle: tuple(done) for cycle, done in main_steps.items()}

    def unfinished(self, stream: str) -> tuple[CycleRow, ...]:
        """The cycles that are still running, oldest window first: where a restart resumes."""
        query = _of(stream).where(cycles.c.status == RUNNING)
        return tuple(CycleRow(**row) for row in self._session.all(query.order_by(cycles.c.window)))

    def list(
        self, stream: str, *, limit: int | None = None, after: int | None = None
    ) -> tuple[CycleRow, ...]:
        """The cycles of a stream in the order they were started; ``after`` is the last id of the
        page before.
        """
        page = self._session.page(_of(stream), cycles.c.id, after, limit)
        return tuple(CycleRow(**row) for row in page)

    def of_windows(self, stream: str, windows: Iterable[int]) -> tuple[CycleRow, ...]:
        """The cycles of these windows, as far as there are any, oldest window first."""
        parts = _parts(sorted(set(windows)))
        queries = (
            _of(stream).where(cycles.c.window.in_(part)).order_by(cycles.c.window) for part in parts
        )
        return tuple(CycleRow(**row) for query in queries for row in self._session.all(query))

    def newest(self, stream: str, count: int) -> tuple[CycleRow, ...]:
        """The cycles of a stream that were started last, in the order they were started."""
        query = _of(stream).order_by(cycles.c.id.desc())
        rows = self._session.all(query, check_whole(count, "newest", at_least=1))
        return tuple(CycleRow(**row) for row in reversed(rows))

    def count(self, stream: str) -> dict[str, int]:
        """How many cycles of a stream have each status."""
        query = sa.select(cycles.c.status, sa.func.count().label("many")).where(
            cycles.c.stream == stream
        )
        return {
            row["status"]: int(row["many"])
            for row in self._session.all(query.group_by(cycles.c.status))
        }

    def give_up(self, stream: str, *, at_ms: int | None = None) -> int:
        """Close the cycles that are still running as GIVEN_UP, as after a restore: no result. How
        many there were.
        """
        given_up = self.unfinished(stream)
        body = check_json({"dp_records": 0}, "a cycle's body")
        running = sa.and_(cycles.c.stream == stream, cycles.c.status == RUNNING)
        values = {
            "status": GIVEN_UP,
            "body": body,
            "finished_ms": check_whole_or_none(at_ms, "at_ms"),
        }
        self._session.execute(cycles.update().where(running).values(**values))
        return len(given_up)

    def _running(self, cycle: int) -> None:
        cycle_row = self.get(cycle)
        if cycle_row.status != RUNNING:
            raise Refused(
                "CYCLE_FINISHED", f"cycle {cycle} was finished as {cycle_row.status}", cycle=cycle
            )


class CycleResults(Cycles):
    """The same, and what windows write: only in a transaction for results."""

    def start(self, stream: str, window: int, *, at_ms: int | None = None) -> int:
        """The id of the cycle of that window; started if there was none, as it stands (even
        finished) otherwise.
        """
        check_whole(window, "window")
        check_whole_or_none(at_ms, "at_ms")
        self._streams.get(stream)
        row = self._session.one(
            sa.select(cycles.c.id).where(cycles.c.stream == stream, cycles.c.window == window)
        )
        if row is not None:
            return int(row["id"])
        return self._session.insert(
            cycles, stream=stream, window=window, status=RUNNING, started_ms=at_ms
        )

    def add_step(
        self, cycle: int, step: str, body: object = None, *, at_ms: int | None = None
    ) -> StepRow:
        """Write that a step is done. The first time counts: the same step again returns what was
        written then, whatever ``body`` says now. A new step of a finished cycle is CYCLE_FINISHED.
        """
        return self.add_steps(cycle, {step: body}, at_ms=at_ms)[0]

    def add_steps(
        self, cycle: int, bodies: Mapping[str, object], *, at_ms: int | None = None
    ) -> tuple[StepRow, ...]:
        """`add_step` for several at once, in their order."""
        check_whole_or_none(at_ms, "at_ms")
        texts = {}
        for step, body in bodies.items():
            if not check_text(step, "a step", 2 * MAX_NAME):
                raise InvalidInput("VALUE_INVALID", "a step must have a name")
            texts[step] = check_json(body, "a step's body")
        step_rows = self._found(cycle, texts)
        missing = [step for step in texts if step not in step_rows]
        if missing:
            self._running(cycle)
            self._session.insert_all(
                steps,
                [
                    {"cycle": cycle, "step": step, "body": texts[step], "at_ms": at_ms}
                    for step in missing
                ],
            )
            step_rows |= self._found(cycle, missing)
        return tuple(step_rows[step] for step in texts)

    def finish(
        self, cycle: int, status: str, body: object = None, *, at_ms: int | None = None
    ) -> CycleRow:
        """Close a cycle with a status (any word but RUNNING) and a JSON body. The same again
        changes nothing; another end is CYCLE_FINISHED.
        """
        if check_name(status, "status") == RUNNING:
            raise InvalidInput("VALUE_INVALID", f"a cycle cannot be finished as {RUNNING}")
        text = check_json(body, "a cycle's body")
        check_whole_or_none(at_ms, "at_ms")
        cycle_row = self.get(cycle)
        if (cycle_row.status, cycle_row.body) == (status, json.loads(text)):
            return cycle_row
        self._running(cycle)
        update = cycles.update().where(cycles.c.id == cycle)
        self._session.execute(update.values(status=status, body=text, finished_ms=at_ms))
        return self.get(cycle)


def _parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """As many at a time as a statement of any database takes."""
    return (
        numbers[first : first + _MOST_AT_ONCE] for first in range(0, len(numbers), _MOST_AT_ONCE)
    )


def _of(stream: str) -> sa.Select[tuple[object, ...]]:
    return sa.select(cycles).where(cycles.c.stream == stream)
