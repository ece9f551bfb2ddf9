"""What the store holds after the chaos, compared with what was acknowledged; all numbers of a
`Verdict` must be 0.

The store is opened by itself, after every process of the service has ended. Records: the windows
that were closed have exact counts (their noise is 1/40), and the stream that kept everything is
read back with a grant, record by record. Charges: the ledger verifies its chain and every point
against the policy; each cycle must have paid once for its count and once for each PTK that says so,
and nothing else may be charged or still reserved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ptklib.errors import SageError
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore import LocalStore
from ptkstore.api.views import CycleView
from ptkstore.engine.window.running import due_windows
from ptkstore.server import open_store
from ptkstore.settings import Settings
from ptkstore.streams import StreamReader
from tests.rpc.chaos_load import ARCHIVE, DAY_MS, FIRST_MS, numbers_of
from tests.rpc.chaos_told import LATE_PTK, PTKS, Told

__all__ = ["Verdict", "judge"]

_PAID = ("PUBLISHED", "TRAIN_LOST", "TRAIN_FAILED")


@dataclass(kw_only=True)
class Verdict:
    """How much of what must not happen did happen, and figures to read."""

    rows_lost: int = 0
    rows_doubled: int = 0
    charges_lost: int = 0
    charges_doubled: int = 0
    charges_reserved: int = 0
    states_unreadable: int = 0
    subscribers_behind: int = 0
    versions_missed: int = 0
    unfinished: int = 0
    wrong: int = 0
    figures: dict[str, object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def broken(self) -> dict[str, int]:
        """Everything that is not 0."""
        return {name: value for name, value in asdict(self).items() if type(value) is int and value}


def judge(folder: Path, told: Told) -> Verdict:
    """Open the store and look at everything."""
    verdict = Verdict(wrong=len(told.wrong), notes=list(told.wrong[:20]))
    settings = Settings.read(folder / "sage.yaml")
    with open_store(folder / "store", settings) as store:
        cycles = store.cycles("rides")
        _operations(store, cycles, told, verdict)
        _rows(store, cycles, told, verdict)
        _archive(store, told, verdict)
        _charges(store, cycles, verdict)
        _states(store, cycles, verdict)
        for finding in store.doctor():
            # Trainings that a kill took are counted apart; that their window fell short is rightly
            # said.
            if finding.level == "ERROR" and not finding.what.startswith("windows of "):
                verdict.wrong += 1
                verdict.notes.append(f"doctor: {finding.what}: {finding.detail}")
    _subscribers(told, verdict)
    redis_down = [(begin, up) for victim, begin, up in told.down if victim == "redis"]
    held_up = [
        one
        for one in told.calls
        if one[2] and any(begin < one[0] and one[1] < up for begin, up in redis_down)
    ]
    verdict.wrong += len(held_up)
    verdict.notes += [f"refused while Redis was away: {reason}" for _, _, reason in held_up[:3]]
    outcomes = Counter(line.outcome for cycle in cycles for line in cycle.trained)
    verdict.figures |= {
        "kills": dict(told.kills),
        "batches acknowledged": told.batches,
        "records acknowledged": sum(told.rows_by_day.values()) + sum(told.archived),
        "windows closed": told.windows,
        "requests repeated under their id": told.repeated,
        "states published": outcomes["PUBLISHED"],
        "trainings lost to a kill (paid, said so)": outcomes["TRAIN_LOST"],
        "other outcomes": dict(
            Counter(line.reason for cycle in cycles for line in cycle.trained if line.reason)
        ),
        "states read": sum(not reason for _, _, reason in told.calls),
        "longest read, s": round(max((end - begin for begin, end, _ in told.calls), default=0), 2),
        "longest until the service was back, s": _longest(told.back_seconds),
        "longest from the kill until then, s": _longest(told.outage_seconds),
        "refused": dict(told.refused),
    }
    return verdict


def _longest(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {victim: round(max(each), 2) for victim, each in sorted(seconds.items())}


def _operations(store: LocalStore, cycles: list[CycleView], told: Told, verdict: Verdict) -> None:
    with store.parts.metadata.read() as tx:
        operations = tx.operations.list("rides")
    ended = [one for one in operations if one.status == "DONE"]
    verdict.unfinished += len(operations) - len(ended)
    verdict.unfinished += sum(cycle.status == "RUNNING" for cycle in cycles)
    verdict.unfinished += abs(len(cycles) - len(told.rows_by_day))
    # One request is one operation, however often it was sent.
    verdict.wrong += abs(len(operations) - told.windows)
    if len(operations) != told.windows:
        verdict.notes.append(f"{told.windows} windows were closed by {len(operations)} operations")


def _rows(store: LocalStore, cycles: list[CycleView], told: Told, verdict: Verdict) -> None:
    """Closed windows.

    A count that was paid for and lost in a kill is told as 0, and the window is skipped here.
    """
    lost_counts = 0
    first = FIRST_MS // DAY_MS
    for cycle in cycles:
        expected = told.rows_by_day[cycle.window - first]
        if cycle.dp_records == 0 and expected:
            lost_counts += 1
            continue
        if cycle.dp_records != expected:
            verdict.notes.append(
                f"window {cycle.window - first}: {expected} acknowledged, {cycle.dp_records} there"
            )
        verdict.rows_lost += max(0, expected - cycle.dp_records)
        verdict.rows_doubled += max(0, cycle.dp_records - expected)
    verdict.figures["counts lost to a kill (paid, told as 0)"] = lost_counts
    raw = [block.name for block in store.budget("rides").blocks if block.status != "expired"]
    verdict.unfinished += len(raw)


def _archive(store: LocalStore, told: Told, verdict: Verdict) -> None:
    """Every record of the stream whose windows were never closed, read with a grant."""
    parts = store.parts
    due_windows(store.parts, "archive", FIRST_MS + DAY_MS)
    (block,) = parts.writer("archive").sealed()
    if block not in parts.ledger.blocks("archive"):
        parts.ledger.add_blocks("archive", [block])
    grant = parts.ledger.reserve("archive", [Slice((block,))], PureCost(epsilon=1))
    found: Counter[int] = Counter()
    for batch in StreamReader(parts.path, ARCHIVE).open_slice(grant, parts.ledger):
        found.update(batch.column("number").to_pylist())
    expected = {
        one for producer, count in enumerate(told.archived) for one in numbers_of(producer, count)
    }
    verdict.rows_lost += len(expected - found.keys())
    verdict.rows_doubled += len(found.keys() - expected) + sum(
        count - 1 for count in found.values()
    )


def _charges(store: LocalStore, cycles: list[CycleView], verdict: Verdict) -> None:
    """The ledger against what the cycles say they did."""
    ledger = store.parts.ledger
    try:
        ledger.verify()
    except SageError as error:
        verdict.wrong += 1
        verdict.notes.append(f"ledger: {error.reason}: {error.message}")
    with store.parts.metadata.read() as tx:
        numbers = {row.window: row.id for row in tx.cycles.list("rides")}
    expected = set()
    for cycle in cycles:
        key = f"cycle-{numbers[cycle.window]}"
        expected |= {f"{key}/count"} | {
            f"{key}/{line.ptk}" for line in cycle.trained if line.outcome in _PAID
        }
    made: Counter[str] = Counter()
    for entry in ledger.history():
        if entry["kind"] == "reserve" and entry["stream"] == "rides":
            fate = ledger.fate(entry["charge"])
            if fate == "SPENT":
                made[entry["key"]] += 1
            elif fate == "RESERVED":
                verdict.charges_reserved += 1
                verdict.notes.append(f"still reserved: {entry['key']}")
    verdict.charges_lost += len(expected - made.keys())
    verdict.charges_doubled += len(made.keys() - expected) + sum(
        count - 1 for count in made.values()
    )
    verdict.notes += [f"not charged: {key}" for key in sorted(expected - made.keys())[:5]]
    verdict.notes += [
        f"charged, and nobody says so: {key}" for key in sorted(made.keys() - expected)[:5]
    ]
    verdict.figures["charges"] = sum(made.values())


def _states(store: LocalStore, cycles: list[CycleView], verdict: Verdict) -> None:
    published: Counter[str] = Counter()
    for cycle in cycles:
        published.update(line.ptk for line in cycle.trained if line.outcome == "PUBLISHED")
    for name in (*PTKS, LATE_PTK):
        versions = [one.version for one in store.states(name)]
        if versions != list(range(1, published[name] + 1)):
            verdict.states_unreadable += 1
            verdict.notes.append(f"{name}: {published[name]} published, versions {versions}")
        for version in versions:
            try:
                if store.get_state(f"{name}@v{version}").manifest.version != version:
                    verdict.states_unreadable += 1
            except SageError as error:
                verdict.states_unreadable += 1
                verdict.notes.append(f"{name}@v{version}: {error.reason}")


def _subscribers(told: Told, verdict: Verdict) -> None:
    for who, ptk in told.follows.items():
        heard, newest = told.heard[who], told.newest[ptk]
        if heard[-1:] != [newest]:
            verdict.subscribers_behind += 1
            verdict.notes.append(f"{who} is on {heard[-1:]} of {ptk}, the newest is {newest}")
        # In order and none left out; those that are called may be told one twice.
        in_order = list(dict.fromkeys(heard)) if who.startswith("endpoint") else heard
        if in_order != list(range(1, len(in_order) + 1)):
            verdict.versions_missed += 1
            verdict.notes.append(f"{who} heard {heard}")
