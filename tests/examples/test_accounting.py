"""The pictures of what trainings cost are those that the code draws."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from examples.accounting import FOLDER, PICTURES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_up_to_date(name: str) -> None:
    """`python -m examples.accounting` makes them again."""
    drawn = PICTURES[name]()
    ElementTree.fromstring(drawn)
    assert (ROOT / FOLDER / f"{name}.svg").read_text(encoding="utf-8") == drawn


def test_there_is_no_other_picture() -> None:
    kept = {path.stem for path in (ROOT / FOLDER).glob("*.svg")}
    assert kept == set(PICTURES)
