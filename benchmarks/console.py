"""Every page of the console over a large store behind a server: milliseconds until the page is
there, and its size.

The store is that of ``pages``: 5,000 PTKs, 100,000 blocks, 1,000,000 charges, 200,000 events. A
server serves it over loopback, a console shows it, and one visitor asks for each page in turn, as
often as there are rounds. The visitor looks every ten seconds: what a session remembers is made
that much older before each request, so that only what it keeps for minutes (a plan, until the next
cycle) is known; "first" is the time when nothing was. It is taken at the visitor: the page, the
calls behind it, the HTTP around it. Pages that take a name are asked about one; CSV files, which
grow with the store, and streams of events are left out.
"""

from __future__ import annotations

import http.client
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.bars import Report, Say, at_most
from benchmarks.pages import BLOCKS, CHARGES_PER_BLOCK, EVENTS, PTKS, STREAM, fill
from ptkstore import Store
from ptkstore.console import ConsoleSettings, ServerSource
from ptkstore.console.app import Console
from ptkstore.console.pages import PAGES
from ptkstore.console.serving import Serving, bound
from ptkstore.console.sessions.sessions import OneTimeKeys, Sessions
from ptkstore.server import Server
from ptkstore.settings import Settings

ROUNDS = 15
PAUSE_SECONDS = 10.0
MOST_MS = 150
MOST_KB = 300
# What is asked of pages that are about something; others are asked as they are.
_ASKED = {
    "budget": (
        f"stream={STREAM}",
        f"stream={STREAM}&begin=50000&span=960",
        f"stream={STREAM}&find=b099950",
        f"stream={STREAM}&blocks=b0999",
    ),
    "events": ("", "find=p4711"),
    "operations": (f"stream={STREAM}",),
    "plan": (f"stream={STREAM}",),
    "ptk": ("name=p4711",),
    "ptks": ("", f"stream={STREAM}&status=ACTIVE&find=p47&sort=-target", "page=200"),
    "what-if": (f"stream={STREAM}",),
}


def run(say: Say) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        say(
            f"{PTKS:,} PTKs, {BLOCKS:,} blocks, {BLOCKS * CHARGES_PER_BLOCK:,} charges, {EVENTS:,} "
            "events"
        )
        begin = time.perf_counter()
        with Store(folder, workers=0) as store:
            fill(store, say)
            report.figures["seconds to write"] = round(time.perf_counter() - begin, 1)
            measure(store, report, say)
    return report


def measure(store: Store, report: Report, say: Say) -> None:
    """Ask for every page of a store, and write down what it took."""
    settings = Settings(server={"address": "127.0.0.1:0"})  # type: ignore[arg-type]
    with Server(store, settings) as server, _visitor(server.address) as ask:
        for path in paths():
            say(path)
            ask.as_if_new()
            times, sizes = zip(*(ask(path) for _ in range(ROUNDS)), strict=True)
            report.bars.append(
                at_most(
                    f"median server time of {path} (ms)",
                    round(1000 * statistics.median(times), 1),
                    MOST_MS,
                )
            )
            report.bars.append(
                at_most(f"size of {path} (KB)", round(max(sizes) / 1000, 1), MOST_KB)
            )
            report.figures[f"{path}, ms"] = {
                "first": round(1000 * times[0], 1),
                "least": round(1000 * min(times), 1),
                "most": round(1000 * max(times), 1),
            }


def paths() -> list[str]:
    """The pages that people look at, with what is asked of them."""
    shown = [
        one.path
        for one in PAGES
        if one.method == "GET" and "." not in one.path and not one.path.endswith("-live")
    ]
    return [f"{path}?{query}".rstrip("?") for path in shown for query in _ASKED.get(path, ("",))]


class _Ask:
    """One visitor with a session. Returns the seconds and the bytes of a page."""

    def __init__(self, port: int, cookie: str, sessions: Sessions) -> None:
        self._port, self._cookie = port, cookie
        found = sessions.find(cookie.partition("=")[2])
        assert found is not None
        self._session = found

    def as_if_new(self) -> None:
        """Forget everything."""
        self._session.forget()

    def __call__(self, path: str) -> tuple[float, int]:
        known = self._session._remembered
        known.update({key: (at - PAUSE_SECONDS, value) for key, (at, value) in known.items()})
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        begin = time.perf_counter()
        connection.request("GET", "/" + path, headers={"cookie": self._cookie})
        answer = connection.getresponse()
        data = answer.read()
        spent = time.perf_counter() - begin
        connection.close()
        assert answer.status == 200, (path, answer.status)
        return spent, len(data)


@contextmanager
def _visitor(address: str) -> Iterator[_Ask]:
    keys = OneTimeKeys()
    console = Console(ServerSource(address), ConsoleSettings(), keys, lambda: None, PAGES)
    serving = Serving(console.app, bound("127.0.0.1", 0))
    thread = threading.Thread(target=serving.run, name="console")
    thread.start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=60)
        connection.request("GET", f"/open?key={keys.make()}")
        cookie = connection.getresponse().headers["set-cookie"].partition(";")[0]
        connection.close()
        yield _Ask(serving.port, cookie, console.sessions)
    finally:
        serving.stop()
        thread.join(20)
