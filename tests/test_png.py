"""Pictures as PNG: the shapes and the words of the SVG, twice as large, or an error that says what
is missing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import resvg_py

from allocator.problem import Option, Problem, PtkOptions
from allocator.solving.solve import solve
from ptklib.errors import SageError
from ptkstore.drawing import png
from ptkstore.drawing.plan_picture import of_plan
from ptkstore.drawing.plan_svg import COLOURS, document
from tests.pixels import pixels

PROBLEM = Problem(
    10, None, tuple(PtkOptions(f"p{k}", (Option("0.1", 5, 100 + 40 * k),)) for k in range(4))
)


@pytest.fixture(autouse=True)
def _fonts() -> Iterator[None]:
    png._family.cache_clear()
    yield
    png._family.cache_clear()


def test_it_has_the_size_the_shapes_and_the_words_of_the_svg() -> None:
    svg = document(of_plan(PROBLEM, solve(PROBLEM)))
    size = re.search(r'width="(\d+)" height="(\d+)"', svg)
    assert size is not None
    found = pixels(png.png_of(svg))
    assert found.shape == (2 * int(size[2]), 2 * int(size[1]), 3)
    assert (found[0, 0] == 255).all()
    moved = re.search(r'<g transform="translate\((\d+) (\d+)\)">', svg)
    assert moved is not None
    right, down = int(moved[1]), int(moved[2])
    # Each bar is its colour where the SVG has it: in the middle, and a little left of it, where
    # partitions that meet there are not cut.
    bars = re.findall(
        r'class="bar k(\d+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', svg
    )
    assert len(bars) == 5  # one of the four PTKs lies in two pieces
    for hue, *numbers in bars:
        left, top, wide, tall = map(float, numbers)
        x, y = round(2 * (right + left + 0.45 * wide)), round(2 * (down + top + tall / 2))
        colour = COLOURS[int(hue)]
        pure = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
        assert np.abs(found[y, x] - pure).max() < 2
    without = pixels(png.png_of(re.sub(r"<text[^>]*>.*?</text>", "", svg)))
    changed = (found != without).any(axis=2)
    names = re.findall(r'<text class="name" x="([\d.]+)" y="([\d.]+)" text-anchor="start"', svg)
    assert len(names) == 5
    for across, base in names:
        x, y = round(2 * (right + float(across))), round(2 * (down + float(base)))
        assert changed[y - 20 : y + 2, x : x + 40].sum() > 20


def test_the_reader_of_pixels_reads_every_kind_of_line() -> None:
    """A slope in two directions is packed with other filters than flat colours are; both are as
    they were drawn.
    """
    slope = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><defs><linearGradient id="g" x2="1" y2="1">'
        '<stop stop-color="#000"/><stop offset="1" stop-color="#fff"/></linearGradient></defs>'
        '<rect width="60" height="40" fill="url(#g)"/></svg>'
    )
    found = pixels(png.png_of(slope)).astype(int)
    steps = np.diff(found[:, :, 0], axis=1)
    assert found[0, 0, 0] < 3
    assert found[-1, -1, 0] > 252
    assert steps.min() >= 0
    assert steps.max() <= 3


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert not png.can_draw_png()
    with pytest.raises(SageError, match=r"pip install 'ptkstore\[png\]'") as raised:
        png.png_of("<svg/>")
    assert raised.value.reason == "PACKAGE_MISSING"


def test_without_a_font_there_is_no_picture_without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        resvg_py, "svg_to_bytes", partial(resvg_py.svg_to_bytes, skip_system_fonts=True)
    )
    with pytest.raises(SageError, match="fonts-dejavu-core") as raised:
        png.png_of(document(of_plan(PROBLEM, solve(PROBLEM))))
    assert raised.value.reason == "FONT_MISSING"
