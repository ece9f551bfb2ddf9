"""What a new state takes from earlier ones, by the choice of windows of its PTK (`ptkstore.api.over`).

``all`` hands the last state to training, ``last`` nothing. For ``rolling`` and ``decay`` training
sees its own window alone, and the state is then put together of states that are in the lake:

* *rolling*: of what each of the last K windows gave by itself. So each training leaves two states
  in the lake: that of its window alone, its *part*, and the one that is published, whose manifest
  names its parts.
* *decay*: of the last state, faded, and the new one.

**Proof note.** *Cost:* none. All of it is read from states that are DP, weighted by public numbers
(windows that went by, which say nothing of records): post-processing. Each window holds records
that no other holds, and each was charged when it was trained.

What is read of the lake, and all that can fail of it, comes before a charge is spent; what is put
together afterwards is kept in memory and in the lake, like any state. A failure of a PTK in putting
states together is told by type and place: it has seen no records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import safetensors.numpy

from ptklib.ptk import Arrays, Ptk, Weighted
from ptkstore.api.over import Over
from ptkstore.engine.plans.planning import ptk_of
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.metadata import rows

__all__ = ["Continued", "EarlierStates", "continued", "earlier_of"]


@dataclass(frozen=True)
class Continued:
    """The state before, if the new one continues it; the oldest window that the new one will speak
    of, if that is not its own; the newest that the one before speaks of; and the states of one
    window, with their windows, that the new one is put together of, oldest first.
    """

    previous: str | None = None
    oldest: str | None = None
    newest: str | None = None
    parts: tuple[tuple[str, str], ...] = ()


def continued(row: rows.PtkRow, latest: rows.StateRow | None, window: int) -> Continued:
    """What a training in that window takes of the newest version.

    A state continues the one before only if it was made by the same configuration.
    """
    over = Over.of(row.over)
    if latest is None or latest.manifest["config"] != row.config or over.word == "last":
        return Continued()
    if over.word != "rolling":
        return Continued(latest.digest, *latest.manifest["windows"])
    parts = tuple(
        (str(number), str(digest))
        for number, digest in latest.manifest.get("parts") or ()
        if over.weight(window - int(number)) > 0
    )
    newest = latest.manifest["windows"][1]
    return Continued(latest.digest, parts[0][0] if parts else None, newest, parts)


@dataclass(frozen=True)
class EarlierStates:
    """What a state is put together with: arrays and how much they count; and the last state, whose
    order it keeps.
    """

    counted: tuple[Weighted, ...]
    previous: Arrays | None

    def with_new(self, ptk: Ptk, arrays: Arrays) -> Arrays:
        """The state of all of it, the new arrays last."""
        if not self.counted and self.previous is None:
            return arrays
        return ptk.combined((*self.counted, (Fraction(1), arrays)), previous=self.previous)


def earlier_of(
    assigned: Assigned, window: int, get: Callable[[str], bytes]
) -> EarlierStates | None:
    """Read from the lake; None where training itself continues the last state, or nothing is
    continued.

    Parts are read one at a time, and added up at once.
    """
    over = Over.of(assigned.over)
    if not over.combines:
        return None
    if assigned.previous is None:
        return EarlierStates((), None)
    previous = safetensors.numpy.load(get(assigned.previous))
    if over.word == "decay":
        ago = window - int(assigned.previous_newest or window)
        return EarlierStates(((over.weight(ago), previous),), previous)
    if not assigned.parts:
        return EarlierStates((), previous)
    ptk = ptk_of(assigned.kind, assigned.config)
    loaded = ((Fraction(1), safetensors.numpy.load(get(digest))) for _, digest in assigned.parts)
    return EarlierStates(((Fraction(1), ptk.combined(loaded, previous=previous)),), previous)
