"""A plan as a picture (SVG): partitions side by side, as wide as their samples; PTKs stacked in them, as tall as their demand.

The dashed line is the capacity; what is white below it is idle. Where some of a larger whole was spent before the plan, the
line is that whole, and the grey strip below it is what was spent. A PTK keeps its colour and, where it can, its height above
the ground, so one that spans partitions reads as one bar. Large plans stay readable and small: at most so many columns are
drawn, each as the partition in its middle, and PTKs that are too flat to see become one grey bar.
"""

from __future__ import annotations

from html import escape

from allocator.plan import Plan
from allocator.problem import Problem

__all__ = ["draw"]

_WIDTH, _HEIGHT = 960, 360
_LEFT, _TOP, _BOTTOM = 70, 48, 56
_COLUMNS = 320
_FLAT = 0.6
_NAMED = 26
_COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#86bcb6",
    "#d37295", "#a0cbe8",
)  # fmt: skip


def draw(problem: Problem, plan: Plan, *, ceiling: str | None = None, before: float = 0.0) -> str:
    """The SVG document. A plan that does not exist is a picture that says so.

    ``ceiling`` names the dashed line. ``before`` is the share of what it stands for that was spent before; the capacity of
    the problem is the rest.
    """
    if plan.total_samples is None:
        text = plan.explanation.text if plan.explanation else plan.status
        return _document([_text(_LEFT, _TOP + 20, f"{plan.status}: {text}", size=14)], 120)
    title = (
        f"{plan.status}: {plan.total_samples:,} samples, bound {plan.lower_bound:,}, gap {100 * (plan.gap or 0):.2f}%, "
        f"{len(plan.assignments):,} PTKs in {len(plan.partitions):,} partitions"
    )
    parts = [_text(_LEFT, 24, title, size=15)]
    bottom = _TOP + _HEIGHT
    parts.append(f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="#fff" stroke="#bbb"/>')
    strip = _HEIGHT * before
    if strip:
        parts.append(f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{strip:.2f}" fill="#bbb"/>')
    parts += _bars(problem, plan, _HEIGHT - strip)
    parts.append(
        f'<path d="M{_LEFT - 6} {_TOP}H{_LEFT + _WIDTH + 6}" stroke="#333" stroke-dasharray="6 4" fill="none"/>'
    )
    parts.append(_text(_LEFT - 8, _TOP + 4, ceiling or "capacity", size=11, anchor="end"))
    parts.append(_text(_LEFT - 8, bottom + 4, "0", size=11, anchor="end"))
    parts.append(_text(_LEFT, bottom + 18, "0", size=11, anchor="middle"))
    parts.append(_text(_LEFT + _WIDTH, bottom + 18, f"{plan.total_samples:,} samples", size=11, anchor="end"))
    used = sum(one.demand * one.samples for one in plan.partitions)
    whole = problem.capacity * plan.total_samples
    idle = 100 * (1 - used / whole) if whole else 0.0
    told = f"idle (white below the capacity): {idle:.1f}%"
    if strip:
        told = (
            f"idle (white): {idle:.1f}% of what was left; spent before on published counts (grey): {100 * before:.2g}%"
        )
    parts.append(_text(_LEFT, bottom + 40, told, size=12))
    return _document(parts, bottom + _BOTTOM)


def _bars(problem: Problem, plan: Plan, height: float) -> list[str]:
    """The capacity is so high."""
    columns = _columns(plan)
    scale = height / problem.capacity if problem.capacity else 0.0
    order = {
        one.id: k for k, one in enumerate(sorted(plan.assignments, key=lambda one: (-len(one.partitions), one.id)))
    }
    by_id = {one.id: one for one in plan.assignments}
    # By PTK and height above the ground: runs of columns become one rectangle.
    open_bars: dict[tuple[str, float, float], tuple[float, float]] = {}
    shapes: dict[int, list[str]] = {}
    named: list[str] = []

    def close(key: tuple[str, float, float]) -> None:
        name, low, tall = key
        begin, end = open_bars.pop(key)
        colour = -1 if not name else order[name] % len(_COLOURS)
        top = _TOP + _HEIGHT - low - tall
        shapes.setdefault(colour, []).append(f"M{begin:.1f} {top:.1f}H{end:.1f}V{top + tall:.1f}H{begin:.1f}Z")
        if name and tall >= 9 and end - begin >= 40 and len(plan.assignments) <= 200:
            named.append(_text(begin + 4, top + min(tall, 13) - 2, name[:_NAMED], size=9))

    for begin, end, place in columns:
        members = sorted(plan.partitions[place].members, key=lambda name: order[name])
        low, flat = 0.0, 0.0
        here: set[tuple[str, float, float]] = set()
        for name in members:
            tall = by_id[name].demand * scale
            if tall < _FLAT:
                flat += tall
                continue
            here.add((name, round(low, 2), round(tall, 2)))
            low += tall
        if flat >= 0.1:
            here.add(("", round(low, 2), round(flat, 2)))
        for key in [one for one in open_bars if one not in here]:
            close(key)
        for key in sorted(here):
            open_bars[key] = (open_bars[key][0] if key in open_bars else begin, end)
    for key in list(open_bars):
        close(key)
    found = [
        f'<path d="{"".join(shapes[colour])}" fill="{_COLOURS[colour] if colour >= 0 else "#999"}" '
        f'stroke="#fff" stroke-width="0.4" fill-opacity="0.85"/>'
        for colour in sorted(shapes)
    ]
    return [*found, *named]


def _columns(plan: Plan) -> list[tuple[float, float, int]]:
    """(from, to, partition) in pixels."""
    total = sum(one.samples for one in plan.partitions)
    if not total:
        return []
    ends, passed = [], 0
    for one in plan.partitions:
        passed += one.samples
        ends.append(passed)
    if len(ends) <= _COLUMNS:
        edges = [_LEFT, *(_LEFT + _WIDTH * end / total for end in ends)]
        return [(edges[k], edges[k + 1], k) for k in range(len(ends))]
    found, place = [], 0
    for column in range(_COLUMNS):
        middle = (2 * column + 1) * total / (2 * _COLUMNS)
        while ends[place] <= middle:
            place += 1
        step = _WIDTH / _COLUMNS
        found.append((_LEFT + column * step, _LEFT + (column + 1) * step, place))
    return found


def _text(x: float, y: float, text: str, *, size: int, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(parts: list[str], height: float) -> str:
    width = _LEFT + _WIDTH + 24
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}" '
        f'font-family="sans-serif" fill="#222">\n{body}\n</svg>\n'
    )
