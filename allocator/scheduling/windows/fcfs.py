"""First come, first served: what fits when it can first be granted."""

from __future__ import annotations

from allocator.scheduling.windows.stage import WindowStage

__all__ = ["FirstComeWindows"]


class FirstComeWindows:
    """Who does not fit at once never will: capacities only shrink."""

    name = "fcfs"

    def act(self, stage: WindowStage, came: int | None, leaving: int | None) -> None:
        """Grant who came; where a block came, who waited for it."""
        if came is not None:
            stage.grant(came)
        elif leaving is None:
            for task in list(stage.waiting):
                stage.grant(task)

    def end(self, stage: WindowStage) -> None:
        """Nobody is left who fits."""
