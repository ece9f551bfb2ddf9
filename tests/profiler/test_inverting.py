"""A closed form read backwards: the error of so many samples is the tightest target that they are
enough for.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from profiler.inverting import CONFIDENCE, closed_form_error, has_closed_form
from ptklib.auditing.examples import example_ptks
from ptklib.columns.keys import IntegerRange
from ptklib.ptk import Ptk
from ptklib.ptks.statistics import Statistics

DELTA = Fraction(1, 10**6)
CLOSED = {
    name: ptk for name, ptk in example_ptks().items() if has_closed_form(ptk, Fraction(1), DELTA)
}


def delta_of(ptk: Ptk) -> Fraction:
    return DELTA if ptk.tags.needs_delta else Fraction(0)


def test_some_have_a_closed_form_and_some_do_not() -> None:
    kinds = {ptk.kind for ptk in CLOSED.values()}
    assert {"statistics", "counts", "quantiles"} <= kinds
    assert not kinds & {"forest", "clusters", "covariance"}


@pytest.mark.parametrize("samples", [300, 5000, 80_000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(3, 10), Fraction(1)])
@pytest.mark.parametrize("name", CLOSED)
def test_it_is_the_tightest_target_that_so_many_samples_reach(
    name: str, epsilon: Fraction, samples: int
) -> None:
    ptk = CLOSED[name]
    delta = delta_of(ptk)
    error = closed_form_error(ptk, epsilon, samples, delta)
    if error is None:
        told = ptk.analytic_profile(0.99999, (epsilon,), delta)
        assert told is not None
        assert told[0] is None or told[0] > samples
        return
    (enough,) = ptk.analytic_profile(float(error), (epsilon,), delta) or (None,)
    assert enough is not None
    assert enough <= samples
    tighter = float(error) * 0.97 - 2e-5
    if tighter > 0:
        (more,) = ptk.analytic_profile(tighter, (epsilon,), delta) or (None,)
        assert more is None or more > samples


@pytest.mark.parametrize("name", ["forest, guided", "clusters, grid"])
def test_without_a_closed_form_nothing_is_told(name: str) -> None:
    assert closed_form_error(example_ptks()[name], Fraction(1), 10**6) is None


def test_records_of_one_user_cost_more() -> None:
    ptk = CLOSED["statistics, laplace"]
    errors = [closed_form_error(ptk, Fraction(1), 5000, 0, units) for units in (1, 4)]
    assert errors[0] is not None
    assert errors[1] is not None
    assert errors[1] > 2 * errors[0]


@pytest.mark.parametrize("spread", [1, Fraction(1, 3)])
def test_the_error_holds_as_often_as_it_says(spread: Fraction) -> None:
    """By training: means of one key, with the noise of production. The control trains with a third
    of the epsilon, and is caught.
    """
    one = Statistics(
        keys=(IntegerRange(column="zone", first=0, last=0),),
        statistics=("mean",),
        value="x",
        lower=0.0,
        upper=1.0,
    )
    samples, epsilon, runs = 400, Fraction(1, 5), 400
    error = closed_form_error(one, epsilon, samples)
    assert error is not None
    batch = pa.RecordBatch.from_pydict({"zone": [0] * samples, "x": [0.3] * samples})
    misses = 0
    for _ in range(runs):
        arrays = one.train_dp([batch], epsilon=epsilon * spread)
        mean = one.features(arrays, pa.Table.from_batches([batch.slice(0, 1)])).column(0)[0].as_py()
        misses += abs(mean - 0.3) > float(error)
    allowed = runs * (1 - float(CONFIDENCE))
    assert (misses <= allowed + 5 * np.sqrt(allowed)) == (spread == 1)
