"""Several servers on one PostgreSQL: charges per second of two beside one, and whether anybody gets
past the filter.

Two server processes (a store, its gRPC server and its ledger each) share one PostgreSQL that this
run starts. A round makes a stream whose blocks can carry a known number of charges, and `CLIENTS`
callers of the ledger charge these blocks until every one of them is refused everywhere: first all
of them in one process, then half of them in each of the two, the order changing from round to
round. Before a round every server reads what it has missed: what is compared is charging, not
catching up. No RPC charges by itself, so the callers are threads inside the server processes, where
training, profiling and counting call the ledger. The rate is the charges that were granted, over
the time from the common start to the last grant.

What was granted is then counted again by a third party: a ledger opened afterwards replays the
journal from its first entry, judges every charge (`Ledger.verify`), and the entries of each block
are added up and compared with what it can carry.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bars import Report, Say, at_least, at_most
from ptklib.errors import BudgetExceeded
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice
from ptklib.ledger.state import Entry
from ptklib.privacy.costs import PureCost
from ptkstore.ledger import Ledger
from ptkstore.ledger.writer import SHARED_SECONDS

CLIENTS = 16
ROUNDS = 9
BLOCKS = 8
POLICY = Policy(epsilon=1, delta="1e-6")
# Some 4,000 of these fit into a block.
COST = PureCost(epsilon="0.0034")
_BEGIN_SECONDS = 0.1


def run(say: Say) -> Report:
    from devtools.servers.postgres import start_postgres

    report = Report()
    postgres = start_postgres(say)
    try:
        with postgres.database() as url, tempfile.TemporaryDirectory() as folder:
            rounds = _rounds(url, Path(folder), say)
            with Ledger.open(url, key_path=Path(folder) / "ledger.key") as ledger:
                ledger.verify()
                granted, beyond, short = counted(ledger.history())
    finally:
        postgres.server.close()
    ratios = [two / one for one, two in rounds]
    report.figures["charges"] = [
        {
            "what": "one server, 16 clients: charges/s",
            "rate": round(statistics.median(one for one, _ in rounds)),
        },
        {
            "what": "two servers, 8 clients each: charges/s",
            "rate": round(statistics.median(two for _, two in rounds)),
        },
    ]
    report.figures["ratios"] = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    report.figures["charges granted"] = granted
    report.bars += [
        at_least("charges/s with two servers / one server", statistics.median(ratios), 0.7),
        at_most("charges beyond the filter", beyond, 0),
        at_most("charges refused though there was room", short, 0),
    ]
    return report


def _rounds(url: str, folder: Path, say: Say) -> list[tuple[float, float]]:
    """Charges per second of one server and of two, round by round."""
    found = []
    with _server(url, folder) as first, _server(url, folder) as second:
        for number in range(ROUNDS):
            say(f"round {number + 1} of {ROUNDS}")
            rates = {}
            for servers in ([first], [first, second]) if number % 2 else ([first, second], [first]):
                stream = f"round-{number}-{len(servers)}"
                rates[len(servers)] = _rate(servers, stream)
            found.append((rates[1], rates[2]))
    return found


def _rate(servers: list[Any], stream: str) -> float:
    for server in servers:
        server.send((stream, 0, 0.0))
        server.recv()
    if len(servers) == 1:
        # A ledger that is used by others is written in another way; that it was is forgotten after
        # a while.
        time.sleep(SHARED_SECONDS + 0.1)
    start = time.time() + _BEGIN_SECONDS
    for server in servers:
        server.send((stream, CLIENTS // len(servers), start))
    answers = [server.recv() for server in servers]
    granted = sum(count for count, _ in answers)
    return float(granted / (max(end for _, end in answers) - start))


def counted(entries: Iterable[Entry]) -> tuple[int, int, int]:
    """From the journal alone: charges, those beyond what a block can carry, and those that it could
    have carried as well.

    Every charge demands the same of one whole block, so a block can carry as many of them as fit
    into its capacity at the order where most of them do.
    """
    room: dict[str, int] = {}
    capacities: dict[str, list[int]] = {}
    carried: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        stream = str(entry.get("stream"))
        if entry["kind"] == "stream":
            capacities[stream] = entry["filter"]["capacity"]
        elif entry["kind"] == "reserve":
            fits = [
                most // each
                for most, each in zip(capacities[stream], entry["demand"], strict=True)
                if each
            ]
            room[stream] = max(fits)
            carried[stream, str(entry["slices"])] += 1
    assert len(carried) == len(room) * BLOCKS
    spare = {place: room[place[0]] - count for place, count in carried.items()}
    beyond, short = (sum(max(0, sign * each) for each in spare.values()) for sign in (-1, 1))
    return carried.total(), beyond, short


def _blocks() -> list[str]:
    return [f"block-{number}" for number in range(BLOCKS)]


@contextmanager
def _server(url: str, folder: Path) -> Iterator[Any]:
    """A server process; send (stream, clients, when), receive (granted, time of the last grant)."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve, args=(url, str(folder), theirs))
    child.start()
    # Ours to close, or the death of the child would go unnoticed.
    theirs.close()
    assert ours.recv() == "serving"
    try:
        yield ours
    finally:
        ours.send(None)
        child.join()


def _serve(url: str, folder: str, pipe: Any) -> None:
    """What ``sage serve`` runs, and callers of its ledger."""
    import sys

    from ptkstore.server import Server, configure_logs, open_store
    from ptkstore.settings import Settings

    # As ``sage serve`` does.
    configure_logs()
    sys.setswitchinterval(0.0005)
    sections: dict[str, Any] = {
        "server": {"address": "127.0.0.1:0"},
        "metadata": {"url": url},
        "ledger": {"url": url, "key_file": Path(folder) / "ledger.key"},
        "workers": {"processes": 0},
    }
    settings = Settings(**sections)
    with open_store(Path(folder) / "store", settings) as store, Server(store, settings):
        pipe.send("serving")
        while (order := pipe.recv()) is not None:
            pipe.send(_charge_all(store.parts.ledger, *order))


def _charge_all(ledger: Ledger, stream: str, clients: int, start: float) -> tuple[int, float]:
    """Charge until every block refuses every client.

    Without clients, make the stream and its blocks, or read them.
    """
    if not clients:
        if stream not in ledger.streams():
            ledger.create_stream(stream, POLICY)
            ledger.add_blocks(stream, _blocks())
        return 0, 0.0
    granted = [0] * clients
    ends = [start] * clients

    def client(number: int) -> None:
        blocks = [[Slice((name,))] for name in _blocks()]
        step = number
        time.sleep(max(0.0, start - time.time()))
        while blocks:
            step = (step + 1) % len(blocks)
            try:
                ledger.charge(stream, blocks[step], COST)
            except BudgetExceeded:
                del blocks[step]
            else:
                granted[number] += 1
                ends[number] = time.time()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(granted), max(ends)
