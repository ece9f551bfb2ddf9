"""A seeded simulation of a durable ledger on a disk that loses power between any two writes.

`simulate_ledger(open_ledger, seed)` drives a real ledger (state machine, journal, SQLite) with
random commands, cuts the power at random disk operations, starts it again from what survived, and
compares every answer with an independent model that keeps the book the naive way: a list of
charges, summed point by point. It checks that

* what was acknowledged is there after a crash: no spend is lost;
* the command in flight happened as a whole or not at all, and nothing happened twice: no spend is
  doubled;
* replaying the journal gives the state bit for bit, and `verify` finds nothing;
* the ledger says yes exactly when the model does, and no point is ever beyond the policy.

The same seed gives the same run. A failure raises `SimulationFailure` with the seed in its text.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ptklib.encoding.canonical import canonical
from ptklib.errors import Refused, SageError
from ptklib.ledger.grants import Grant
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import TAG_SPACE, Slice, TagRange
from ptklib.ledger.snapshot import digest
from ptklib.ledger.state import Entry, LedgerState
from ptklib.privacy.costs import PureCost
from ptklib.testing.simulated_disk import PowerCut, SimulatedDisk

__all__ = ["OpenLedger", "SimulationFailure", "SimulationReport", "simulate_ledger"]

# Opens the ledger on a connection to the simulated disk: (connection, clock) -> ledger with the
# methods of `ptkstore.Ledger`.
OpenLedger = Callable[[Any, Callable[[], float]], Any]

_STREAM = "rides"
_CUTS = [TAG_SPACE * k // 8 for k in range(9)]
_SHARE = Fraction(1, 2)
_TEAM = "team-a"


class SimulationFailure(AssertionError):
    """The ledger and the model disagree, or something acknowledged is gone."""


@dataclass
class SimulationReport:
    """What one simulation did."""

    seed: int
    steps: int = 0
    crashes: int = 0
    charges: int = 0
    refusals: int = 0
    in_flight_kept: int = 0
    in_flight_lost: int = 0


@dataclass
class _Charge:
    """A charge as the model has it."""

    blocks: tuple[str, ...]
    tags: TagRange
    epsilon: Fraction
    team: bool
    expires_at_ms: int
    fate: str = "RESERVED"


@dataclass
class _Model:
    """The book kept the naive way, rebuilt from the journal's entries after every crash."""

    epsilon: Fraction
    blocks: list[str] = field(default_factory=list)
    retired: set[str] = field(default_factory=set)
    quota: bool = False
    charges: list[_Charge] = field(default_factory=list)

    def loss(self, block: str, tag: int, *, team: bool) -> Fraction:
        """The sum of what covers one point."""
        return sum(
            (
                charge.epsilon
                for charge in self.charges
                if charge.fate != "RELEASED"
                and block in charge.blocks
                and charge.tags.start <= tag < charge.tags.stop
                and (charge.team or not team)
            ),
            Fraction(0),
        )

    def admits(
        self, blocks: tuple[str, ...], tags: TagRange, epsilon: Fraction, *, team: bool
    ) -> bool:
        """Would no point be beyond the policy, nor the team's points beyond its quota?"""
        points = [
            (block, tag) for block in blocks for tag in _CUTS[:-1] if tags.start <= tag < tags.stop
        ]
        return all(
            self.loss(block, tag, team=False) + epsilon <= self.epsilon
            and not (
                team
                and self.quota
                and self.loss(block, tag, team=True) + epsilon > self.epsilon * _SHARE
            )
            for block, tag in points
        )

    def fold(self, entry: Entry) -> None:
        """Follow one entry of the journal, in the model's own words."""
        kind = entry["kind"]
        if kind == "blocks":
            self.blocks += entry["blocks"]
        elif kind == "quota":
            self.quota = True
        elif kind == "retire":
            self.retired |= {
                self.blocks[first + k] for first, count in entry["runs"] for k in range(count)
            }
        elif kind == "reserve":
            ((runs, start, stop),) = entry["slices"]
            blocks = tuple(self.blocks[first + k] for first, count in runs for k in range(count))
            epsilon = Fraction(entry["cost"]["epsilon"])
            team = _TEAM in entry.get("contexts", ())
            fate = "SPENT" if "spent_at_ms" in entry else "RESERVED"
            self.charges.append(
                _Charge(blocks, TagRange(start, stop), epsilon, team, entry["expires_at_ms"], fate)
            )
        elif kind in ("spend", "release"):
            self.charges[entry["charge"]].fate = "SPENT" if kind == "spend" else "RELEASED"

    def check(self) -> None:
        """No point of a block is beyond the policy."""
        for block in self.blocks:
            for tag in _CUTS[:-1]:
                if self.loss(block, tag, team=False) > self.epsilon:
                    raise SimulationFailure(f"block {block} is beyond the policy at tag {tag}")


class _Run:
    """One simulation: a disk, a ledger on it, a model beside it."""

    def __init__(self, open_ledger: OpenLedger, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        self.open_ledger = open_ledger
        self.report = SimulationReport(seed)
        self.now_seconds = 1_000_000.0
        self.disk = SimulatedDisk()
        self.ledger: Any = None
        self.model = _Model(Fraction(1))
        self.history: list[bytes] = []
        self.grants: dict[int, Grant] = {}
        # What the command in progress may write: the number of entries, all or none.
        self.asked = 0

    def run(self, steps: int) -> SimulationReport:
        self.start()
        self.acknowledge()
        while self.report.steps < steps:
            self.report.steps += 1
            try:
                if self.rng.random() < 0.2:
                    self.disk.crash_after(self.rng.randrange(1, 25))
                self.step()
                self.acknowledge()
            except PowerCut:
                self.restart()
        self.restart()
        self.disk.calm()
        self.ledger.close()
        self.report.charges = len(self.model.charges)
        return self.report

    def start(self) -> None:
        """Open the ledger and have the stream, through any number of power cuts."""
        while True:
            try:
                self.ledger = self.open_ledger(
                    self.disk.connect("ledger.db"), lambda: self.now_seconds
                )
                if not self.ledger.streams():
                    self.ledger.create_stream(_STREAM, Policy(epsilon=1, delta=0))
                return
            except PowerCut:
                self.disk = self.disk.after_crash(self.rng)
                self.report.crashes += 1

    def restart(self) -> None:
        """Lose power (if it is not lost already), start again, and check what is there."""
        self.report.crashes += 1
        self.disk = self.disk.after_crash(self.rng)
        if self.rng.random() < 0.3:
            # The power may go again while the ledger recovers.
            self.disk.crash_after(self.rng.randrange(1, 12))
        self.start()
        entries = list(self.ledger.history())
        recovered = [canonical(entry) for entry in entries]
        if recovered[: len(self.history)] != self.history:
            raise SimulationFailure("an acknowledged entry is lost or changed")
        extra = len(recovered) - len(self.history)
        if extra not in (0, self.asked):
            raise SimulationFailure(
                f"{extra} entries of a command in flight survived, it was to write {self.asked}"
            )
        if self.asked:
            self.report.in_flight_kept += extra > 0
            self.report.in_flight_lost += extra == 0
        self.check_replay(entries)
        self.catch_up(entries)
        self.asked = 0

    def acknowledge(self) -> None:
        """The ledger said done: its entries must be there from now on."""
        self.catch_up(list(self.ledger.history()))
        self.asked = 0

    def catch_up(self, entries: list[Entry]) -> None:
        for entry in entries[len(self.history) :]:
            self.model.fold(entry)
            self.history.append(canonical(entry))
        self.model.check()
        fates = [self.ledger.fate(number) for number in range(len(self.model.charges))]
        if fates != [charge.fate for charge in self.model.charges]:
            raise SimulationFailure("the fate of a charge differs from the model")

    def check_replay(self, entries: list[Entry]) -> None:
        state = LedgerState()
        for entry in entries:
            state.evolve(entry)
        if digest(state) != self.ledger.digest():
            raise SimulationFailure("replay is not bit-equal")
        self.ledger.verify()

    def step(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (2, self.add_blocks),
            (8, self.reserve),
            (4, self.charge),
            (5, self.spend),
            (2, self.release),
            (1, self.retire),
            (1, self.pass_time),
            (1, self.snapshot),
            (1, self.set_quota),
        ]
        self.rng.choices([act for _, act in actions], [weight for weight, _ in actions])[0]()

    def add_blocks(self) -> None:
        count = self.rng.randrange(1, 4)
        self.asked = 1
        self.ledger.add_blocks(
            _STREAM, [f"block-{len(self.model.blocks) + k}" for k in range(count)]
        )

    def reserve(self) -> None:
        self._ask(spend=False)

    def charge(self) -> None:
        self._ask(spend=True)

    def _ask(self, *, spend: bool) -> None:
        alive = [block for block in self.model.blocks if block not in self.model.retired]
        if not alive:
            return
        blocks = tuple(self.rng.sample(alive, self.rng.randrange(1, min(len(alive), 4) + 1)))
        first, last = sorted(self.rng.sample(range(9), 2))
        tags = TagRange(_CUTS[first], _CUTS[last])
        epsilon = Fraction(self.rng.choice([1, 2, 3, 5, 10, 30]), 100)
        team = self.rng.random() < 0.4
        contexts = (_TEAM,) if team else ()
        # Lapsed reservations are released on the way when there is no room: let none be lapsed.
        self.expire()
        expected = self.model.admits(blocks, tags, epsilon, team=team)
        self.asked = 1 if expected else 0
        cost = PureCost(epsilon=epsilon)
        number = len(self.model.charges)
        try:
            if spend:
                made = self.ledger.charge(_STREAM, [Slice(blocks, tags)], cost, contexts=contexts)
            else:
                ttl = self.rng.choice([30, 3600])
                grant = self.ledger.reserve(
                    _STREAM, [Slice(blocks, tags)], cost, contexts=contexts, ttl_seconds=ttl
                )
                self.grants[number] = grant
                made = grant.charge
        except Refused as refusal:
            self.report.refusals += 1
            if expected or refusal.reason not in ("BUDGET_EXCEEDED", "QUOTA_EXCEEDED"):
                raise SimulationFailure(f"refused what the model admits: {refusal}") from refusal
            return
        if not expected or made != number:
            raise SimulationFailure("admitted what the model refuses, or numbered it wrongly")

    def expire(self) -> None:
        now_ms = int(self.now_seconds * 1000)
        lapsed = [
            charge
            for charge in self.model.charges
            if charge.fate == "RESERVED" and charge.expires_at_ms <= now_ms
        ]
        if lapsed:
            self.asked = len(lapsed)
            if self.ledger.expire() != len(lapsed):
                raise SimulationFailure("expired other reservations than the model")
            self.acknowledge()

    def spend(self) -> None:
        self._end("spend")

    def release(self) -> None:
        self._end("release")

    def _end(self, verb: str) -> None:
        if not self.grants:
            return
        number = self.rng.choice(sorted(self.grants))
        charge = self.model.charges[number]
        expected = {"SPENT": "GRANT_USED", "RELEASED": "GRANT_RELEASED"}.get(charge.fate)
        if expected is None and verb == "spend":
            if charge.expires_at_ms <= int(self.now_seconds * 1000):
                expected = "GRANT_EXPIRED"
            elif self.model.retired & set(charge.blocks):
                expected = "BLOCK_RETIRED"
        self.asked = 0 if expected else 1
        try:
            getattr(self.ledger, verb)(self.grants[number])
        except Refused as refusal:
            self.report.refusals += 1
            if refusal.reason != expected:
                raise SimulationFailure(
                    f"{verb} was refused as {refusal.reason}, the model says {expected}"
                ) from refusal
            return
        if expected is not None:
            raise SimulationFailure(f"{verb} went through, the model says {expected}")

    def retire(self) -> None:
        alive = [block for block in self.model.blocks if block not in self.model.retired]
        if len(alive) > 3:
            self.asked = 1
            self.ledger.retire(_STREAM, [alive[0]], why="expired")

    def pass_time(self) -> None:
        self.now_seconds += self.rng.choice([1, 20, 4000])

    def snapshot(self) -> None:
        self.ledger.snapshot()

    def set_quota(self) -> None:
        self.asked = 1
        self.ledger.set_quota(_STREAM, _TEAM, _SHARE)


def simulate_ledger(open_ledger: OpenLedger, seed: int, *, steps: int = 40) -> SimulationReport:
    """Run one simulation; raise `SimulationFailure` where the ledger is wrong."""
    run = _Run(open_ledger, seed)
    try:
        return run.run(steps)
    except SimulationFailure as failure:
        raise SimulationFailure(f"seed {seed}: {failure}") from failure
    except (SageError, LookupError, AssertionError) as error:
        raise SimulationFailure(f"seed {seed}: the ledger raised {error!r}") from error
    finally:
        run.disk.calm()
