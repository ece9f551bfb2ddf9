"""Quantiles whose bins are chosen by the exponential mechanism: what it may cost, what it costs,
and how near the ranks are.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput
from ptklib.privacy.costs import ExponentialCost
from ptklib.privacy.mechanisms.selection import ExponentialMechanism
from ptklib.ptks.quantiles import Quantiles
from ptklib.ptks.quantiles import ptk as quantiles_module
from ptklib.ptks.quantiles.choosing import BinDraws, scores
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.ptk_checks import check_ptk

Integers = NDArray[np.int64]
# Sixty bins, finer below.
EDGES = tuple((np.arange(61.0) ** 2 / 36).tolist())


def make(keys: int = 3, **options: Any) -> Quantiles:
    given: dict[str, Any] = {
        "keys": (IntegerRange(column="zone", first=0, last=keys - 1),),
        "value": "fare",
        "quantiles": (0.5,),
        "lower": 0,
        "upper": 100,
        "mechanism": "exponential",
        "prefix": "",
    }
    return Quantiles(**{**given, **options})


def rides(keys: int, each: int, seed: int = 1) -> tuple[pa.Table, NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    fares = np.minimum(generator.gamma(2, 8, (keys, each)), 99.99)
    return pa.table({"zone": np.repeat(np.arange(keys), each), "fare": fares.ravel()}), fares


def read(ptk: Quantiles, arrays: Any, zones: list[int | None]) -> NDArray[np.float64]:
    made = ptk.features(arrays, pa.table({"zone": pa.array(zones, pa.int64())}))
    return np.array([column.to_numpy() for column in made.columns]).T


def chances(counts: Integers, choice: BinDraws) -> list[NDArray[np.float64]]:
    """Of all bins of one key, for each quantile."""
    found = []
    for share, mechanism in zip(choice.shares, choice.mechanisms, strict=True):
        weights = np.exp(float(mechanism.rate) * scores(counts[None], share)[0])
        found.append(weights / weights.sum())
    return found


def test_a_score_is_how_far_the_rank_is_from_those_of_the_bin() -> None:
    """Records 1, 0, 4, 5 by bin: the rank 2.5 of ten quarters is in the third."""
    counts = np.array([[1, 0, 4, 5], [0, 0, 0, 0]])
    assert scores(counts, Fraction(1, 4)).tolist() == [[-6, -6, 0, -10], [0, 0, 0, 0]]
    assert scores(counts, Fraction(1, 2)).tolist() == [[-8, -8, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("quantiles", [(0.5,), (0.1,), (0.99,), (0.2, 0.7), (0.1, 0.5, 0.9)])
def test_the_range_of_the_loss_is_at_most_epsilon_for_all_neighbours(
    quantiles: tuple[float, ...],
) -> None:
    """Exactly, from the chances themselves; somewhere it is nearly all of epsilon."""
    choice = BinDraws(quantiles, epsilon=1, records_per_unit=1)
    generator = np.random.default_rng(4)
    widest = 0.0
    for _ in range(150):
        counts = generator.integers(0, generator.integers(1, 12), 6)
        for bin_ in range(6):
            more = counts.copy()
            more[bin_] += 1
            width = 0.0
            for before, after in zip(chances(counts, choice), chances(more, choice), strict=True):
                losses = np.log(after / before)
                width += float(np.ptp(losses))
                assert np.abs(losses).max() <= 1 / len(quantiles) + 1e-9
            assert width <= 1 + 1e-9
            widest = max(widest, width)
    assert widest > 0.6


def test_a_user_with_records_of_several_keys_is_covered_by_one_epsilon() -> None:
    """Ranges of the losses of all keys together, for three records wherever they are."""
    choice = BinDraws((0.5,), epsilon=2, records_per_unit=3)
    generator = np.random.default_rng(5)
    widest = 0.0
    for _ in range(300):
        counts = generator.integers(0, 8, (3, 4))
        more = counts.copy()
        np.add.at(more, (generator.integers(0, 3, 3), generator.integers(0, 4, 3)), 1)
        width = 0.0
        for line, other in zip(counts, more, strict=True):
            (before,), (after,) = chances(line, choice), chances(other, choice)
            width += float(np.ptp(np.log(after / before)))
        assert width <= 2 + 1e-9
        widest = max(widest, width)
    assert widest > 1


@pytest.mark.parametrize("quantiles", [(0.5,), (0.1, 0.5, 0.9)])
@pytest.mark.parametrize("records", [1, 4])
def test_the_price_is_epsilon_whatever_is_chosen(
    quantiles: tuple[float, ...], records: int
) -> None:
    ptk = make(quantiles=quantiles)
    cost = ptk.cost("0.3", records_per_unit=records)
    assert cost == ExponentialCost(epsilon=Fraction("0.3"))
    # A bounded range is worth four times less than pure epsilon in a Renyi filter.
    assert float(cost.renyi(np.array([2.0]))[0]) <= 1.01 * 2 * 0.3**2 / 8
    choice = BinDraws(quantiles, epsilon="0.3", records_per_unit=records)
    assert sum(mechanism.epsilon for mechanism in choice.mechanisms) == Fraction("0.3")
    assert ptk.tags.needs_delta is ptk.tags.mergeable is ptk.tags.combines is False


def test_exact_bins_hold_the_plain_quantiles() -> None:
    table, fares = rides(3, 4000)
    ptk = make(quantiles=(0.1, 0.5, 0.9))
    found = read(ptk, ptk.exact(table.to_batches()), [0, 1, 2])
    assert np.abs(found - np.quantile(fares, (0.1, 0.5, 0.9), axis=1).T).max() < 100 / 256


def test_unknown_keys_have_the_averages_and_quantiles_never_fall() -> None:
    ptk = make(quantiles=(0.25, 0.5, 0.75), bins=10)
    arrays = {"chosen": np.array([[1, 0, 4], [2, 2, 2], [9, 9, 9]])}
    ptk.validate(arrays)
    found = read(ptk, arrays, [0, 1, None, 7])
    assert found[:2].tolist() == [[15, 15, 45], [25, 25, 25]]
    assert found[2].tolist() == found[3].tolist() == pytest.approx([45, 45, 55])
    for wrong in (np.array([[0, 0, 10]] * 3), np.array([[0, -1, 0]] * 3), np.zeros((3, 2), int)):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            ptk.validate({"chosen": wrong})


def test_a_state_speaks_of_its_own_window() -> None:
    ptk, (table, _) = make(), rides(3, 500)
    first = ptk.train_dp(table.to_batches(), epsilon=100)
    with pytest.raises(InvalidInput, match="COMBINE_UNSUPPORTED"):
        ptk.combined([(Fraction(1), first)])
    low = pa.table({"zone": np.arange(3).repeat(500), "fare": np.full(1500, 1.0)})
    second = ptk.train_dp(low.to_batches(), epsilon=100, previous=first)
    assert np.all(read(ptk, second, [0, 1, 2]) < 2)
    with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
        ptk.train_dp(low.to_batches(), epsilon=1, previous={"chosen": np.zeros(3, int)})
    with pytest.raises(InvalidInput, match="branching must be left out"):
        make(branching=4)


def test_bins_may_be_very_many() -> None:
    ptk, (table, fares) = make(bins=1 << 16), rides(3, 1000)
    found = read(ptk, ptk.train_dp(table.to_batches(), epsilon=20), [0, 1, 2])[:, 0]
    below = (fares < found[:, None]).mean(axis=1)
    assert np.abs(below - 0.5).max() < 0.003
    with pytest.raises(InvalidInput, match="bins must be 2 to 65536"):
        make(bins=(1 << 16) + 1)
    with pytest.raises(InvalidInput, match="bins must be 2 to 4096"):
        make(bins=4097, mechanism="laplace")


def ranks_off(ptk: Quantiles, each: int, epsilon: Any) -> NDArray[np.float64]:
    """For a hundred keys and more, the largest error of a rank as a part of the records."""
    keys = ptk._cells.size
    table, fares = rides(keys, each)
    found = read(ptk, ptk.train_dp(table.to_batches(), epsilon=epsilon), list(range(keys)))
    width = 100 / ptk.bins
    low, high = (
        (fares[:, :, None] < (found + side * width / 2)[:, None]).mean(axis=1) for side in (-1, 1)
    )
    wanted = np.array(ptk.quantiles)
    return np.asarray(np.maximum(np.maximum(low - wanted, wanted - high), 0).max(axis=1))


@pytest.mark.parametrize("quantiles", [(0.5,), (0.2, 0.9)])
def test_the_profile_is_kept(quantiles: tuple[float, ...]) -> None:
    ptk = make(200, quantiles=quantiles, bins=64, min_share=1)
    (needed,) = ptk.analytic_profile(0.1, ["1"])
    assert needed is not None
    errors = ranks_off(ptk, needed, 1)
    assert np.mean(errors <= 0.1) >= 0.95
    assert np.quantile(errors, 0.95) > 0.1 / 20
    # A half of the keys' share needs twice the records, and a tenth of epsilon ten times as many.
    (twice, tenfold) = replace(ptk, min_share=0.5).analytic_profile(0.1, ["1", "0.1"])
    assert twice == 2 * needed
    assert tenfold == pytest.approx(20 * needed, rel=0.01)
    assert ptk.analytic_profile(1e-9, ["1e-9"]) == (None,)


def test_one_quantile_of_a_small_key_is_several_times_nearer_than_in_a_tree_of_counts() -> None:
    chosen, counted = make(300), make(300, mechanism="laplace")
    errors = [ranks_off(ptk, 200, 1).mean() for ptk in (chosen, counted)]
    assert errors[0] < errors[1] / 3
    nine = tuple(np.linspace(0.1, 0.9, 9).tolist())
    many = [ranks_off(replace(ptk, quantiles=nine), 200, 1).mean() for ptk in (chosen, counted)]
    assert many[1] < many[0]


def test_it_keeps_the_contract() -> None:
    for ptk in (make(bins=16), make(quantiles=(0.1, 0.5), lower=None, upper=None, edges=EDGES)):
        # Of no records the bins are all alike, whatever a unit may hold.
        report = check_ptk(ptk, leave_out=("records_per_unit",))
        assert not [one for one in report.outcomes if one.problem]


def test_more_records_a_unit_make_the_draws_wilder() -> None:
    errors = []
    for records in (1, 8):
        choice = BinDraws((0.5,), epsilon=1, records_per_unit=records)
        (found,) = chances(np.full(64, 1), choice)
        errors.append(found @ np.abs(np.arange(64) - 31.5))
    assert errors[1] > 4 * errors[0]


class TwiceTheRate(BinDraws):
    """Half of the sensitivity: the mistake that an audit must see."""

    def __init__(
        self, quantiles: tuple[float, ...], *, epsilon: Any, records_per_unit: int
    ) -> None:
        super().__init__(quantiles, epsilon=epsilon, records_per_unit=records_per_unit)
        wrong = tuple(
            ExponentialMechanism(epsilon=2 * one.epsilon, sensitivity=one.sensitivity)
            for one in self.mechanisms
        )
        object.__setattr__(self, "mechanisms", wrong)


@pytest.mark.parametrize(("kind", "caught"), [(BinDraws, False), (TwiceTheRate, True)])
def test_an_audit_of_the_bin_that_is_chosen(
    kind: type[BinDraws], caught: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two records in the last bins, and one more in the first: the last bin is less likely then by
    nearly all of epsilon, for all the bins between gain.
    """
    monkeypatch.setattr(quantiles_module, "BinDraws", kind)
    runs = 2000
    ptk = make(runs)
    zones, fares = np.arange(runs).repeat(3), np.tile([99.4, 99.8, 0.1], runs)
    more = [pa.RecordBatch.from_pydict({"zone": zones, "fare": fares})]
    two = np.arange(3 * runs) % 3 < 2
    less = [pa.RecordBatch.from_pydict({"zone": zones[two], "fare": fares[two]})]

    def trained(data: list[pa.RecordBatch], count: int) -> NDArray[np.int64]:
        found = [ptk.train_dp(data, epsilon=3)["chosen"][:, 0] for _ in range(count // runs)]
        return np.concatenate(found)

    result = audit_epsilon(trained, less, more, count=60_000, confidence=0.999999)
    assert result.contradicts(3.0) is caught
    assert result.lower_bound > 2.2
