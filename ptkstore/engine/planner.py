"""Answers to registrations, worked out in a process of its own: a server that plans keeps its interpreter for those it serves.

`Planner.answer` is `answering.answer_of`, by a new interpreter of lower priority that is told the public facts of the question
and nothing else: specification, configurations, targets, profiles. It starts with the first question, and anew when it died;
what it cannot answer is answered by whoever asked. One question at a time: PLAN_CONTENDED for who waits too
long.

Whoever has a `Planner` passes its `answer` on; a store without a server plans in its own process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from typing import Any

from ptklib.errors import SageError
from ptklib.privacy.filters import Filter
from ptkstore.engine import answering
from ptkstore.engine.answering import FIRST, Work
from ptkstore.engine.planning import Candidate
from ptkstore.engine.registrations import unwritten
from ptkstore.engine.turns import WAIT_SECONDS, contended
from ptkstore.streams.spec import StreamSpec
from ptkstore.views import Registration
from ptkstore.workers.confinement import hush, plain_environment

__all__ = ["Planner", "serve"]

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from ptkstore.engine.planner import serve; serve(int(sys.argv[1]))"
)
_STOP_SECONDS = 5
# Those who serve go first.
_NICE = 10
# Far longer than a question takes, on the slowest machine.
_LOST_SECONDS = 120.0


class Planner:
    """One process that answers. Thread-safe."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._turn = threading.Lock()
        self._process: tuple[Connection[Any, Any], subprocess.Popen[bytes]] | None = None
        self._closed = False

    def answer(
        self,
        spec: StreamSpec,
        judge: Filter,
        others: Sequence[Candidate],
        newcomer: Candidate,
        work: Work = FIRST,
    ) -> Registration:
        """What `answering.answer_of` says. Reason: PLAN_CONTENDED, and those of the PTKs."""
        question = (
            spec.as_json(),
            [_told(one) for one in others],
            _told(newcomer),
            (work.steps, work.seconds, work.final),
        )
        if not self._turn.acquire(timeout=WAIT_SECONDS):
            raise contended(spec.name, "others are planning")
        try:
            found = None if self._closed else self._asked(question)
        finally:
            self._turn.release()
        if self._closed:
            raise contended(spec.name, "the server is stopping")
        if found is None:
            return answering.answer_of(spec, judge, others, newcomer, work)
        if isinstance(found, SageError):
            raise found
        return found

    def close(self) -> None:
        """End the process; what is asked then, or is under way, is PLAN_CONTENDED. Safe to call twice."""
        self._closed = True
        process = self._process
        if process is not None:
            process[1].kill()
        with self._turn:
            self._end()

    def _asked(self, question: Any) -> Registration | SageError | None:
        """What the process says, a new one where it died; None where that died too or does not answer."""
        for _ in range(2):
            try:
                if self._process is None:
                    self._process = _started()
                pipe, _child = self._process
                pipe.send(question)
                if pipe.poll(_LOST_SECONDS):
                    found: Registration | SageError | None = pipe.recv()
                    return found
                self._end()
                return None
            except (EOFError, OSError):
                self._end()
            if self._closed:
                break
        return None

    def _end(self) -> None:
        if self._process is None:
            return
        pipe, child = self._process
        self._process = None
        pipe.close()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _started() -> tuple[Connection[Any, Any], subprocess.Popen[bytes]]:
    pipe, other = Pipe()
    with other:
        child = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", _START, str(other.fileno()), json.dumps(sys.path)],
            pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL,
            env=plain_environment(),
        )
    return pipe, child


def _told(one: Candidate) -> tuple[Any, ...]:
    row = one.row
    return row.name, row.stream, row.kind, row.config, row.target, row.train_every, one.measured


def _heard(facts: tuple[Any, ...]) -> Candidate:
    *row, measured = facts
    return replace(Candidate.of(unwritten(*row)), measured=measured)


def serve(descriptor: int) -> None:
    """Answer what comes in through this end of a pipe, until it ends."""
    # Ctrl-C is for the server, which decides what becomes of the question.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    pipe: Connection[Any, Any] = Connection(descriptor)
    hush()
    judges: dict[str, Filter] = {}
    while True:
        try:
            body, others, newcomer, work = pipe.recv()
            spec = StreamSpec.from_json(body)
            # Kept, for it remembers demands.
            judge = judges.setdefault(json.dumps(body, sort_keys=True, default=str), spec.policy.filter())
            found: Registration | SageError | None
            try:
                found = answering.answer_of(spec, judge, [_heard(one) for one in others], _heard(newcomer), Work(*work))
            except SageError as error:
                found = error
            except Exception:  # a defect: whoever asked meets it too, and tells where
                found = None
            pipe.send(found)
        except (EOFError, OSError):
            return
