"""Plans worked out in processes of their own: a server that plans keeps its interpreter for those
it serves.

`Planner.ask` hands a function of a module and its facts to a process that knows nothing else:
specifications, configurations, targets, profiles, DP numbers. A PTK travels as its row, a filter as
its numbers (`facts`). Processes start with the first question, and anew when they died, as copies
of one that has imported what plans need (`workers.copies`). What a process dies of twice, or does
not answer for long, is not tried here: PLAN_CONTENDED, as for who waits too long for a free one.

Their place is behind everybody who is served, so that appends do not notice them. Being `nice` is
not enough for that: where the kernel shares time among sessions, what a process computes is taken
from all of its session. So they have sessions of their own. And they leave half of the cores alone
(one, where there are two), for the server and for the threads of the kernel that write its disk:
those that devices interrupt most, for a disk is answered on its own core.
Those of the background get what nobody else wants.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import logging
import os
import platform
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from ptklib import registry
from ptklib.encoding.error_place import failure_of
from ptklib.errors import SageError
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptkstore.engine.plans.facts import packed, unpacked
from ptkstore.engine.turns import WAIT_SECONDS, PlanContended
from ptkstore.workers.confinement import hush
from ptkstore.workers.copies import ChildProcess, start

__all__ = ["BACKGROUND", "SERVED", "Planner", "serve", "warm"]

# Somebody waits for the answer; nobody does.
SERVED, BACKGROUND = "served", "background"
# What questions are about.
_NEEDED = (
    "ptkstore.engine.plans.answering",
    "ptkstore.engine.plans.dry_run",
    "ptkstore.engine.plans.refining",
    "ptkstore.engine.plans.surplus",
    "ptkstore.engine.plans.what_if",
    "ptkstore.engine.window.plans",
)
_STOP_SECONDS = 5
_NICE = {SERVED: 10, BACKGROUND: 19}
# The number of the system call that the C library has no function for; the shortest turn there is.
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_TURN_NANOSECONDS = 100_000
# How nice this session is among others, where the kernel knows such a thing.
_OF_THE_SESSION = Path("/proc/self/autogroup")
# Far longer than a question takes, on the slowest machine; in the background, on a machine that is
# never idle.
_LOST_SECONDS = {SERVED: 300.0, BACKGROUND: 3600.0}
_LOG = logging.getLogger(__name__)

Facts = ParamSpec("Facts")
Found = TypeVar("Found")


@dataclass(frozen=True)
class _Defect:
    """An error that is none of ours, by its type and place."""

    told: str


@dataclass(frozen=True)
class _Process:
    pipe: Connection[Any, Any]
    child: ChildProcess

    def end(self) -> None:
        self.pipe.close()
        try:
            self.child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Planner:
    """A few processes that plan. Thread-safe."""

    def __init__(self, *, most: int = 1, place: str = SERVED) -> None:
        """Start nothing yet.

        ``most`` questions are worked on at once; ``place`` is SERVED or BACKGROUND.
        """
        self._place = place
        self._turns = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._busy: list[_Process] = []
        self._closed = False

    def ask(
        self, work: Callable[Facts, Found], /, *facts: Facts.args, **named: Facts.kwargs
    ) -> Found:
        """What ``work(*facts, **named)`` gives or raises.

        Reason: PLAN_CONTENDED, and those of the work.
        """
        question = packed((work, facts, named))
        if not self._turns.acquire(timeout=WAIT_SECONDS):
            raise _contended("others are planning")
        try:
            reply = self._asked(question)
        finally:
            self._turns.release()
        if isinstance(reply, SageError):
            raise reply
        if isinstance(reply, _Defect):
            # Whoever asked meets it as a store without a server does, and tells it the same way.
            _LOG.warning("%s failed: %s", getattr(work, "__name__", "planning"), reply.told)
            return work(*facts, **named)
        answer: Found = reply
        return answer

    def close(self) -> None:
        """End the processes; what is asked then, or is under way, is PLAN_CONTENDED.

        Safe to call twice.
        """
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for process in self._busy:
                process.child.kill()
        for process in idle:
            process.end()

    def _asked(self, question: bytes) -> Any:
        """What a process says, another one where it died."""
        for _ in range(2):
            process = self._taken()
            try:
                process.pipe.send_bytes(question)
                if not process.pipe.poll(_LOST_SECONDS[self._place]):
                    process.child.kill()
                    raise _contended("it takes too long")
                asked = unpacked(process.pipe.recv_bytes())
            except (EOFError, OSError):
                continue
            else:
                self._give_back(process)
                return asked
            finally:
                self._forget(process)
        raise _contended("the process that plans was ended")

    def _taken(self) -> _Process:
        with self._lock:
            if self._closed:
                raise _contended("the server is stopping")
            process = self._idle.pop() if self._idle else _started(self._place)
            self._busy.append(process)
            return process

    def _give_back(self, process: _Process) -> None:
        with self._lock:
            if not self._closed:
                self._busy.remove(process)
                self._idle.append(process)

    def _forget(self, process: _Process) -> None:
        """End a process that was not given back."""
        with self._lock:
            if process not in self._busy:
                return
            self._busy.remove(process)
        process.end()


def serve(descriptor: int, place: str) -> None:
    """Answer what comes in through this end of a pipe, until it ends."""
    # Ctrl-C is for the server, which decides what becomes of the question; so is the end of its
    # terminal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _step_back(place)
    pipe: Connection[Any, Any] = Connection(descriptor)
    hush()
    while True:
        try:
            pipe.send_bytes(packed(_worked_out(pipe.recv_bytes())))
        except (EOFError, OSError):
            return


def _worked_out(question: bytes) -> Any:
    try:
        work, facts, named = unpacked(question)
        return work(*facts, **named)
    except SageError as error:
        return error
    except Exception as error:  # a defect, which must not end the process: what it says may be long, or unreadable elsewhere
        return _Defect(failure_of(error))


def _step_back(place: str) -> None:
    os.nice(_NICE[place])
    if not hasattr(os, "sched_setaffinity"):
        return
    interrupts = _interrupts()
    cores = sorted(os.sched_getaffinity(0), key=lambda core: (interrupts.get(core, 0), -core))
    os.sched_setaffinity(0, cores[: len(cores) - len(cores) // 2])
    if place == BACKGROUND:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _ask_for_short_turns()
    if _OF_THE_SESSION.exists():
        _step_back_as_a_session(_NICE[place])


def _ask_for_short_turns() -> None:
    """Let whoever wakes have the core at once, not when a turn of milliseconds is over; nothing
    where the kernel has no such thing (Linux before 6.12).
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or not sys.platform.startswith("linux"):
        return
    # struct sched_attr: its size, policy, flags, nice, priority, and the length of a turn.
    asked = struct.pack(
        "IIQiIQQQ", 48, os.sched_getscheduler(0), 0, os.nice(0), 0, _TURN_NANOSECONDS, 0, 0
    )
    ctypes.CDLL(None).syscall(number, 0, ctypes.create_string_buffer(asked, len(asked)), 0)


def _interrupts() -> dict[int, int]:
    """How often devices have interrupted each core; nothing where the system does not say."""
    try:
        head, *lines = Path("/proc/interrupts").read_text().splitlines()
    except OSError:
        return {}
    cores = [int(word[3:]) for word in head.split() if word[:3] == "CPU" and word[3:].isdigit()]
    counts = dict.fromkeys(cores, 0)
    for line in lines:
        source, *words = line.split()
        if source[:-1].isdigit() and len(words) >= len(cores):
            for core, word in zip(cores, words, strict=False):
                counts[core] += int(word)
    return counts


def _step_back_as_a_session(nice: int) -> None:
    for _ in range(5):
        try:
            _OF_THE_SESSION.write_text(str(nice))
        except BlockingIOError:
            # Somebody else of this account did so a moment ago.
            time.sleep(0.2)
        except OSError:
            return
        else:
            return


def warm() -> None:
    """Import what plans need, and let Arrow and the sampler do what they do but once."""
    for module in _NEEDED:
        importlib.import_module(module)
    # The server says what is wrong with a kind that cannot be read, where it is asked for.
    with contextlib.suppress(SageError):
        registry.kinds()
    pa.array([0])
    LaplaceRelease(epsilon=1, sensitivity=1).release([0])


def _started(place: str) -> _Process:
    pipe, other = Pipe()
    with other:
        child = start(f"{__name__}:serve", other.fileno(), place, warm=f"{__name__}:warm")
    return _Process(pipe, child)


def _contended(why: str) -> PlanContended:
    return PlanContended("PLAN_CONTENDED", f"no plan can be made now: {why}; ask again")
