"""What would admit a PTK, or give a plan where there is none: single changes, as data.

A `Remedy` names one change that is known to be enough. ``text`` is for people and is never read
back; programs look at the rest:

============  =====  ====================  ====================================================
kind          ptk    field                 value
============  =====  ====================  ====================================================
epsilon              epsilon               the E that the levels of now would fit into, as exact
                                           text; None where amounts of the composition are no
                                           sums of epsilons
epsilon       whose  epsilon               the largest epsilon in thousandths that one of best
                                           effort may state
n_max                n_max                 the samples to hold at most
target        whose  target                the tightest target in thousandths that would do,
                                           None where that was not worked out
remove        whom                         None
records                                    the records that a window must have
memory_bytes         workers.memory_bytes  the memory that a worker must have
advice                                     None: words only, such as those that an older store
                                           has kept
============  =====  ====================  ====================================================

Errors carry remedies as the detail ``remedies``: see `remedies_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ptklib.errors import SageError

__all__ = ["ADVICE", "Remedy", "known_remedies", "remedies_of"]

ADVICE = "advice"


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """One change that would help; see the module for what the fields mean together."""

    kind: str
    text: str
    ptk: str | None = None
    field: str = ""
    value: int | float | str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "kind": self.kind,
            "ptk": self.ptk,
            "field": self.field,
            "value": self.value,
            "text": self.text,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Remedy:
        """Read `as_json` back."""
        return cls(**body)


def known_remedies(remedies: Iterable[Remedy], texts: Sequence[str]) -> tuple[Remedy, ...]:
    """What is known as data; the words alone where an older release has told nothing else."""
    return tuple(remedies) or tuple(Remedy(kind=ADVICE, text=text) for text in texts)


def remedies_of(error: SageError) -> tuple[Remedy, ...]:
    """What would help, as far as an error says so."""
    told = error.details.get("remedies")
    bodies = told if isinstance(told, list | tuple) else ()
    return tuple(Remedy.from_json(body) for body in bodies if isinstance(body, dict))
