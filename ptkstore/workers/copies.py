"""Processes that start at once: copies of one that has imported what they need.

An interpreter with Arrow, pandas (which Arrow imports where it is installed), SciPy and our own
modules computes for most of a second before it can do anything; a copy of it (fork) can at once.
`start` makes the *template* with the first call: a new interpreter in a session of its own, with
the plain environment, told what to import and nothing else. It has one thread, holds no store, no
key and no record, and ends with the process that made it. Another list of places to import from, or
another environment, makes another template.

`multiprocessing` has such a thing, too; its copies run the program of whoever starts them again,
and scripts and notebooks would need a guard.

For work without records. Processes that see records are new interpreters each (`processes`), though
noise is not shared here either: `SystemSource` forgets what it had drawn when it is copied.

Where a system cannot name a process for good (`pidfd`: Linux has it), every `start` is a new
interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ptkstore.workers.confinement import plain_environment

__all__ = ["ChildProcess", "copied", "start"]

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from ptkstore.workers.copies import {main}; {main}(int(sys.argv[1]), json.loads(sys.argv[3]))"
)
_LONGEST_ORDER = 1 << 16


class ChildProcess(Protocol):
    """What there is to do with a process that was started, as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int:
        """Its number, which another may have once it has ended."""

    def kill(self) -> None:
        """End it now; nothing if it has ended."""

    def wait(self, timeout: float | None = None) -> object:
        """Until it has ended; `subprocess.TimeoutExpired` if it has not by then."""


class _Copy:
    """A copy of the template, by what the kernel names it."""

    def __init__(self, pid: int, handle: int) -> None:
        self.pid = pid
        self._handle = handle

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> None:
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a copy", timeout or 0.0)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._handle)


class _Template:
    """The template of this process and the socket that it takes orders from."""

    def __init__(self, paths: Sequence[str], environment: dict[str, str], warm: str) -> None:
        self.made_of = _made_of(paths, environment, warm)
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = _interpreter("copied", theirs.fileno(), paths, environment, warm)

    def copy(self, run: str, descriptor: int, arguments: Sequence[str]) -> _Copy | None:
        """A copy that runs this; None where the template has ended."""
        order = json.dumps([run, *arguments]).encode()
        try:
            socket.send_fds(self._orders, [order], [descriptor])
            told, handles, _, _ = socket.recv_fds(self._orders, 64, 1)
        except OSError:
            return None
        return _Copy(int(told), handles[0]) if told and handles else None

    def end(self) -> None:
        """No orders any more: it ends by itself, and its copies go on."""
        self._orders.close()
        self._child.wait()


_LOCK = threading.Lock()
_TEMPLATES: list[_Template] = []


def start(run: str, descriptor: int, *arguments: str, warm: str) -> ChildProcess:
    """A process that calls ``module:function`` (``run``) with the descriptor and the texts, and then
    ends.

    ``warm`` names what the template calls once, without arguments: it imports what ``run`` needs.
    """
    paths, environment = list(sys.path), plain_environment()
    if not hasattr(os, "pidfd_open"):
        order = json.dumps([run, *arguments])
        return _interpreter("_alone", descriptor, paths, environment, order)
    with _LOCK:
        for _ in range(2):
            template = _template(paths, environment, warm)
            copy = template.copy(run, descriptor, arguments)
            if copy is not None:
                return copy
            _TEMPLATES.remove(template)
            template.end()
    raise OSError("no process can be started: the one that they are copies of ended twice")


def copied(orders: int, warm: str) -> None:
    """The life of a template: become a copy for each order, until there will be none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nobody asks how a copy ended; its maker knows it by its handle.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _named(warm)()
    taken = socket.socket(fileno=orders)
    while True:
        order, descriptors, _, _ = socket.recv_fds(taken, _LONGEST_ORDER, 1)
        if not order:
            return
        # The maker's end of this pipe is the only sign that a copy gets to go on.
        ready, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go)
            taken.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            _run(ready, order, descriptors[0])
        handle = os.pidfd_open(pid)
        socket.send_fds(taken, [str(pid).encode()], [handle])
        for descriptor in (ready, go, handle, *descriptors):
            os.close(descriptor)


def _run(ready: int, order: bytes, descriptor: int) -> None:
    """The life of a copy. It waits until its maker has its handle, and never returns."""
    status = 1
    try:
        os.read(ready, 1)
        os.close(ready)
        run, *arguments = json.loads(order)
        _named(run)(descriptor, *arguments)
        status = 0
    finally:
        os._exit(status)


def _alone(descriptor: int, order: str) -> None:
    """The life of a process that is no copy."""
    run, *arguments = json.loads(order)
    _named(run)(descriptor, *arguments)


def _template(paths: Sequence[str], environment: dict[str, str], warm: str) -> _Template:
    for template in list(_TEMPLATES):
        if template.made_of == _made_of(paths, environment, warm):
            return template
        _TEMPLATES.remove(template)
        template.end()
    made = _Template(paths, environment, warm)
    _TEMPLATES.append(made)
    return made


def _made_of(paths: Sequence[str], environment: dict[str, str], warm: str) -> object:
    return tuple(paths), tuple(sorted(environment.items())), warm


def _interpreter(
    main: str, descriptor: int, paths: Sequence[str], environment: dict[str, str], told: str
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _PROGRAM.format(main=main)]
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [*command, str(descriptor), json.dumps(list(paths)), json.dumps(told)],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env=environment,
    )


def _named(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def _forget() -> None:
    """A process that was forked from ours has no template: it would take our orders' answers."""
    global _LOCK
    _LOCK = threading.Lock()
    for template in _TEMPLATES:
        template._orders.close()
    _TEMPLATES.clear()


def _end() -> None:
    """At the end of this process: templates end with it, rather than a moment later."""
    with _LOCK:
        while _TEMPLATES:
            _TEMPLATES.pop().end()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end)
