"""A server that runs on a free port of the loopback interface, with its data in a directory of its
own.

`Server.start` returns when the server answers; `stop` ends it, `kill` ends it the hard way, and
`start` goes on with the same data and port. `close` ends it for good and removes its data. What
happens to us happens to it: see ``keeper``.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from devtools.servers.cache import ServerMissing
from devtools.servers.keeper import PATIENCE_SECONDS

__all__ = ["LocalServer", "free_port", "new_directory", "new_secret", "running"]

START_SECONDS = 60.0
_RESTARTS = 10


@dataclass
class LocalServer:
    """One server. ``answers`` returns, or raises as long as it cannot be used."""

    name: str
    port: int
    directory: Path
    command: Sequence[str]
    answers: Callable[[], None]
    environment: dict[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    # Ends it at once when its data is of no use any more.
    drop_signal: int = signal.SIGKILL
    # As whom it runs, where that is not us.
    user: str | int | None = None
    group: str | int | None = None
    _keeper: subprocess.Popen[str] | None = field(default=None, init=False)
    _ran: bool = field(default=False, init=False)

    def start(self) -> None:
        """Start it and wait until it answers, or say what its log says."""
        for _ in range(_RESTARTS if self._ran else 0):
            try:
                return self._start()
            except ServerMissing:
                time.sleep(
                    0.5
                )  # after a kill, what it left behind may still hold its data for a moment
        self._start()
        self._ran = True
        return None

    def _start(self) -> None:
        assert self._keeper is None, f"{self.name} runs already"
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("keeper.py"))],
            stdin=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        spec = {
            "command": [str(part) for part in self.command],
            "environment": self.environment,
            "directory": str(self.directory),
            "log": str(self.log),
            "stop_signal": int(self.stop_signal),
            "user": self.user,
            "group": self.group,
        }
        self._send(json.dumps(spec))
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.answers()
                return
            except Exception as error:
                if self._keeper.poll() is not None or time.monotonic() > deadline:
                    self._end(self.drop_signal)
                    raise ServerMissing(
                        f"{self.name} does not start: {error!r:.200}\n{self._last_words()}"
                    ) from error
            time.sleep(0.02)

    def stop(self) -> None:
        """End it politely; its data stays."""
        self._end(self.stop_signal)

    def kill(self) -> None:
        """End it without a chance to tidy up; its data stays."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End it and remove its data. Safe to call twice."""
        self._end(self.drop_signal)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        """Itself, as it is."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    @property
    def runs(self) -> bool:
        """True from its start until it is ended, or ends by itself."""
        return self._keeper is not None and self._keeper.poll() is None

    @property
    def log(self) -> Path:
        """What it said, all its lives in one file."""
        return self.directory / "server.log"

    def _end(self, how: int) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        assert keeper.stdin is not None
        try:
            keeper.stdin.write(f"{int(how)}\n")
            keeper.stdin.flush()
            keeper.wait(PATIENCE_SECONDS)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            pass  # it is gone already, or the end of its input makes it kill the server
        with suppress(BrokenPipeError):
            keeper.stdin.close()
        keeper.wait()

    def _send(self, line: str) -> None:
        assert self._keeper is not None
        assert self._keeper.stdin is not None
        self._keeper.stdin.write(line + "\n")
        self._keeper.stdin.flush()

    def _last_words(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.strip().splitlines()[-8:])


def running(make: Callable[[int], LocalServer]) -> LocalServer:
    """A started server on a free port; another port when somebody took the first one meanwhile."""
    for attempt in range(3):
        server = make(free_port())
        try:
            server.start()
            return server
        except BaseException as error:
            server.close()
            if attempt == 2 or not isinstance(error, ServerMissing):
                raise
    raise AssertionError


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def new_directory(name: str) -> Path:
    """A new directory for the data of a server."""
    return Path(tempfile.mkdtemp(prefix=f"sage-{name}-"))


def new_secret() -> str:
    """A password nobody can guess."""
    return secrets.token_hex(16)
