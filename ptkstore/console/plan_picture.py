"""The picture of a plan as SVG inside a page: partitions are columns as wide as their samples, PTKs bars as tall as what they
use of the budget there, the dashed line is E, the strip below it is what the published counts took before anybody trains,
and what is hatched is idle.

Colours are classes of the style sheet, so that it fits light and dark and needs no inline style. Large plans stay small: at
most so many columns are drawn, each as the partition in its middle, and PTKs that are too flat to see become one bar.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from ptkstore.views import PlanView

__all__ = ["HUES", "NARROW", "draw", "hues_of", "idle_share"]

HUES = 12
# For two pictures beside each other.
NARROW = 500.0
_WIDTH, _HEIGHT = 1000.0, 300.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 52.0, 22.0, 12.0, 40.0
_COLUMNS = 200
_FLAT = 0.8
_MOST_BARS = 400
_LETTER = 6.4
_Bar = tuple[int, float, float]


@dataclass(frozen=True)
class _Scale:
    """So many samples are so wide."""

    samples: int
    width: float

    def x(self, samples: float) -> float:
        """Where that many samples end."""
        return _LEFT + self.width * samples / self.samples


def idle_share(plan: PlanView) -> float | None:
    """What of the budget nobody uses, over all samples of the plan."""
    total = sum(one.samples for one in plan.partitions)
    if not total:
        return None
    return max(0.0, 1 - sum(one.used * one.samples for one in plan.partitions) / total)


def hues_of(*plans: PlanView) -> dict[str, int]:
    """The colour of each PTK, the same in all of these plans."""
    named = dict.fromkeys(plan.lines[k].ptk for plan in plans for k in _order(plan))
    return {name: number % HUES for number, name in enumerate(named)}


def draw(
    plan: PlanView,
    epsilon: str,
    *,
    width: float = _WIDTH,
    samples: int = 0,
    name: str = "hatch",
    hues: Mapping[str, int] | None = None,
) -> Markup:
    """The SVG element, or nothing for a plan without partitions. It is described by the table beside it.

    For several pictures on one page: ``samples`` is what the whole width stands for, where that is more than the plan holds;
    ``name`` is that of the pattern, which they do not share; ``hues`` are colours, which they do.
    """
    total = sum(one.samples for one in plan.partitions)
    if not total:
        return Markup("")
    scale = _Scale(max(total, samples), width)
    bottom, right, held = _TOP + _HEIGHT, _LEFT + width, width * total / scale.samples
    strip = _HEIGHT * (plan.spent_before or 0.0)
    ceiling = f"E = {float(epsilon):.4g}" if plan.spent_before is not None else "rest of E"
    parts = [
        f'<rect class="idle" x="{_LEFT:g}" y="{_TOP:g}" width="{held:g}" height="{_HEIGHT:g}" fill="url(#{name})"/>',
        *_bars(plan, scale, hues_of(plan) if hues is None else hues),
        *_before(plan, held, strip),
        *(f'<path class="cut" d="M{x:.1f} {_TOP + strip:g}V{bottom:g}"/>' for x in _cuts(plan, scale)),
        f'<path class="ceiling" d="M{_LEFT - 6:g} {_TOP:g}H{right + 6:g}"/>',
        f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{bottom:g}H{right:g}"/>',
        _text(_LEFT - 10, _TOP + 4, ceiling, "end"),
        *(_text(_LEFT - 10, bottom - _HEIGHT * share + 4, f"{share:.0%}", "end") for share in (0.25, 0.5, 0.75)),
        _text(_LEFT - 10, bottom + 4, "0", "end"),
    ]
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        anchor = "start" if part == 0 else "end" if part == 1 else "middle"
        parts.append(_text(_LEFT + width * part, bottom + 17, f"{scale.samples * part:,.0f}", anchor))
    parts.append(_text(_LEFT + width / 2, bottom + 34, "samples", "middle"))
    title = f"Plan of {plan.stream}: {len(plan.lines):,} PTKs in {len(plan.partitions):,} partitions, {total:,} samples"
    hatch = (
        f'<defs><pattern id="{name}" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path class="hatch" d="M0 0V7"/></pattern></defs>'
    )
    body = "".join(parts)
    box = f'viewBox="0 0 {right + _RIGHT:g} {bottom + _BOTTOM:g}"'
    # Texts were escaped where they were put in.
    return Markup(f'<svg class="plan-picture" {box} role="img" aria-label="{escape(title)}">{hatch}{body}</svg>')  # noqa: S704


def _before(plan: PlanView, width: float, strip: float) -> list[str]:
    """What was spent before the plan, as a strip below E, and its name above."""
    if not strip:
        return []
    told = f"published counts: {plan.spent_before:.2%} of E"
    shape = f'<rect class="before" x="{_LEFT:g}" y="{_TOP:g}" width="{width:g}" height="{strip:.1f}"/>'
    return [f"<g><title>{told}</title>{shape}</g>", _text(_LEFT + width, _TOP - 7, told, "end")]


def _order(plan: PlanView) -> list[int]:
    """Those that span most come first, at the bottom, so that they read as one bar."""
    return sorted(range(len(plan.lines)), key=lambda k: (-len(plan.lines[k].partitions), plan.lines[k].ptk))


def _bars(plan: PlanView, scale: _Scale, hues: Mapping[str, int]) -> list[str]:
    """Runs of columns in which a PTK stands at the same height are one bar."""
    columns = _columns(plan, scale)
    wanted = {place for _, _, place in columns}
    members: dict[int, list[int]] = defaultdict(list)
    for k in _order(plan):
        for place in plan.lines[k].partitions:
            if place in wanted:
                members[place].append(k)
    running: dict[_Bar, tuple[float, float]] = {}
    done: list[tuple[_Bar, float, float]] = []
    for begin, end, place in columns:
        here = _stack(plan, members[place])
        done += [(bar, *running.pop(bar)) for bar in list(running) if bar not in here]
        for bar in here:
            running[bar] = (running[bar][0] if bar in running else begin, end)
    done += [(bar, *edges) for bar, edges in running.items()]
    return _shapes(plan, done, hues)


def _stack(plan: PlanView, members: list[int]) -> list[_Bar]:
    """The bars of one partition, from the ground up; -1 is all that are too flat."""
    low, flat, found = 0.0, 0.0, []
    for k in members:
        tall = plan.lines[k].used * _HEIGHT * (1 - (plan.spent_before or 0.0))
        if tall < _FLAT:
            flat += tall
            continue
        found.append((k, round(low, 1), round(tall, 1)))
        low += tall
    if flat >= 0.2:
        found.append((-1, round(low, 1), round(flat, 1)))
    return found


def _shapes(plan: PlanView, done: list[tuple[_Bar, float, float]], hues: Mapping[str, int]) -> list[str]:
    if len(done) > _MOST_BARS:
        paths: dict[str, list[str]] = defaultdict(list)
        for (k, low, tall), begin, end in done:
            name = f"k{hues[plan.lines[k].ptk]}" if k >= 0 else "flat"
            top = _TOP + _HEIGHT - low - tall
            paths[name].append(f"M{begin:.1f} {top:.1f}H{end:.1f}v{tall:.1f}H{begin:.1f}Z")
        return [f'<path class="bar {name}" d="{"".join(paths[name])}"/>' for name in sorted(paths)]
    shapes = []
    for (k, low, tall), begin, end in sorted(done, key=lambda one: (one[1], one[0][1])):
        top, wide = _TOP + _HEIGHT - low - tall, end - begin
        where = f'x="{begin:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
        if k < 0:
            shapes.append(f'<rect class="bar flat" {where}/>')
            continue
        line = plan.lines[k]
        told = f"{line.ptk}: epsilon {float(line.epsilon):.4g} on {line.samples:,} samples"
        shapes.append(f'<g><title>{escape(told)}</title><rect class="bar k{hues[line.ptk]}" {where}/>')
        room = int((wide - 12) / _LETTER)
        if tall >= 15 and room >= 4:
            name = line.ptk if len(line.ptk) <= room else line.ptk[: room - 1] + "…"
            shapes.append(_text(begin + 6, top + min(tall / 2 + 4, 16.0), name, "start", "name"))
        shapes.append("</g>")
    return shapes


def _columns(plan: PlanView, scale: _Scale) -> list[tuple[float, float, int]]:
    """(from, to, partition)."""
    ends, passed = [], 0
    for one in plan.partitions:
        passed += one.samples
        ends.append(passed)
    if len(ends) <= _COLUMNS:
        edges = [_LEFT, *(scale.x(end) for end in ends)]
        return [(edges[k], edges[k + 1], k) for k in range(len(ends))]
    found, place = [], 0
    for column in range(_COLUMNS):
        while ends[place] <= (2 * column + 1) * passed / (2 * _COLUMNS):
            place += 1
        begin, end = (scale.x(passed * edge / _COLUMNS) for edge in (column, column + 1))
        found.append((begin, end, place))
    return found


def _cuts(plan: PlanView, scale: _Scale) -> list[float]:
    """Where partitions meet, while there are few enough to see."""
    return [begin for begin, _, _ in _columns(plan, scale)[1:]] if len(plan.partitions) <= 60 else []


def _text(x: float, y: float, text: str, anchor: str, name: str = "label") -> str:
    return f'<text class="{name}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
