"""Over which windows the states of a PTK are: declared once, when it is registered.

========================  =========================================================================
``all``                   each state continues the one before: every window since the first counts
``last``                  each state is of its own window alone
``rolling:K``             each state is of the last K windows of the stream, this one included
``decay:F``               every window counts, F times as much as the one after it
========================  =========================================================================

What is put together are states, which are DP already: no choice costs more privacy than another.
Windows in which the PTK did not train are windows too: they make a rolling state one of fewer
trainings, and let older ones fade. `rolling` and `decay` need a kind whose states add up
(`Tags.combines`).

Reason: OVER_INVALID.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from ptklib.errors import InvalidInput

__all__ = ["ALL", "MOST_WINDOWS", "Over"]

ALL = "all"
# A state names the parts that it was made of.
MOST_WINDOWS = 1000
# Six decimals: what is less says no more than `last`, what is nearer to 1 no less than `all`.
_FINEST = 10**6
_FACTOR = re.compile(r"0?\.[0-9]{1,6}")
_WHOLE = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True)
class Over:
    """A choice. ``windows`` is that of rolling, ``factor`` that of decay."""

    word: Literal["all", "last", "rolling", "decay"] = "all"
    windows: int | None = None
    factor: Fraction | None = None

    def __post_init__(self) -> None:
        """Whatever the word asks for, and nothing else."""
        whole, factor = self.windows, self.factor
        if (whole is not None) != (self.word == "rolling") or (factor is not None) != (
            self.word == "decay"
        ):
            raise _invalid(self.word)
        if whole is not None and not 1 <= whole <= MOST_WINDOWS:
            raise _invalid(f"rolling:{whole}")
        if factor is not None and not (0 < factor < 1 and _FINEST % factor.denominator == 0):
            raise _invalid(f"decay:{factor}")

    @classmethod
    def of(cls, value: object) -> Over:
        """Read a text, or the form of a file: ``{rolling: 7}``."""
        if isinstance(value, Over):
            return value
        if isinstance(value, Mapping) and len(value) == 1:
            word, number = next(iter(value.items()))
            return cls._read(value, str(word), number)
        if isinstance(value, str):
            word, colon, text = value.partition(":")
            return cls._read(value, word, text if colon else None)
        raise _invalid(value)

    @classmethod
    def _read(cls, value: object, word: str, number: Any) -> Over:
        text = "" if number is None else str(number)
        if word == "rolling" and _WHOLE.fullmatch(text):
            return cls("rolling", windows=int(text))
        if word == "decay" and _FACTOR.fullmatch(text):
            return cls("decay", factor=Fraction(text))
        if word == "all" and number is None:
            return cls()
        if word == "last" and number is None:
            return cls("last")
        raise _invalid(value)

    @property
    def text(self) -> str:
        """The one spelling of it, as it is kept and sent."""
        if self.windows is not None:
            return f"rolling:{self.windows}"
        return self.word if self.factor is None else f"decay:{_shown(self.factor)}"

    @property
    def combines(self) -> bool:
        """True where states must add up."""
        return self.word in ("rolling", "decay")

    @property
    def words(self) -> str:
        """For people: the windows that a state speaks of."""
        if self.windows is not None:
            return f"the last {self.windows} windows" if self.windows > 1 else "the last window"
        if self.factor is not None:
            return f"all windows, each counting {_shown(self.factor)} of the one after it"
        return "all windows" if self.word == "all" else "the last window"

    def weight(self, windows_ago: int) -> Fraction:
        """How much a state of so many windows ago still counts; 0: not at all."""
        if self.factor is not None:
            return self.factor**windows_ago
        most = {"all": None, "last": 1}.get(self.word, self.windows)
        return Fraction(most is None or windows_ago < most)


def _shown(factor: Fraction) -> str:
    return f"{float(factor):.6f}".rstrip("0")


def _invalid(value: object) -> InvalidInput:
    return InvalidInput(
        "OVER_INVALID",
        f"over must be all, last, rolling:K (K from 1 to {MOST_WINDOWS} windows) or decay:F (F "
        f"between 0 and 1, at most six decimals), got {value!r:.80}",
        field="over",
    )
