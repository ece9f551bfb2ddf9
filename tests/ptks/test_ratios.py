"""The Ratios PTK: exact totals, the reach of its forms, the price it pays, and the rules it
states.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost, DiscreteLaplaceCost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptks.ratios import STEPS, Ratios
from ptklib.ptks.ratios.forms import best_forms
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_checks import check_ptk

ZONES = IntegerRange(column="zone", first=0, last=3)
VARIANTS: dict[str, dict[str, Any]] = {
    "bound": {"ratio_upper": 0.5},
    "capped": {"ratio_upper": 1, "numerator_upper": 20},
    "expected": {"ratio_upper": 1, "numerator_upper": 20, "expected": 0.17},
    "steep": {"ratio_upper": 1000, "numerator_upper": 20, "expected": 0.02},
    "gaussian": {"ratio_upper": 0.5, "mechanism": "gaussian", "expected": 0.1},
}


def make(**options: Any) -> Ratios:
    given: dict[str, Any] = {
        "keys": (ZONES,),
        "numerator": "tip",
        "denominator": "fare",
        "denominator_upper": 100,
        "ratio_upper": 0.5,
        "prefix": "",
        **options,
    }
    return Ratios(**given)


def rows(*records: tuple[Any, Any, Any]) -> list[pa.RecordBatch]:
    zones, tips, fares = zip(*records, strict=True)
    kinds = {
        "zone": (zones, pa.int64()),
        "tip": (tips, pa.float64()),
        "fare": (fares, pa.float64()),
    }
    return [
        pa.RecordBatch.from_pydict(
            {name: pa.array(values, kind) for name, (values, kind) in kinds.items()}
        )
    ]


def rides(count: int, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    zone, fare = generator.integers(0, 4, count), np.minimum(generator.gamma(2, 10, count), 99)
    return pa.table(
        {"zone": zone, "tip": fare * generator.beta(2 + zone, 10, count) / 2, "fare": fare}
    )


def read(ptk: Ratios, arrays: Any, zones: list[int | None]) -> list[dict[str, float]]:
    found: list[dict[str, float]] = ptk.features(
        arrays, pa.table({"zone": pa.array(zones, pa.int64())})
    ).to_pylist()
    return found


@pytest.mark.parametrize("name", VARIANTS)
def test_exact_totals_give_the_plain_ratios_and_sums(name: str) -> None:
    table = rides(10_000)
    ptk = make(**VARIANTS[name], statistics=("ratio", "numerator", "denominator"))
    found = read(ptk, ptk.exact(table.to_batches(max_chunksize=999)), [0, 1, 2, 3])
    for zone, one in enumerate(found):
        here = table["zone"].to_numpy() == zone
        tips, fares = table["tip"].to_numpy()[here], table["fare"].to_numpy()[here]
        tips = np.minimum(tips, VARIANTS[name].get("numerator_upper", math.inf))
        assert one["ratio"] == pytest.approx(tips.sum() / fares.sum(), rel=0.002)
        assert one["denominator"] == pytest.approx(fares.sum(), rel=0.001)
        assert one["numerator"] == pytest.approx(tips.sum(), rel=0.002)


def test_a_record_without_key_or_numbers_contributes_nothing() -> None:
    ptk = make()
    good = rows((0, 1, 10), (2, 5, 20))
    bad = rows(
        (None, 1, 10),
        (4, 1, 10),
        (0, None, 10),
        (0, 1, None),
        (0, math.nan, 10),
        (0, 1, math.nan),
        (0, 5, 0),
    )
    assert np.array_equal(ptk.exact([*good, *bad])["totals"], ptk.exact(good)["totals"])
    assert ptk.loss(ptk.exact(good), bad).tolist() == [0.0] * 7


def test_values_and_ratios_beyond_the_bounds_are_clipped() -> None:
    ptk = make(numerator_upper=20)
    clipped = ptk.exact(rows((0, 20, 100), (1, 6.25, 12.5), (2, 0, 100), (3, 20, 100)))["totals"]
    wild = ptk.exact(
        rows((0, 1e300, 1e300), (1, 9, 12.5), (2, -math.inf, math.inf), (3, math.inf, 1e9))
    )["totals"]
    assert np.array_equal(wild, clipped)
    assert np.array_equal(ptk.exact(rows((0, 3, -5)))["totals"], ptk.exact([])["totals"])


def test_unknown_keys_and_empty_cells_get_the_ratio_of_all() -> None:
    ptk = make(statistics=("ratio", "denominator"))
    found = read(ptk, ptk.exact(rows((0, 10, 100), (0, 20, 100))), [0, 1, 9, None])
    assert [one["ratio"] for one in found] == pytest.approx([0.15] * 4, abs=1e-3)
    assert [one["denominator"] for one in found] == pytest.approx([200, 0, 0, 0])
    assert read(make(), make().exact([]), [0])[0]["ratio"] == 0.25
    assert read(make(expected=0.1), make(expected=0.1).exact([]), [0])[0]["ratio"] == 0.1


def test_noise_never_takes_a_feature_out_of_its_range() -> None:
    ptk = make(statistics=("ratio", "numerator", "denominator"))
    for one in read(ptk, ptk.train_dp([], epsilon="0.01"), [0, 1, 2, 3, 4]):
        assert 0 <= one["ratio"] <= 0.5
        assert one["numerator"] >= 0
        assert one["denominator"] >= 0


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=60, deadline=None)
@given(
    zone=st.integers(-2, 5),
    tip=st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 60),
    fare=st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 110),
)
def test_a_record_moves_the_totals_by_the_reach_at_most(
    name: str, zone: int, tip: float, fare: float
) -> None:
    ptk = make(**VARIANTS[name])
    moved = [int(one) for one in ptk.exact(rows((zone, tip, fare)))["totals"].ravel()]
    assert sum(map(abs, moved)) <= ptk._forms.l1
    assert sum(one * one for one in moved) <= ptk._forms.l2_squared


@pytest.mark.parametrize("name", VARIANTS)
def test_the_reach_is_reached_to_a_step_and_holds_everywhere(name: str) -> None:
    """Over all (u, v) that a record can have, in steps: no more than claimed, and nearly as
    much.
    """
    ptk = make(**VARIANTS[name])
    v = np.arange(STEPS + 1)
    most = np.minimum(STEPS, v * ptk._slope.numerator // ptk._slope.denominator)
    ends = [(np.zeros_like(v), v), (most, v), (most // 2, v)]
    forms = ptk._forms
    reach = max(int(np.abs(forms.totals(u, one)).sum(axis=1).max()) for u, one in ends)
    squares = max(int(np.square(forms.totals(u, one)).sum(axis=1).max()) for u, one in ends)
    assert 0.99 * forms.l1 <= reach <= forms.l1
    assert 0.99 * forms.l2_squared <= squares <= forms.l2_squared


def test_the_forms_read_back_what_they_were_made_of() -> None:
    u, v = np.array([0, 7, 4096, -3]), np.array([10, 9, 4096, 5])
    for variant in VARIANTS.values():
        forms = make(**variant)._forms
        again = forms.read(forms.totals(u, v))
        assert np.allclose(again, (u, v))


@pytest.mark.parametrize(
    ("slope", "low", "high", "at_most"),
    [
        (1, 0, 1, 1.0),
        (1, "1/4", "3/4", 0.63),
        (2, 0, 2, 4.0),
        ("5/2", "3/8", "9/8", 1.41),
        (5, "1/5", "3/5", 1.2),
    ],
)
def test_the_forms_have_far_less_variance_than_the_best_split(
    slope: Any, low: Any, high: Any, at_most: float
) -> None:
    """In units of 2/epsilon^2, for the worst of the ratios; the split between u and v knows them
    too.
    """
    forms = best_forms(STEPS, Fraction(slope), Fraction(low), Fraction(high), False)
    inverse = np.linalg.inv(forms.matrix)
    ratios = [float(Fraction(low)), float(Fraction(high))]
    worst = max(
        (forms.l1 / STEPS) ** 2 * float(np.square(np.array([1, -ratio]) @ inverse).sum())
        for ratio in ratios
    )
    shares = np.linspace(0.01, 0.99, 99)
    split = min(
        max(1 / share**2 + (ratio / (1 - share)) ** 2 for ratio in ratios) for share in shares
    )
    assert worst <= at_most
    assert worst < split / 4


def test_measured_errors_are_less_than_half_of_the_best_split() -> None:
    cells, generator = 2000, np.random.default_rng(5)
    ptk = make(
        keys=(IntegerRange(column="zone", first=0, last=cells - 1),),
        numerator_upper=20,
        expected=0.17,
    )
    zone = np.repeat(np.arange(cells), 40)
    fare = np.minimum(generator.gamma(2, 8, len(zone)), 99)
    table = pa.table({"zone": zone, "tip": np.minimum(0.17 * fare, 20), "fare": fare})
    with planted_noise():
        state = ptk.train_dp(table.to_batches(), epsilon=5, noise=SeededSource(1))
    found = np.array([one["ratio"] for one in read(ptk, state, list(range(cells)))])
    tips, fares = (np.bincount(zone, table[name].to_numpy()) for name in ("tip", "fare"))
    ours = float(np.sqrt(np.mean(np.square(found - tips / fares))))
    splits = []
    for share in (0.4, 0.5, 0.6):
        top = tips + generator.laplace(0, 20 / (5 * share), cells)
        below = fares + generator.laplace(0, 100 / (5 * (1 - share)), cells)
        splits.append(
            float(np.sqrt(np.mean(np.square(np.clip(top / below, 0, 0.5) - tips / fares))))
        )
    assert ours < 0.5 * min(splits)


@pytest.mark.parametrize("records", [1, 5])
def test_the_price_is_one_release_and_exactly_epsilon(records: int) -> None:
    for name in ("bound", "capped", "expected", "steep"):
        ptk = make(**VARIANTS[name])
        cost = ptk.cost("0.3", records_per_unit=records)
        reach = records * ptk._forms.l1
        assert cost == DiscreteLaplaceCost(scale=reach / Fraction("0.3"), sensitivity=reach)
        assert cost.basic() == (Fraction("0.3"), Fraction(0))


def test_gaussian_noise_is_calibrated_and_needs_a_delta() -> None:
    ptk = make(**VARIANTS["gaussian"])
    assert ptk.tags.needs_delta
    cost: Any = ptk.cost(1, 1e-6, records_per_unit=2)
    assert 0.999 < cost.epsilon(1e-6) <= 1
    assert 4 * ptk._forms.l2_squared <= cost.sensitivity**2 < 4 * ptk._forms.l2_squared + 1
    with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
        ptk.cost(1)


def test_windows_add_up_and_more_of_them_are_better() -> None:
    ptk = make(expected=0.1)
    wanted = np.array(
        [
            one["ratio"]
            for one in read(ptk, ptk.exact(rides(80_000, seed=99).to_batches()), [0, 1, 2, 3])
        ]
    )
    errors, state = [], None
    with planted_noise():
        source = SeededSource(2)
        for window in range(20):
            state = ptk.train_dp(
                rides(500, seed=window).to_batches(), epsilon="0.2", previous=state, noise=source
            )
            found = np.array([one["ratio"] for one in read(ptk, state, [0, 1, 2, 3])])
            errors.append(float(np.abs(found - wanted).mean()))
    assert state is not None
    assert state["windows"].tolist() == [20]
    assert np.mean(errors[-5:]) < 0.5 * np.mean(errors[:2])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"keys": ()}, "keys must be one or more"),
        ({"denominator": "tip"}, "must be two columns"),
        ({"denominator_upper": 0}, "denominator_upper must be above 0"),
        ({"ratio_upper": -1}, "ratio_upper must be above 0"),
        ({"numerator_upper": 0}, "numerator_upper must be above 0"),
        ({"numerator_upper": 1e-6}, "at least a millionth"),
        ({"expected": 0.6}, "expected must be above 0 and at most ratio_upper"),
        ({"statistics": ()}, "statistics must be one or more"),
        ({"statistics": ("ratio", "ratio")}, "none of them twice"),
        ({"mechanism": "uniform"}, "must be one of 'laplace', 'gaussian'"),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_field(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make(**wrong)


def test_a_state_of_another_configuration_is_refused() -> None:
    arrays = make().exact([])
    for other in (
        make(keys=(ZONES, IntegerRange(column="hour", first=0, last=3))),
        make(numerator_upper=20),
    ):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            other.validate(arrays)
    for wrong in ({"windows": np.zeros(1, np.int64)}, {"forms": arrays["forms"].astype(np.int32)}):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            make().validate({**arrays, **wrong})


@pytest.mark.parametrize("name", ["expected", "gaussian"])
def test_it_keeps_the_contract(name: str) -> None:
    report = check_ptk(make(**VARIANTS[name], statistics=("ratio", "denominator")))
    assert not [one for one in report.outcomes if one.problem or one.skipped]


class HalfNoise(Ratios):
    """Half of the noise that it is charged for."""

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        return super()._plan(epsilon, delta, records_per_unit).cost

    def _plan(self, epsilon: Number, delta: Number, records_per_unit: int) -> LaplaceRelease:
        made = super()._plan(epsilon, delta, records_per_unit)
        assert isinstance(made, LaplaceRelease)
        return LaplaceRelease(epsilon=2 * made.epsilon, sensitivity=made.sensitivity)


@pytest.mark.parametrize(("kind", "caught"), [(Ratios, False), (HalfNoise, True)])
@pytest.mark.parametrize("worst", [(0.0, 100.0), (20.0, 100.0), (20.0, 40.0)])
def test_an_audit_at_every_corner_of_the_region(
    kind: type[Ratios], caught: bool, worst: tuple[float, float]
) -> None:
    """One record more, at each corner; the likelihood ratio of both totals tells all there is. 4000
    keys are 4000 runs.
    """
    runs = 4000
    keys = (IntegerRange(column="zone", first=0, last=runs - 1),)
    ptk = kind(
        keys=keys,
        numerator="tip",
        denominator="fare",
        denominator_upper=100,
        ratio_upper=0.5,
        numerator_upper=20,
        expected=0.2,
    )
    tip, fare = worst
    added = [
        pa.RecordBatch.from_pydict(
            {"zone": np.arange(runs), "tip": [tip] * runs, "fare": [fare] * runs}
        )
    ]
    shift = ptk.exact(added)["totals"][0]

    def trained(data: list[pa.RecordBatch], count: int) -> np.ndarray[Any, Any]:
        totals = np.concatenate(
            [ptk.train_dp(data, epsilon=1)["totals"] for _ in range(count // runs)]
        )
        ratio = (np.abs(totals) - np.abs(totals - shift)).sum(axis=1) / ptk._forms.l1
        return np.asarray(ratio.round(2))

    result = audit_epsilon(trained, [], added, count=80_000, confidence=0.999999)
    assert result.contradicts(1.0) is caught
    assert result.lower_bound > 0.6
