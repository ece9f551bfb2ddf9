"""A run multiplies with one thread, and leaves the libraries as they were."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import threadpoolctl  # type: ignore[import-untyped,unused-ignore]

from ptklib.models.sgd.clipped import ClippedSums
from ptklib.models.sgd.optimiser import Optimiser
from ptklib.models.sgd.plan import SgdPace, SgdStage, plan_of
from ptklib.models.sgd.run import Run
from ptklib.price_first import Budget
from tests.models.sgd.test_audit import NETWORK, stream


def threads() -> set[int]:
    return {
        library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    }


def test_a_run_multiplies_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    begin = ClippedSums.begin

    def noting(self: ClippedSums, *arguments: Any) -> None:
        seen.append(threads())
        begin(self, *arguments)

    monkeypatch.setattr(ClippedSums, "begin", noting)
    pace = SgdPace("poisson", Fraction(1), (SgdStage(2, 1.0),))
    plan = plan_of(pace, Budget(Fraction(1), Fraction(1, 100), 1))
    with threadpoolctl.threadpool_limits(2):
        before = threads()
        Run(NETWORK, plan, Optimiser(1.0), (0.05,), 1, 0).train(stream(3))
        assert threads() == before == {2}
    assert seen == [{1}, {1}]
