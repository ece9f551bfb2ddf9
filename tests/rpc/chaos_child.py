"""Producers and subscribers in processes of their own: `tests.rpc.chaos_load`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["PATIENCE_SECONDS", "Child"]

# What takes longer than this is not coming.
PATIENCE_SECONDS = 90.0


class Child:
    """A process of the load: lines of JSON come out, lines of text go in."""

    def __init__(self, name: str, *arguments: str) -> None:
        self.name = name
        self._lines: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.rpc.chaos_load", *arguments],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def wait_for(
        self, holds: Callable[[dict[str, Any]], bool], seconds: float = PATIENCE_SECONDS
    ) -> dict[str, Any]:
        """The first line that fits."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                found = next((one for one in self._lines if holds(one)), None)
                if found is not None:
                    return found
                left = deadline - time.monotonic()
                if left <= 0 or not self._thread.is_alive():
                    raise AssertionError(
                        f"{self.name} did not say what was waited for; it said {self._lines[-3:]}"
                    )
                self._changed.wait(min(left, 0.5))

    def lines(self) -> list[dict[str, Any]]:
        with self._changed:
            return list(self._lines)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(json.loads(line))
                self._changed.notify_all()
