"""A ``sage serve`` process whose room on disk and whose descriptors can be taken away and given
back while it runs.

The kernel refuses to let its files grow (RLIMIT_FSIZE: every write fails with EFBIG, as one on a
full disk does with ENOSPC) and to open another descriptor (RLIMIT_NOFILE: EMFILE). Neither needs a
privilege.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

__all__ = ["Limited", "limited"]

_ROOT = Path(__file__).parents[2]
_COMMAND = "from ptkstore.cli import main; main()"


@dataclass(frozen=True)
class Limited:
    """The process, where it listens, and its log."""

    process: subprocess.Popen[str]
    address: str
    log: Path

    @contextmanager
    def disk_full(self, room: int = 0) -> Iterator[None]:
        """No file can grow beyond ``room`` bytes."""
        with self._limit(resource.RLIMIT_FSIZE, room):
            yield

    @contextmanager
    def descriptors_gone(self) -> Iterator[None]:
        """None is left beside those that are open."""
        with self._limit(resource.RLIMIT_NOFILE, 3):
            yield

    @contextmanager
    def _limit(self, kind: int, soft: int) -> Iterator[None]:
        before = resource.prlimit(self.process.pid, kind)
        resource.prlimit(self.process.pid, kind, (soft, before[1]))
        try:
            yield
        finally:
            resource.prlimit(self.process.pid, kind, before)

    def health(self, service: str = "") -> str:
        """What probes hear."""
        with grpc.insecure_channel(self.address) as channel:
            request = health_pb2.HealthCheckRequest(service=service)
            answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=10)
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


@contextmanager
def limited(folder: Path, *, descriptors: int | None = None, **settings: str) -> Iterator[Limited]:
    """A server of the store in ``folder``; ``descriptors`` is the most it may ever have."""
    fixed = {
        "SAGE__SERVER__ADDRESS": "127.0.0.1:0",
        "SAGE__SERVER__DRAIN_SECONDS": "2",
        "SAGE__WORKERS__PROCESSES": "0",
    }
    command = [sys.executable, "-c", _COMMAND, "serve", "--json", "--store", str(folder / "store")]

    def prepare() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with (
        # Through a pipe: the log must not grow as a file of the limited process.
        subprocess.Popen(
            ["tee", "-a", str(log)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as tee,
        subprocess.Popen(
            command,
            cwd=_ROOT,
            env=os.environ | fixed | settings,
            stdout=subprocess.PIPE,
            stderr=tee.stdin,
            text=True,
            preexec_fn=prepare,
        ) as process,
    ):
        assert process.stdout is not None
        assert tee.stdin is not None
        tee.stdin.close()
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            if not line:
                ended = process.wait(60)
                tee.wait(60)
                told = log.read_text()[-4000:]
                raise AssertionError(f"the server ended with {ended}: {text} {told}")
            text += line
        try:
            yield Limited(process, str(json.loads(text)["address"]), log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
