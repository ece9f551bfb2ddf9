"""A test that finds its own stake: its price covers all that it may release, it keeps its promise,
and it accepts where a plan without a pilot would not.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant

from ptklib.errors import InvalidInput
from ptklib.ledger.slices import TagRange
from ptklib.privacy.costs import GdpCost
from ptklib.privacy.curves import ORDERS
from ptklib.validators.noises import Gaussian, Laplace, noise_from_json
from ptklib.validators.pilot import UNIT, LossPilot
from ptklib.validators.piloted import PilotedTest
from ptklib.validators.power import planned_test, samples_needed
from ptklib.validators.supposed import SupposedLosses

TERMS: dict[str, Any] = {"target": "0.1", "eta": "0.05", "records": 2000}
NOISES = [Laplace(epsilon="0.5"), Gaussian(mu="0.3")]


def made(**options: Any) -> PilotedTest:
    plain = {"epsilon": 1} if "noise" not in options else {}
    return PilotedTest(**TERMS | plain | options)


@pytest.mark.parametrize("records_per_unit", [1, 3])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_one_price_covers_the_pilot_and_every_test_that_it_may_choose(
    noise: Any, records_per_unit: int
) -> None:
    """Accounting: at every order, whatever the pilot tells."""
    test = made(noise=noise, records_per_unit=records_per_unit)
    paid = test.cost.renyi(ORDERS)
    rng = np.random.default_rng(1)
    knots = len(test.pilot.knots)
    looks = [rng.integers(-UNIT, 500 * UNIT, knots) // 10 ** rng.integers(0, 4, knots)]
    looks += [looks[0] * 0, *(looks[0] * 0 + 400 * UNIT * row for row in np.eye(knots, dtype=int))]
    chosen = {test.planned(tuple(int(v) for v in told)) for told in looks}
    assert len(chosen) > 1
    for cost in (test.pilot.cost, *(played.cost for played in chosen)):
        assert (cost.renyi(ORDERS) <= paid * (1 + 1e-9)).all()
        assert cost.basic() == (None if isinstance(noise, Gaussian) else test.cost.basic())


def test_the_price_of_gaussian_noise_is_that_of_its_mu() -> None:
    """Accounting, against another accountant."""
    assert made(noise=Gaussian(mu="0.3")).cost == GdpCost(mu_squared=Fraction(9, 100))
    accountant = RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(1 / 0.3))
    told = made(noise=Gaussian(mu="0.3")).cost.epsilon("1e-6")
    assert told <= accountant.get_epsilon(1e-6) * (1 + 1e-6)
    assert told > 0.8 * accountant.get_epsilon(1e-6)
    assert Gaussian.of(epsilon=1, delta="1e-6").mu <= Fraction(1, 4)
    assert GdpCost(mu_squared=Gaussian.of(epsilon=1, delta="1e-6").mu ** 2).epsilon("1e-6") <= 1


@pytest.mark.parametrize("records_per_unit", [1, 3])
def test_a_record_adds_one_whole_to_the_knots_of_a_pilot(records_per_unit: int) -> None:
    pilot = LossPilot(target="0.1", bound=2, epsilon=1, records_per_unit=records_per_unit)
    before = pilot.sums([0.3])
    for loss in [0.0, 2.0, 7.0, -1.0, np.nan, np.inf, 0.05, 1 / 3, *pilot.knots]:
        change = pilot.sums([0.3, loss]) - before
        assert change.min() >= 0
        assert change.sum() == UNIT
    assert pilot.release.sensitivity == records_per_unit * UNIT
    assert pilot.sums([np.nan]).tolist() == pilot.sums([2.0]).tolist()


def test_what_a_pilot_tells_is_read_as_a_law_of_losses() -> None:
    pilot = LossPilot(target="0.1", epsilon=8)
    losses = np.random.default_rng(2).beta(1, 12, 5000)
    supposed = pilot.read(pilot.tell(losses))
    assert supposed is not None
    assert supposed.mean == pytest.approx(losses.mean(), rel=0.05)
    assert pilot.read((-5, -1, 0)) is None


def test_the_parts_of_a_slice_are_cut_by_tag_and_stay() -> None:
    test = made(share="1/4")
    pilot, rest = test.cut(TagRange.of_shares("0.5", 1))
    assert (pilot.start, rest.stop) == (2**63, 2**64)
    assert pilot.stop == rest.start
    assert pilot.share / (pilot.share + rest.share) == Fraction(1, 4)


def test_it_needs_fewer_records_where_losses_are_small() -> None:
    """As many as it says: losses that are all alike, judged with a fifth of what the worst need."""
    supposed = SupposedLosses.spread_around("0.05", "0.05")
    test = made(target="0.06")
    needed, worst = test.needed("0.05", supposed), test.needed("0.05")
    assert needed is not None
    assert worst is not None
    assert needed < worst / 3
    planned = made(target="0.06", records=needed)
    first = round(needed * float(planned.share))
    rng = np.random.default_rng(3)
    runs = 100
    accepted = 0
    for _ in range(runs):
        losses = rng.exponential(0.05, needed)
        accepted += planned.verdict(losses[:first], losses[first:]).outcome == "ACCEPT"
    assert accepted > 75


def test_it_accepts_whatever_the_pilot_tells() -> None:
    """No look can be so unlucky that many good records are not enough."""
    rng = np.random.default_rng(4)
    test = made(records=20_000)
    knots = len(test.pilot.knots)
    looks = [
        (-UNIT,) * knots,
        (0,) * (knots - 1) + (10**4 * UNIT,),
        (10**4 * UNIT,) + (0,) * (knots - 1),
    ]
    for told in looks:
        planned = test.planned(told)
        losses = (rng.random(20_000) < 0.05).astype(np.float64)
        assert planned.verdict(losses).outcome == "ACCEPT"


def test_it_is_written_and_read() -> None:
    for test in (made(), made(noise=Gaussian(mu="0.25"), bound="2", records_per_unit=2)):
        assert PilotedTest.from_json(test.as_json()) == test
    told = made().verdict(np.zeros(100), np.zeros(1500))
    assert told.as_json()["outcome"] == "ACCEPT"
    fine = made().planned((UNIT,) * len(made().pilot.knots))
    assert type(fine).from_json(fine.as_json()) == fine


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"share": 0}, "SHARE_INVALID"),
        ({"share": 1}, "SHARE_INVALID"),
        ({"noise": Laplace(epsilon=1), "epsilon": 1}, "NOISE_INVALID"),
        ({"noise": "laplace"}, "NOISE_INVALID"),
        ({"target": 1}, "TARGET_INVALID"),
        ({"records": 0}, "CONFIG_INVALID"),
    ],
)
def test_what_makes_no_test_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(**options)
    assert caught.value.reason == reason


def test_noise_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="laplace or gaussian"):
        noise_from_json({"kind": "uniform"})
    with pytest.raises(InvalidInput, match="has a mu"):
        _ = planned_test(target="0.1", noise=Gaussian(mu=1), eta="0.05", records=9).epsilon


def test_supposed_losses_are_a_law_with_the_mean_that_is_asked_for() -> None:
    law = SupposedLosses.spread_around("0.2", "0.1")
    assert law.mean == pytest.approx(0.2)
    for mean in (0.0, 0.01, 0.2, 0.5, 1.0):
        points, weights = law.at(mean, 1.0)
        assert weights.sum() == pytest.approx(1)
        assert points @ weights == pytest.approx(mean)
        assert points.max() <= 1
    assert SupposedLosses.of([1, 2, 3]).mean == pytest.approx(2)
    assert SupposedLosses.spread_around(0, "0.1").mean == 0
    for points_, weights_ in (((-1.0,), (1.0,)), ((1.0,), ()), ((1.0,), (0.0,))):
        with pytest.raises(InvalidInput, match="supposed losses"):
            SupposedLosses(points_, weights_)


def test_gaussian_noise_is_planned_for_like_laplace_noise() -> None:
    """As many records as are said are enough, and a third is not."""
    terms: dict[str, Any] = {"target": "0.1", "noise": Gaussian(mu="0.2"), "eta": "0.05"}
    needed = samples_needed(**terms, loss="0.05")
    assert needed is not None
    test, rng = planned_test(**terms, records=needed), np.random.default_rng(6)
    shares = [
        np.mean(
            [test.verdict((rng.random(count) < 0.05) * 1.0).outcome == "ACCEPT" for _ in range(300)]
        )
        for count in (needed, needed // 3)
    ]
    assert shares[0] > 0.81
    assert shares[1] < 0.6
