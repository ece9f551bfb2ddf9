"""Two ``sage serve`` processes on one store and one PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptkstore import Store

__all__ = ["ServerProcess", "served"]

_ROOT = Path(__file__).parents[2]
_COMMAND = "from ptkstore.cli import main; main()"


@dataclass(frozen=True)
class ServerProcess:
    """One of them. ``told`` is what it printed when it was ready."""

    process: subprocess.Popen[str]
    told: dict[str, Any]

    @property
    def address(self) -> str:
        return str(self.told["address"])

    def store(self) -> Store:
        return Store(self.address)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def served(
    folder: Path, url: str, *, lease_seconds: float = 2.0, **more: str
) -> Iterator[ServerProcess]:
    """A server; stopped at the end, unless it was killed before."""
    settings = {
        "SAGE__SERVER__ADDRESS": "127.0.0.1:0",
        "SAGE__SERVER__LEASE_SECONDS": str(lease_seconds),
        "SAGE__SERVER__DRAIN_SECONDS": "5",
        "SAGE__METADATA__URL": url,
        "SAGE__LEDGER__URL": url,
        "SAGE__LEDGER__KEY_FILE": str(folder / "ledger.key"),
        "SAGE__WORKERS__PROCESSES": "0",
    }
    command = [sys.executable, "-c", _COMMAND, "serve", "--json", "--store", str(folder / "store")]
    with (
        (folder / "log").open("a") as log,
        subprocess.Popen(
            command,
            cwd=_ROOT,
            env=os.environ | settings | more,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, f"the server ended: {text} {(folder / 'log').read_text()[-2000:]}"
            text += line
        try:
            yield ServerProcess(process, json.loads(text))
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(60)
