"""A state follows from the releases of its training: told the same, two neighbours come to the same state, in every kind."""

from __future__ import annotations

import pytest

from ptklib.auditing.examples import example_ptks
from ptklib.auditing.kinds import ptk_subject
from ptklib.auditing.running import FAILED, audit


@pytest.mark.parametrize("name", list(example_ptks()))
def test_refused_or_holds(name: str) -> None:
    (found,) = audit([ptk_subject(name, example_ptks()[name])], runs=1_000)
    assert found.verdict != FAILED, found.problem
    assert found.bound <= found.claim.epsilon, found
