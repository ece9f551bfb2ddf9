"""One PTK of a plan, as it is written into the cycle."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ptkstore.api.over import ALL

__all__ = ["Assigned"]


@dataclass(frozen=True)
class Assigned:
    """One PTK of a plan, as it is written into the cycle: enough to reserve, train and certify it
    after a restart.
    """

    ptk: int
    name: str
    kind: str
    config: dict[str, Any]
    epsilon: str
    delta: str
    samples: int
    target: float
    ranges: tuple[tuple[int, int], ...]
    previous: str | None
    previous_oldest: str | None
    version: int
    # What a worker may need to train it. None in cycles that were planned before memory was set
    # aside.
    memory_bytes: int | None = None
    # The epsilon and samples that would have been enough; None where it gets no more than these.
    minimum: dict[str, Any] | None = None
    # The windows that its state will be over; the newest that the one before speaks of; and what
    # that one was put together of (`ptkstore.engine.window.continuing`).
    over: str = ALL
    # Published only if its own test accepts (`ptkstore.engine.profiles.on_trial`).
    on_trial: bool = False
    previous_newest: str | None = None
    parts: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; tags as texts, for they do not fit doubles."""
        body = asdict(self) | {"ranges": [[str(start), str(stop)] for start, stop in self.ranges]}
        # As it is in cycles from before there were such fields.
        if self.minimum is None:
            del body["minimum"]
        if not self.on_trial:
            del body["on_trial"]
        body["parts"] = [list(part) for part in self.parts]
        if self.over == ALL:
            for name in ("over", "previous_newest", "parts"):
                del body[name]
        return body

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Assigned:
        """Read `as_json` back."""
        ranges = tuple((int(start), int(stop)) for start, stop in body["ranges"])
        parts = tuple((window, digest) for window, digest in body.get("parts", ()))
        return cls(**(body | {"ranges": ranges, "parts": parts}))
