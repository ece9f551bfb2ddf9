"""Which option each PTK takes, settled between two programs that correct each other.

The integer program of `allocator.strip.prices.charges` chooses the options that pay least by what
is known; its bound holds for every plan. The linear program of `allocator.strip.configurations`
says what that choice really takes: a plan, or prices at which it pays more. Those prices, lifted to
the options that were not chosen (`allocator.strip.prices.lifting`), are one more charge, and one
that holds for all similar choices. So a handful of rounds does what a search over options takes
thousands of linear programs for, and the choice always looks at all PTKs together: where the
longest PTK leaves a little room, or a dear option is what makes a shorter plan possible, nothing
has to be guessed.

What a choice takes is found roughly at first, and to the end only when it is chosen again. A choice
whose plan in parts is shorter than any plan in whole records that was found for it is ruled out,
and its length stays part of the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.strip.branching import PackedOptions, shortest
from allocator.strip.completing import completed
from allocator.strip.configurations import Configurations, StripRelaxation
from allocator.strip.packing import Packed
from allocator.strip.prices.charges import OptionCharges
from allocator.strip.prices.lifting import lifted
from allocator.strip.rounding import in_records
from allocator.table import Floats, OptionTable

__all__ = ["Choosing"]

# How far the plan in parts of a choice may be above its bound: at first, as a part of the gap that is
# left, and compared with the last time; and what is as good as none.
_CLOSE, _OF_GAP, _CLOSER, _CLOSEST = 1e-2, 0.2, 0.1, 1e-6
_LEAST_GAP = 1e-7
_MORE = 2e-6
# So many choices that pay too little are looked at together.
_TOGETHER = 5
# From so many PTKs on a packing is worth its time even where it is no shorter.
_MANY = 80
# A gap that calls for a rough look at all options, in so many rounds.
_FAR, _ROUGH = 0.1, 10
# Lengths that are tried for a packing.
_PACKINGS = 12
# Up to so many PTKs the last records are looked for at once.
_FEW = 20


@dataclass
class _Looked:
    """How closely a choice was looked at."""

    close: float = 1.0
    relaxed: StripRelaxation | None = None


class Choosing:
    """Rounds of choosing and telling, until the gap is closed or there is nothing left to spend."""

    def __init__(
        self,
        table: OptionTable,
        best: PackedOptions,
        bound: int,
        *,
        gap: float,
        configurations: Configurations,
    ) -> None:
        """Begin with a plan; ``configurations`` are shared with other searches."""
        self.table, self.best, self._low = table, best, float(bound)
        self._gap = gap
        self._configurations = configurations
        self._charges = OptionCharges(table)
        self._looked: dict[bytes, _Looked] = {}
        self._settled = 1 << 62
        # Choices that turned out to take more than they pay.
        self._recent: list[NDArray[np.int64]] = []
        # True when more work on it would change nothing.
        self.done = False
        self._add_columns()

    @property
    def bound(self) -> int:
        """No plan holds fewer records."""
        low = int(np.ceil(self._low - 1e-6))
        return min(low, self._settled, self.best.packed.total)

    @property
    def closed(self) -> bool:
        """True when the plan is as close to the bound as was asked for."""
        return self.best.packed.total <= self.bound * (1 + self._gap)

    def run(self, effort: Effort) -> None:
        """Look until the gap is closed, or nothing is left to do or to spend."""
        if self._left() > _FAR and len(self.table) <= _MANY and not self._looked:
            self._look_at_all(effort)
        while not (self.closed or self.done or effort.over):
            if len(self._recent) >= _TOGETHER:
                self._look_together(effort)
            self._round(effort)

    def _left(self) -> float:
        """The gap."""
        return self.best.packed.total / max(self._low, 1.0) - 1

    def _allowed(self) -> NDArray[np.bool_]:
        return self.table.allowed(self.best.packed.total - 1)

    def _round(self, effort: Effort) -> None:
        cut, allowed = self.best.packed.total, self._allowed()
        if not allowed.any(axis=1).all():
            self._low = float(cut)
            return
        cheapest = self._charges.cheapest(
            allowed,
            below=cut,
            low=min(self._low, cut - 1),
            gap=max(self._gap / 4, _OF_GAP / 4 * self._left(), _LEAST_GAP),
            effort=effort,
        )
        if effort.over:
            return
        self._low = max(self._low, min(cheapest.bound, float(cut)))
        if cheapest.choice is None:
            self.done = not self.closed
        elif not self.closed:
            looked = self._looked.setdefault(cheapest.choice.tobytes(), _Looked())
            self._look(cheapest.choice, looked, effort)

    def _look(self, choice: NDArray[np.int64], looked: _Looked, effort: Effort) -> None:
        """What this choice takes, more closely than the last time."""
        if looked.close <= _CLOSEST:
            self._leave(choice, looked)
            return
        if looked.relaxed is None:
            self._packed(choice, effort)
            if self.closed or effort.over:
                return
        cut, rows = self.best.packed.total, np.arange(len(self.table))
        only = np.zeros(self.table.samples.shape, dtype=bool)
        only[rows, choice] = True
        paid = self._charges.paid(choice)
        close = max(min(_CLOSE, _OF_GAP * self._left(), _CLOSER * looked.close), _CLOSEST)
        relaxed = self._configurations.relax(
            only,
            enough=cut - 1 + _MORE,
            effort=effort,
            least=paid,
            close=close,
            start=None if looked.relaxed is None else looked.relaxed.prices,
        )
        if effort.over:
            return
        looked.close, looked.relaxed = close, relaxed
        if relaxed.bound > paid * (1 + _MORE):
            self._charge(only, relaxed, effort)
            self._recent.append(choice)
        if np.ceil(relaxed.bound - 1e-6) >= cut or relaxed.value >= cut:
            return
        packed = in_records(
            self.table,
            choice,
            self._configurations,
            relaxed,
            effort,
            settle=close <= _CLOSEST or len(self.table) <= _FEW,
        )
        if packed is not None and packed.total < cut and not effort.over:
            self.best = PackedOptions(choice, packed)
            self._add_columns()

    def _look_at_all(self, effort: Effort) -> None:
        """All options at once, roughly: the choice that comes closest is a beginning where there is
        no plan worth the name.
        """
        allowed = self._allowed()
        if not allowed.any(axis=1).all():
            return
        cut = self.best.packed.total
        relaxed = self._configurations.relax(
            allowed, enough=cut - 1 + _MORE, effort=effort, rounds=_ROUGH
        )
        if effort.over:
            return
        self._low = max(self._low, relaxed.bound)
        self._charge(allowed, relaxed, effort)
        choice = np.where(allowed, relaxed.shares, -1.0).argmax(axis=1)
        self._look(choice, self._looked.setdefault(choice.tobytes(), _Looked()), effort)

    def _look_together(self, effort: Effort) -> None:
        """What all recent choices and everything between them pays at least.

        Prices that suit one choice may let another one off; these suit all of them.
        """
        cut = self.best.packed.total
        some = np.zeros(self.table.samples.shape, dtype=bool)
        for choice in self._recent:
            some[np.arange(len(self.table)), choice] = True
        some &= self._allowed()
        self._recent.clear()
        if not some.any(axis=1).all():
            return
        relaxed = self._configurations.relax(
            some,
            enough=cut - 1 + _MORE,
            effort=effort,
            close=max(min(_CLOSE, _OF_GAP * self._left()), _CLOSEST),
        )
        if not effort.over:
            self._charge(some, relaxed, effort)

    def _packed(self, choice: NDArray[np.int64], effort: Effort) -> None:
        """This choice packed without any program: at times that is all it takes, and the sets of
        it are a beginning.
        """
        rows = np.arange(len(self.table))
        samples, demands = self.table.samples[rows, choice], self.table.demands[rows, choice]
        cut = self.best.packed.total
        low = max(int(np.ceil(self._charges.paid(choice) - 1e-6)), int(samples.max()))
        effort.spend(4e4 * len(rows))
        packings: list[Packed | None] = []
        if len(rows) > _MANY or shortest(self.table, choice, cut - 1, cut, steps=1) is not None:
            effort.spend(_PACKINGS * 4e4 * len(rows))
            packings.append(shortest(self.table, choice, low, max(cut, 2 * low), steps=_PACKINGS))
        if len(rows) > _MANY:
            packings.append(completed(samples, demands, self.table.capacity, effort))
        for packed in packings:
            if packed is None:
                continue
            for row in packed.members:
                self._configurations.add(np.where(row, choice, -1))
            if packed.total < self.best.packed.total:
                self.best = PackedOptions(choice, packed)

    def _leave(self, choice: NDArray[np.int64], looked: _Looked) -> None:
        """There is no more to learn about this choice: its length stays in the bound."""
        assert looked.relaxed is not None
        self._settled = min(self._settled, int(np.ceil(looked.relaxed.bound - 1e-6)))
        if self._charges.all_differ:
            self._charges.rule_out(choice)
        else:
            self.done = True

    def _charge(self, allowed: NDArray[np.bool_], relaxed: StripRelaxation, effort: Effort) -> None:
        worth = relaxed.prices * relaxed.least
        prices: Floats = np.where(allowed, worth[:, None] / self.table.samples, 0.0)
        order = np.argsort(-worth, kind="stable")
        for one_way in (order, order[::-1]):
            self._charges.add(lifted(self._configurations.fine, prices, one_way, effort))

    def _add_columns(self) -> None:
        for row in self.best.packed.members:
            self._configurations.add(np.where(row, self.best.choice, -1))
