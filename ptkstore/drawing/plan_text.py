"""A plan as a picture of characters: partitions side by side, as wide as their samples; PTKs
stacked, as high as they use.

Each PTK has a letter; a dot is budget that stays idle. The top is E; what the published counts took
of it before anybody trains is at the top where it is high enough to be seen, and in words always.
"""

from __future__ import annotations

from ptkstore.api.views import PlanLine, PlanView

__all__ = ["draw_plan"]

_WIDTH, _HEIGHT = 72, 12
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MANY, _IDLE, _BEFORE = "#", ".", "="


def draw_plan(plan: PlanView, *, width: int = _WIDTH, height: int = _HEIGHT) -> str:
    """The picture, or nothing where there is no plan."""
    total = sum(partition.samples for partition in plan.partitions)
    if not total:
        return ""
    lines = sorted(plan.lines, key=lambda line: (-len(line.partitions), -line.samples, line.ptk))
    letters = {
        line.ptk: _LETTERS[place] if place < len(_LETTERS) else _MANY
        for place, line in enumerate(lines)
    }
    before = plan.spent_before or 0.0
    top = int((1 - before) * height + 0.5)
    columns = [
        _column(lines, letters, place, (1 - before) * height)
        .ljust(top, _IDLE)
        .ljust(height, _BEFORE)
        for place in _places(plan, total, width)
    ]
    rows = ["".join(column[height - 1 - row] for column in columns) for row in range(height)]
    named = ", ".join(f"{letters[line.ptk]} {line.ptk}" for line in lines[: len(_LETTERS)])
    more = f", {_MANY} {len(lines) - len(_LETTERS)} more" if len(lines) > len(_LETTERS) else ""
    idle = 1 - sum(partition.samples * partition.used for partition in plan.partitions) / total
    end = f"{total} samples"
    label = "budget" if plan.spent_before is None else "E"
    counts = (
        f"; {_BEFORE if top < height else 'not drawn:'} published counts ({before:.2%} of E)"
        if before
        else ""
    )
    return "\n".join(
        [
            *(f"{label if not number else '':>6} |{row}|" for number, row in enumerate(rows)),
            f"{'':6} 0{'-' * (width - len(end) + 1)}{end}",
            f"{named}{more}; {_IDLE} idle ({100 * idle:.1f}%){counts}",
        ]
    )


def _places(plan: PlanView, total: int, width: int) -> list[int]:
    """The partition at the middle of each column."""
    places, place, passed = [], 0, plan.partitions[0].samples
    for column in range(width):
        while (2 * column + 1) * total > 2 * width * passed and place + 1 < len(plan.partitions):
            place += 1
            passed += plan.partitions[place].samples
        places.append(place)
    return places


def _column(lines: list[PlanLine], letters: dict[str, str], place: int, height: float) -> str:
    """From the ground up: each cell shows who covers its middle."""
    column, reached = "", 0.0
    for line in lines:
        if place in line.partitions:
            reached += line.used
            column += letters[line.ptk] * (int(min(1.0, reached) * height + 0.5) - len(column))
    return column
