"""The picture of a plan as SVG: partitions are columns as wide as their samples, PTKs bars as tall
as what they use of the budget there, the dashed line is E, the strip below it is what the published
counts took before anybody trains, and what is hatched is idle.

`draw` makes an element inside a page. Its colours are classes of the page's style sheet, so that it
fits light and dark and needs no inline style. `document` makes the same picture as a file that
stands alone: with colours of its own, and the words that a page would have around it. Large plans
stay small: at most so many columns are drawn, each as the partition in its middle, and PTKs that
are too flat to see become one bar.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from ptkstore.api.views import PlanView
from ptkstore.drawing.plan_picture import PlanPicture, of_view
from ptkstore.drawing.style import standing_alone, text_part

__all__ = ["COLOURS", "HUES", "NARROW", "document", "draw", "hues_of", "idle_share"]

# What the classes k0 to k11 are where there is no style sheet.
COLOURS = (
    "#8bd0a3", "#89c5f7", "#e2b577", "#d9aae4", "#6cd1d1", "#f4a894", "#b1b7fa", "#bbc57d",
    "#72cce8", "#f3a4b5", "#77d2ba", "#eeae82",
)  # fmt: skip
HUES = len(COLOURS)
# For two pictures beside each other.
NARROW = 500.0
_WIDTH, _HEIGHT = 1000.0, 300.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 52.0, 22.0, 12.0, 40.0
_COLUMNS = 200
_FLAT = 0.8
_MOST_BARS = 400
_LETTER = 6.4
_STYLE = (
    ".ceiling{fill:none;stroke:#1d2521;stroke-width:1.5;stroke-dasharray:7 5}"
    ".before{fill:#8b8a80}.cut{stroke:#fff;stroke-width:2}"
    ".hatch{stroke:#dedcd3;stroke-width:1.5}"
    ".bar{stroke:#fff;stroke-width:1}path.bar{stroke-width:.3}.flat{fill:#8b8a80}"
    + "".join(f".k{number}{{fill:{colour}}}" for number, colour in enumerate(COLOURS))
)
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
    return of_view(plan, "0").idle


def hues_of(*plans: PlanView) -> dict[str, int]:
    """The colour of each PTK, the same in all of these plans."""
    return _hues(*(of_view(plan, "0") for plan in plans))


def draw(
    plan: PlanView,
    epsilon: str,
    *,
    width: float = _WIDTH,
    samples: int = 0,
    name: str = "hatch",
    hues: Mapping[str, int] | None = None,
) -> Markup:
    """The SVG element, or nothing for a plan without partitions. It is described by the table
    beside it.

    For several pictures on one page: ``samples`` is what the whole width stands for, where that is
    more than the plan holds; ``name`` is that of the pattern, which they do not share; ``hues`` are
    colours, which they do.
    """
    picture = of_view(plan, epsilon)
    if not picture.total:
        return Markup("")
    scale = _Scale(max(picture.total, samples), width)
    body = "".join(_parts(picture, scale, name, _hues(picture) if hues is None else hues))
    box = f'viewBox="0 0 {_LEFT + width + _RIGHT:g} {_TOP + _HEIGHT + _BOTTOM:g}"'
    label = escape(picture.title)
    # Texts were escaped where they were put in.
    return Markup(  # noqa: S704
        f'<svg class="plan-picture" {box} role="img" aria-label="{label}">{body}</svg>'
    )


def document(picture: PlanPicture) -> str:
    """The SVG file. A plan that does not exist is a picture that says so."""
    if not picture.total:
        return standing_alone([], headline=picture.headline, style="", width=_WIDTH, height=0)
    parts = _parts(picture, _Scale(picture.total, _WIDTH), "hatch", _hues(picture))
    return standing_alone(
        parts,
        headline=picture.headline,
        footline=picture.footline,
        style=_STYLE,
        width=_LEFT + _WIDTH + _RIGHT,
        height=_TOP + _HEIGHT + _BOTTOM,
    )


def _parts(
    picture: PlanPicture, scale: _Scale, name: str, hues: Mapping[str, int]
) -> Iterator[str]:
    bottom, right = _TOP + _HEIGHT, _LEFT + scale.width
    held, strip = scale.x(picture.total) - _LEFT, _HEIGHT * picture.spent_before
    yield (
        f'<defs><pattern id="{name}" width="7" height="7" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path class="hatch" d="M0 0V7"/></pattern></defs>'
    )
    yield (
        f'<rect class="idle" x="{_LEFT:g}" y="{_TOP:g}" width="{held:g}" height="{_HEIGHT:g}" '
        f'fill="url(#{name})"/>'
    )
    yield from _bars(picture, scale, hues)
    yield from _before(picture, held, strip)
    for x in _cuts(picture, scale):
        yield f'<path class="cut" d="M{x:.1f} {_TOP + strip:g}V{bottom:g}"/>'
    yield f'<path class="ceiling" d="M{_LEFT - 6:g} {_TOP:g}H{right + 6:g}"/>'
    yield f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{bottom:g}H{right:g}"/>'
    yield text_part(_LEFT - 10, _TOP + 4, picture.ceiling, "end")
    for share in (0.25, 0.5, 0.75):
        yield text_part(_LEFT - 10, bottom - _HEIGHT * share + 4, f"{share:.0%}", "end")
    yield text_part(_LEFT - 10, bottom + 4, "0", "end")
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        anchor = "start" if part == 0 else "end" if part == 1 else "middle"
        yield text_part(
            _LEFT + scale.width * part, bottom + 17, f"{scale.samples * part:,.0f}", anchor
        )
    yield text_part(_LEFT + scale.width / 2, bottom + 34, "samples", "middle")


def _hues(*pictures: PlanPicture) -> dict[str, int]:
    named = dict.fromkeys(
        picture.bars[place].name for picture in pictures for place in picture.order()
    )
    return {name: number % HUES for number, name in enumerate(named)}


def _before(picture: PlanPicture, width: float, strip: float) -> list[str]:
    """What was spent before the plan, as a strip below E, and its name above."""
    if not strip:
        return []
    told = f"published counts: {picture.spent_before:.2%} of E"
    shape = (
        f'<rect class="before" x="{_LEFT:g}" y="{_TOP:g}" width="{width:g}" height="{strip:.1f}"/>'
    )
    return [f"<g><title>{told}</title>{shape}</g>", text_part(_LEFT + width, _TOP - 7, told, "end")]


def _bars(picture: PlanPicture, scale: _Scale, hues: Mapping[str, int]) -> list[str]:
    """Runs of columns in which a PTK stands at the same height are one bar."""
    columns = _columns(picture, scale)
    wanted = {place for _, _, place in columns}
    members: dict[int, list[int]] = defaultdict(list)
    for k in picture.order():
        for place in picture.bars[k].partitions:
            if place in wanted:
                members[place].append(k)
    running: dict[_Bar, tuple[float, float]] = {}
    done: list[tuple[_Bar, float, float]] = []
    for begin, end, place in columns:
        here = _stack(picture, members[place])
        done += [(bar, *running.pop(bar)) for bar in list(running) if bar not in here]
        for bar in here:
            running[bar] = (running[bar][0] if bar in running else begin, end)
    done += [(bar, *edges) for bar, edges in running.items()]
    return _shapes(picture, done, hues)


def _stack(picture: PlanPicture, members: list[int]) -> list[_Bar]:
    """The bars of one partition, from the ground up; -1 is all that are too flat."""
    low, flat, bars = 0.0, 0.0, []
    for k in members:
        tall = picture.bars[k].used * _HEIGHT * (1 - picture.spent_before)
        if tall < _FLAT:
            flat += tall
            continue
        bars.append((k, round(low, 1), round(tall, 1)))
        low += tall
    if flat >= 0.2:
        bars.append((-1, round(low, 1), round(flat, 1)))
    return bars


def _shapes(
    picture: PlanPicture, done: list[tuple[_Bar, float, float]], hues: Mapping[str, int]
) -> list[str]:
    if len(done) > _MOST_BARS:
        paths: dict[str, list[str]] = defaultdict(list)
        for (k, low, tall), begin, end in done:
            name = f"k{hues[picture.bars[k].name]}" if k >= 0 else "flat"
            top = _TOP + _HEIGHT - low - tall
            paths[name].append(f"M{begin:.1f} {top:.1f}H{end:.1f}v{tall:.1f}H{begin:.1f}Z")
        return [f'<path class="bar {name}" d="{"".join(paths[name])}"/>' for name in sorted(paths)]
    shapes = []
    for (k, low, tall), begin, end in sorted(done, key=lambda placed: (placed[1], placed[0][1])):
        top, wide = _TOP + _HEIGHT - low - tall, end - begin
        where = f'x="{begin:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
        if k < 0:
            shapes.append(f'<rect class="bar flat" {where}/>')
            continue
        line = picture.bars[k]
        shapes.append(
            f'<g><title>{escape(line.told)}</title><rect class="bar k{hues[line.name]}" {where}/>'
        )
        room = int((wide - 12) / _LETTER)
        if tall >= 15 and room >= 4:
            name = line.name if len(line.name) <= room else line.name[: room - 1] + "…"
            shapes.append(
                text_part(begin + 6, top + min(tall / 2 + 4, 16.0), name, "start", "name")
            )
        shapes.append("</g>")
    return shapes


def _columns(picture: PlanPicture, scale: _Scale) -> list[tuple[float, float, int]]:
    """(from, to, partition)."""
    ends, passed = list[int](), 0
    for samples in picture.samples:
        passed += samples
        ends.append(passed)
    if len(ends) <= _COLUMNS:
        edges = [_LEFT, *(scale.x(end) for end in ends)]
        return [(edges[k], edges[k + 1], k) for k in range(len(ends))]
    columns, place = [], 0
    for column in range(_COLUMNS):
        while ends[place] <= (2 * column + 1) * passed / (2 * _COLUMNS):
            place += 1
        begin, end = (scale.x(passed * edge / _COLUMNS) for edge in (column, column + 1))
        columns.append((begin, end, place))
    return columns


def _cuts(picture: PlanPicture, scale: _Scale) -> list[float]:
    """Where partitions meet, while there are few enough to see."""
    return (
        [begin for begin, _, _ in _columns(picture, scale)[1:]]
        if len(picture.samples) <= 60
        else []
    )
