"""Keeps one server: started by `devtools.servers.running`, as a program of its own that needs
nothing but Python.

The first line on its standard input says what to run; every further line is the number of a signal
to send it. When the input ends, because whoever started it has gone (in whatever way), the server
is stopped and its directory removed: no server outlives the one who wanted it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import IO, Any

__all__ = ["PATIENCE_SECONDS", "main"]

PATIENCE_SECONDS = 15


def main() -> None:
    """Run the server until told otherwise; exit with its code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spec: dict[str, Any] = json.loads(sys.stdin.readline())
    with open(spec["log"], "ab") as log:
        child = _start(spec, log)
    ending = threading.Event()

    def watch() -> None:
        code = child.wait()
        if not ending.is_set():
            os._exit(code if code >= 0 else 128 - code)

    threading.Thread(target=watch, daemon=True).start()
    for line in sys.stdin:
        child.send_signal(int(line))
    ending.set()
    child.send_signal(spec["stop_signal"])
    try:
        child.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    shutil.rmtree(spec["directory"], ignore_errors=True)


def _start(spec: dict[str, Any], log: IO[bytes]) -> subprocess.Popen[bytes]:
    user: dict[str, Any] = {}
    if spec["user"] is not None:
        user = {"user": spec["user"], "group": spec["group"], "extra_groups": []}
    return subprocess.Popen(
        spec["command"],
        env={**os.environ, **spec["environment"]},
        cwd=spec["directory"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        **user,
    )


if __name__ == "__main__":
    main()
