"""The table of deliberate errors fits the code, and the page about it fits the table.

Running it is `make mutations`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from tests.mutations import MUTATIONS
from tests.mutations.mutation import misfits
from tests.mutations.running import ROOT

PAGE = ROOT / "docs" / "internals" / "mutations.md"
ONE = MUTATIONS[0]


def test_the_table_fits_the_code() -> None:
    assert misfits(ROOT, MUTATIONS) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (replace(ONE, name="x", old="no line of this"), "found 0 times"),
        (replace(ONE, name="x", old="return"), "found [0-9]+ times"),
        (replace(ONE, name="x", new="(" * 3), "no Python"),
        (replace(ONE, name="x", new=ONE.old), "nothing would change"),
        (replace(ONE, name="x", test="tests/test_mutations.py::test_nothing"), "there is no test"),
        (ONE, "2 of this name"),
    ],
)
def test_what_does_not_fit_is_told(wrong: object, words: str) -> None:
    (told,) = misfits(ROOT, [ONE, wrong])  # type: ignore[list-item]
    assert re.search(words, told), told


def test_all_that_keeps_the_promise_is_mutated() -> None:
    assert len(MUTATIONS) >= 200
    parts = Counter(one.path.partition("/")[0] for one in MUTATIONS)
    assert set(parts) == {"ptklib", "profiler", "ptkstore"}
    assert min(parts.values()) >= 20, parts
