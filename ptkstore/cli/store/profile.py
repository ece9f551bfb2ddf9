"""``sage ptk profile`` and ``sage research profile``: the samples a PTK needs, with privacy and, on
public data, without.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, moment, show
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

if TYPE_CHECKING:
    from profiler.analytic import Profile
    from ptkstore.api.views import ProfileView

__all__ = ["draw", "drawn", "profile", "research"]

_SVG = click.option(
    "--svg", type=click.Path(path_type=Path), metavar="FILE", help="Draw it into this file."
)


@click.command()
@click.argument("name")
@click.option(
    "--levels", metavar="LIST", help="Epsilons, with commas between. [default: the stream's grid]"
)
@click.option(
    "--renew", is_flag=True, help="Ask for a new one: it is measured when the next window closes."
)
@_SVG
@shared_options
@pass_session
def profile(
    session: Invocation, name: str, levels: str | None, renew: bool, svg: Path | None
) -> None:
    """Show how many samples a PTK needs.

    One number for each privacy level: from a closed form, or measured with DP when a window closed.
    A PTK without either is profiled in the next window. Reads no data and spends nothing. With
    --renew the next window measures it again, at the price of a profile; until then the old one
    counts.

    \b
    Examples:
      sage ptk profile hour-speed
      sage ptk profile hour-speed --levels 0.05,0.1,0.5 --svg hour-speed.svg
      sage ptk profile hour-speed --renew
    """
    with opened(session) as store:
        if renew:
            store.renew_profile(name)
        view = store.profile(name, _list(levels))
    if svg is not None:
        draw(view, svg)
    rows = [
        (
            measurement["level"],
            measurement["status"],
            measurement["samples"],
            measurement["estimate"],
            _ends(measurement.get("band")),
            measurement.get("trainings", sum("/train-" in each for each in measurement["charged"])),
        )
        for measurement in view.measured
    ]
    made = (
        f"measured {moment(view.made_ms)}, {view.trainings} DP trainings" if view.measured else ""
    )
    if view.measured and view.reason:
        made += f"; {view.reason}"
    if renew and view.source == "analytic":
        made = "a closed form is made anew whenever it is asked for: there is nothing to measure"
    columns = ("measured epsilon", "result", "samples", "estimate", "95% band", "trainings")
    show(session, view, drawn(view), made, Table(columns, rows))


@click.group(cls=LazyGroup)
@shared_options
def research() -> None:
    """Look at public data without privacy.

    \b
    Example:
      sage research profile rides.parquet --kind statistics --config @speed.json
    """


@research.command("profile")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--kind", required=True, help="An installed kind, such as statistics.")
@click.option(
    "--config",
    required=True,
    metavar="JSON|@FILE",
    help="Its configuration, or the file that holds it.",
)
@click.option(
    "--samples",
    default="100,300,1000,3000",
    show_default=True,
    metavar="LIST",
    help="Sizes to train on.",
)
@click.option(
    "--levels",
    default="0.1,0.3,1",
    show_default=True,
    metavar="LIST",
    help="Epsilons to train with.",
)
@click.option(
    "--repeats", default=3, show_default=True, type=click.IntRange(min=1), help="Trainings of each."
)
@click.option("--stream", metavar="STREAM", help="Always refused: streams are protected.")
@_SVG
@shared_options
@pass_session
def research_profile(
    session: Invocation,
    file: Path,
    kind: str,
    config: str,
    samples: str,
    levels: str,
    repeats: int,
    stream: str | None,
    svg: Path | None,
) -> None:
    """Draw losses of a PTK without privacy.

    NOT PRIVATE: trains on parts of FILE and reads the real losses. For public or invented data
    only; a stream of a store is refused.

    \b
    Example:
      sage research profile rides.parquet --kind statistics --config @speed.json --svg speed.svg
    """
    from profiler.research import research_profile as measured
    from ptklib import registry
    from ptkstore.cli.files import read_table
    from ptkstore.cli.store.ptk import config_of
    from ptkstore.drawing.research_svg import research_svg

    ptk = registry.make(kind, config_of(config))
    sizes = [int(number) for number in _numbers(samples)]
    delta = "1e-6" if ptk.tags.needs_delta else 0
    table = None if stream is not None else read_table(file)
    research_points = measured(
        ptk, table, samples=sizes, levels=_list(levels), delta=delta, repeats=repeats, stream=stream
    )
    if svg is not None:
        svg.write_text(research_svg(research_points, title=f"{kind}: loss by samples, not private"))
    rows = [
        (research_point.epsilon, research_point.samples, research_point.loss, research_point.spread)
        for research_point in research_points
    ]
    body = [
        {
            "epsilon": research_point.epsilon,
            "samples": research_point.samples,
            "loss": research_point.loss,
            "spread": research_point.spread,
        }
        for research_point in research_points
    ]
    show(
        session,
        body,
        "NOT PRIVATE: real losses of public data",
        Table(("epsilon", "samples", "loss", "spread"), rows),
    )


def drawn(view: ProfileView) -> str:
    """The profile as characters, or what it waits for."""
    from ptkstore.drawing.profile_text import profile_text

    if view.source == "none":
        told = f" ({view.reason})" if view.reason else ""
        if view.needed_records is None:
            (least,) = view.samples
            return f"no profile{told}: epsilon {view.levels[0]}, on {least} samples at least"
        needed = f"up to 4,096 samples it would take {view.needed_records:,} records of a window's profile slice"
        return f"no profile yet{told}: {needed}"
    return profile_text(_profile(view))


def draw(view: ProfileView, path: Path) -> None:
    """The profile as SVG."""
    from ptkstore.drawing.profile_svg import document

    path.write_text(document(view), encoding="utf-8")


def _ends(band: list[int] | None) -> str:
    return "" if band is None else f"{band[0]:,} to {band[1]:,}"


def _profile(view: ProfileView) -> Profile:
    from profiler.analytic import Profile

    body = {
        "levels": list(view.levels),
        "samples": list(view.samples),
        "promised": view.promised or "1",
        "confidence": view.confidence or "0.95",
        "source": view.source,
        "ptk_id": view.ptk,
    }
    return Profile.from_json(body)


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _numbers(text: str) -> list[str]:
    numbers = _list(text)
    if not numbers or not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise click.UsageError(
            f"--samples must be positive whole numbers with commas between, got {text!r:.60}"
        )
    return numbers
