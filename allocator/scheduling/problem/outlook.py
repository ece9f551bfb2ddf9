"""What is promised of a stream before it begins."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Outlook"]


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Each None where nothing is promised.

    ``requests``: how many will come in all. ``least_ratio`` and ``most_ratio``: between which the
    significance per unit of cost lies.
    """

    requests: int | None = None
    least_ratio: float | None = None
    most_ratio: float | None = None
