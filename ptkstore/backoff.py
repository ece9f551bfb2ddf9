"""How long to wait before another try: longer and longer up to a limit, and never the same for two
who lost the same server.

A `Backoff` is a value and sleeps nowhere: its users count their failures, wait in their own way (on
an event that ends them, until a deadline, by a row that says when) and decide when to give up.
Reason: VALUE_INVALID.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ptklib.errors import InvalidInput

__all__ = ["SERVER_AWAY", "Backoff"]

# Doublings beyond this many reach every limit that is finite, and floats end at 1024.
_MOST_DOUBLINGS = 1000


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Delays that double from the first to the longest; ``jitter`` is the share of each that is
    left to chance.
    """

    first_seconds: float
    longest_seconds: float
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Delays are positive and grow."""
        if not 0 < self.first_seconds <= self.longest_seconds or not 0 <= self.jitter <= 1:
            raise InvalidInput(
                "VALUE_INVALID",
                "delays must be positive, the first not above the longest, jitter from 0 to 1: "
                f"got {self.first_seconds}, {self.longest_seconds} and {self.jitter}",
            )

    def most_seconds(self, failures: int) -> float:
        """The longest wait after so many failures in a row; the first failure is 1."""
        doublings = min(max(failures, 1) - 1, _MOST_DOUBLINGS)
        return min(self.longest_seconds, self.first_seconds * 2.0**doublings)

    def seconds(self, failures: int) -> float:
        """How long to wait after so many failures in a row, with jitter."""
        chance = self.jitter * random.random()  # noqa: S311
        return self.most_seconds(failures) * (1 - chance)


# For a server, a disk or a database that is away for a moment.
SERVER_AWAY = Backoff(first_seconds=0.1, longest_seconds=2.0)
