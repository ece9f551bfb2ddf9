"""The ledger: durable rate, admission, replay, independence of history.

Baselines, all in the same run: (a) bare SQLite at synchronous=FULL that commits one row of the same
size per client through the same group commit; (d) the same charge on a ledger with a tenth of the
blocks.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from benchmarks.bars import Report, Say, at_least, at_most
from ptklib.ledger.commands import AddBlocks, CreateStream, Release, Reserve, Retire, Spend
from ptklib.ledger.decide import apply
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import TAG_SPACE, WHOLE, Slice, TagRange
from ptklib.ledger.state import Entry, LedgerState
from ptklib.privacy.costs import GaussianCost, PureCost
from ptkstore.ledger import Ledger
from ptkstore.ledger.group_commit import GroupCommit
from ptkstore.ledger.journals.sqlite import Journal, connect

CLIENTS = 8
ROUNDS = 7
ROUND_SECONDS = 0.8
REPLAYED = 100_000
FAR_MS = 2**50


def run(say: Say) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        _durable_rate(Path(folder), report, say)
        _admission(report, say)
        _replay(Path(folder), report, say)
        _history(report, say)
    return report


def _durable_rate(folder: Path, report: Report, say: Say) -> None:
    say(f"durable charges of {CLIENTS} clients against bare rows, {ROUNDS} rounds each")
    blocks = [f"block-{k}" for k in range(64)]
    cost = PureCost(epsilon="0.000001")
    with Ledger.open(folder / "rate.db") as ledger:
        ledger.create_stream("s", Policy(epsilon=1, delta="1e-6"))
        ledger.add_blocks("s", blocks)
        slices = [[Slice((block,), TagRange(TAG_SPACE // 4, TAG_SPACE // 2))] for block in blocks]

        def charge(client: int, step: int) -> None:
            ledger.charge("s", slices[(client * 8 + step) % 64], cost)

        def two_steps(client: int, step: int) -> None:
            ledger.spend(ledger.reserve("s", slices[(client * 8 + step) % 64], cost))

        bare = _bare_rows(folder / "bare.db")
        rounds = [(_rate(bare), _rate(charge), _rate(two_steps)) for _ in range(ROUNDS)]
    bare_rate, charge_rate, two_rate = (
        statistics.median(column) for column in zip(*rounds, strict=True)
    )
    report.figures["durable"] = [
        {"what": "bare SQLite rows/s", "rate": round(bare_rate)},
        {"what": "charges/s (reserve and spend in one durable step)", "rate": round(charge_rate)},
        {"what": "charges/s (reserve, then spend: two durable steps)", "rate": round(two_rate)},
    ]
    ratios = [charged / rows for rows, charged, _ in rounds]
    steps = [2 * pairs / rows for rows, _, pairs in rounds]
    report.bars += [
        at_least(
            "durable reserve+spend per second / bare SQLite FULL rows per second",
            statistics.median(ratios),
            0.60,
        ),
        at_least(
            "durable commands per second (two-step charges) / bare rows per second",
            statistics.median(steps),
            0.60,
        ),
    ]


def _bare_rows(path: Path) -> Callable[[int, int], None]:
    connection = connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE rows (seq INTEGER PRIMARY KEY, body BLOB NOT NULL, mac BLOB NOT NULL)"
    )

    def commit_all(items: list[bytes], _more: object) -> list[BaseException | None]:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO rows (body, mac) VALUES (?, ?)", [(item, bytes(32)) for item in items]
        )
        connection.execute("COMMIT")
        return [None] * len(items)

    group: GroupCommit[bytes, None] = GroupCommit(commit_all)
    body = bytes(320)

    def commit_one(_client: int, _step: int) -> None:
        group.submit(body)

    return commit_one


def _rate(act: Callable[[int, int], None]) -> float:
    """Calls per second of ``CLIENTS`` threads that call ``act`` in a loop."""
    stop = time.perf_counter() + ROUND_SECONDS
    counts = [0] * CLIENTS

    def client(number: int) -> None:
        while time.perf_counter() < stop:
            act(number, counts[number])
            counts[number] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def _book(blocks: int, **policy: object) -> tuple[LedgerState, list[str]]:
    state = LedgerState()
    names = [f"block-{k}" for k in range(blocks)]
    apply(state, CreateStream("s", Policy(**policy)))  # type: ignore[arg-type]
    for at in range(0, blocks, 50_000):
        apply(state, AddBlocks("s", tuple(names[at : at + 50_000])))
    return state, names


def _timed_reserve(state: LedgerState, request: Reserve) -> float:
    begin = time.perf_counter()
    (entry,) = apply(state, request)
    seconds = time.perf_counter() - begin
    apply(state, Release(entry["charge"]))
    return seconds


def _admission(report: Report, say: Say) -> None:
    say("admission over 1,000 blocks x 32 ranges, Renyi")
    state, names = _book(1000, epsilon=1, delta="1e-6")
    bounds = [TAG_SPACE * k // 32 for k in range(33)]
    for k in range(32):
        cost = GaussianCost(sigma=100 + k)
        tags = TagRange(bounds[k], bounds[k + 1])
        apply(
            state,
            Reserve(
                stream="s", slices=(Slice(tuple(names), tags),), cost=cost, expires_at_ms=FAR_MS
            ),
        )
    orders = state.streams["s"].filter.width - 1
    assert all(len(block.loss.starts) == 32 for block in state.streams["s"].blocks)
    rows = []
    for what, tags in (("all tags", WHOLE), ("3/4 of the tags", TagRange(bounds[4], bounds[28]))):
        request = Reserve(
            stream="s",
            slices=(Slice(tuple(names), tags),),
            cost=GaussianCost(sigma=77),
            expires_at_ms=FAR_MS,
        )
        times = [_timed_reserve(state, request) for _ in range(60)]
        rows.append(
            {"what": what, "orders": orders, "median_ms": round(statistics.median(times) * 1000, 3)}
        )
    report.figures["admission"] = rows
    worst = max(float(str(row["median_ms"])) for row in rows)
    report.bars.append(
        at_most("ms to admit a charge over 1,000 blocks x 32 ranges x 16 orders (median)", worst, 5)
    )
    report.bars.append(at_least("Renyi orders in that filter", orders, 16))


def _replay(folder: Path, report: Report, say: Say) -> None:
    say(f"replay of {REPLAYED:,} charges")
    path = folder / "replay.db"
    Ledger.open(path).close()
    key = path.with_name("replay.db.key").read_bytes()
    state = LedgerState()
    journal = Journal(connect(path), key)
    entries: list[Entry] = []
    names = tuple(f"block-{k}" for k in range(1000))
    entries += apply(state, CreateStream("s", Policy(epsilon=1, delta="1e-6")))
    entries += apply(state, AddBlocks("s", names))
    cost = PureCost(epsilon="0.0001")
    for number in range(REPLAYED):
        blocks = tuple(names[(number + k) % 1000] for k in range(1 + number % 3))
        tags = WHOLE if number % 2 else TagRange(TAG_SPACE // 10, TAG_SPACE)
        request = Reserve(
            stream="s", slices=(Slice(blocks, tags),), cost=cost, expires_at_ms=FAR_MS
        )
        entries += apply(state, request)
        entries += apply(state, Spend(number, 1))
    # Commits of four charges each, reserved and then spent, as several clients leave them.
    journal.begin()
    for at in range(0, len(entries), 8):
        journal.append(entries[at : at + 8])
    journal.commit()
    journal.close()
    scratch = min(_open_seconds(path) for _ in range(3))
    with Ledger.open(path) as ledger:
        ledger.snapshot()
        replayed = ledger.verify().entries
    snapshot = min(_open_seconds(path) for _ in range(3))
    report.figures["replay"] = [
        {
            "what": "from scratch",
            "charges_per_second": round(REPLAYED / scratch),
            "seconds": round(scratch, 2),
        },
        {
            "what": "from a snapshot",
            "charges_per_second": round(REPLAYED / snapshot),
            "seconds": round(snapshot, 3),
        },
    ]
    assert replayed == 2 * REPLAYED + 2
    report.bars += [
        at_least("charges/s replayed from a snapshotted journal", REPLAYED / snapshot, 100_000),
        at_least("charges/s replayed from scratch", REPLAYED / scratch, 20_000),
    ]


def _open_seconds(path: Path) -> float:
    begin = time.perf_counter()
    ledger = Ledger.open(path)
    seconds = time.perf_counter() - begin
    ledger.close()
    return seconds


def _history(report: Report, say: Say) -> None:
    say("cost of a charge with 2,000 and with 20,000 old blocks")
    small, large = (_old_book(count) for count in (2_000, 20_000))
    ratios, rows = [], []
    for _ in range(15):
        pair = []
        for state, request in (small, large):
            pair.append(statistics.median(_timed_reserve(state, request) for _ in range(60)))
        rows.append(pair)
        ratios.append(pair[1] / pair[0])
    report.figures["history"] = [
        {
            "old blocks": count,
            "median_us": round(statistics.median(row[k] for row in rows) * 1e6, 1),
        }
        for k, count in enumerate((2_000, 20_000))
    ]
    report.bars.append(
        at_most(
            "time of a charge with 10x the old blocks / with 1x", statistics.median(ratios), 1.3
        )
    )


def _old_book(count: int) -> tuple[LedgerState, Reserve]:
    """Half of the old blocks retired, half living and used, and a charge on the newest ten."""
    state, names = _book(count, epsilon=1, delta="1e-6")
    slices = (Slice(tuple(names), TagRange.of_shares(0, Fraction(1, 2))),)
    apply(
        state,
        Reserve(stream="s", slices=slices, cost=PureCost(epsilon="0.01"), expires_at_ms=FAR_MS),
    )
    apply(state, Retire("s", tuple(names[: count // 2]), "old"))
    newest = (Slice(tuple(names[-10:]), TagRange.of_shares(0, Fraction(1, 2))),)
    return state, Reserve(
        stream="s", slices=newest, cost=PureCost(epsilon="0.01"), expires_at_ms=FAR_MS
    )
