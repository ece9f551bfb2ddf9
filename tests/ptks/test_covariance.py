"""The Covariance PTK: plain moments and components without noise, the sensitivity it claims, the
price, and its rules.
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

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import PureCost
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.ptks.covariance import Covariance
from ptklib.ptks.covariance import ptk as covariance
from ptklib.ptks.covariance.noise import WishartRelease
from ptklib.ptks.vectors import STEPS, Bounded
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_checks import check_ptk

VALUES = tuple(
    Bounded(column=name, lower=low, upper=high)
    for name, low, high in (("a", -2, 2), ("b", 0, 10), ("c", -5, 3))
)


def make(**options: Any) -> Covariance:
    given: dict[str, Any] = {"values": VALUES, "components": 2, **options}
    return Covariance(**given)


def cloud(rows: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    hidden = generator.normal(size=(rows, 2)) * [0.3, 0.15]
    shares = (
        hidden @ np.array([[1, 1, 0.5], [0.5, -1, 1]])
        + generator.normal(size=(rows, 3)) * 0.05
        + [0.2, -0.1, 0]
    )
    shares = np.clip(shares, -1, 1)
    return pa.table(
        {
            one.column: (one.lower + one.upper) / 2 + shares[:, j] * (one.upper - one.lower) / 2
            for j, one in enumerate(VALUES)
        }
    )


def matrix(table: pa.Table) -> Any:
    return np.column_stack([table[name].to_numpy() for name in "abc"])


def test_exact_moments_are_the_plain_ones() -> None:
    table, ptk = cloud(5000), make()
    found = ptk.moments(ptk.exact(table.to_batches(max_chunksize=701)))
    plain = matrix(table)
    assert found.count == pytest.approx(5000)
    assert found.mean == pytest.approx(plain.mean(axis=0), abs=0.01)
    assert found.covariance == pytest.approx(np.cov(plain.T, bias=True), abs=0.02)


def test_exact_components_are_those_of_a_plain_pca() -> None:
    table, ptk = cloud(5000), make()
    arrays = ptk.exact(table.to_batches())
    scaled = (matrix(table) - [0, 5, -1]) / [2, 5, 4]
    _, _, plain = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)
    overlaps = np.abs(arrays["components"] @ plain[:2].T)
    assert overlaps == pytest.approx(np.eye(2), abs=0.01)
    # The largest entry of each is positive.
    assert np.all(
        arrays["components"][np.arange(2), np.abs(arrays["components"]).argmax(axis=1)] > 0
    )
    projected = ptk.features(arrays, table)
    assert projected.column_names == ["component_1", "component_2"]
    along = (scaled - scaled.mean(axis=0)) @ arrays["components"].T
    assert np.column_stack([one.to_numpy() for one in projected.columns]) == pytest.approx(
        along, abs=0.002
    )


def test_whitened_features_have_variance_one() -> None:
    table, ptk = cloud(5000), make(output="whitened", prefix="w")
    made = ptk.features(ptk.exact(table.to_batches()), table)
    assert made.column_names == ["w_1", "w_2"]
    for column in made.columns:
        assert column.to_numpy().var() == pytest.approx(1, abs=0.02)


def test_the_loss_is_the_distance_to_the_plane() -> None:
    table, ptk = cloud(1000), make()
    arrays = ptk.exact(table.to_batches())
    scaled = (matrix(table) - [0, 5, -1]) / [2, 5, 4]
    centred = scaled - scaled.mean(axis=0)
    left = centred - centred @ arrays["components"].T @ arrays["components"]
    assert ptk.loss(arrays, table.to_batches()) == pytest.approx(
        np.square(left).sum(axis=1) / 12, abs=1e-4
    )


def test_a_record_without_a_value_contributes_nothing_and_its_feature_is_that_of_the_mean() -> None:
    ptk = make()
    good = cloud(50)
    bad = pa.table({"a": [None, 1.0], "b": [1.0, math.nan], "c": [1.0, 1.0]})
    arrays = ptk.exact(good.to_batches())
    both = ptk.exact([*good.to_batches(), *bad.to_batches()])
    assert np.array_equal(both["totals"], arrays["totals"])
    assert ptk.loss(arrays, bad.to_batches()).tolist() == [0.0, 0.0]
    nothing = pa.table({name: pa.array([None], pa.float64()) for name in "abc"})
    assert [one[0].as_py() for one in ptk.features(arrays, nothing).columns] == pytest.approx(
        [0, 0]
    )


values = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from(
    [-2.0, 2.0, 0.0, 10.0, -5.0, 3.0]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(values, values, values), min_size=1, max_size=4),
    st.sampled_from([None, 0.4]),
)
def test_records_add_a_semidefinite_matrix_of_bounded_trace(
    rows: list[tuple[float, ...]], norm: float | None
) -> None:
    """The claim of the proof note, in whole numbers: trace at most r T, and the weighted triangle
    at most 5 r T long.
    """
    ptk = make(norm=norm)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(one) for one in zip(*rows, strict=True)], names=list("abc")
    )
    sums = ptk._sums([batch])
    trace = len(rows) * ptk._trace
    assert all(isinstance(one, int) for one in sums.reshape(-1))
    assert sum(sums[i, i] for i in range(4)) <= trace
    assert np.linalg.eigvalsh(sums.astype(float)).min() >= -1e-6 * trace
    square = sum(
        25 * sums[i, i] ** 2 + 49 * sum(sums[i, j] ** 2 for j in range(i + 1, 4)) for i in range(4)
    )
    assert square <= (5 * trace) ** 2


def test_the_largest_record_has_all_of_the_trace() -> None:
    ptk = make()
    sums = ptk._sums([pa.RecordBatch.from_pydict({"a": [2.0], "b": [10.0], "c": [-5.0]})])
    assert (
        sum(sums[i, i] for i in range(4))
        == ptk._trace
        == 3 * STEPS**2 + (3 * math.isqrt(3 * STEPS**2) // 10) ** 2
    )


@pytest.mark.parametrize("records", [1, 5])
def test_the_price_is_one_release_and_exactly_epsilon(records: int) -> None:
    ptk = make()
    assert ptk.cost("0.3", records_per_unit=records) == PureCost(epsilon=Fraction(3, 10))
    release: Any = ptk._plan("0.3", 0, records)
    assert release.trace == records * ptk._trace
    gaussian: Any = make(mechanism="gaussian")._plan(1, "1e-6", records)
    assert gaussian.sensitivity == 5 * records * ptk._trace
    assert (
        0.999
        < make(mechanism="gaussian").cost(1, "1e-6", records_per_unit=records).epsilon("1e-6")
        <= 1
    )


def test_gaussian_noise_needs_a_delta() -> None:
    assert make(mechanism="gaussian").tags.needs_delta
    assert not make().tags.needs_delta
    with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
        make(mechanism="gaussian").cost(1)


@pytest.mark.parametrize("mechanism", ["wishart", "gaussian"])
def test_noise_has_the_stated_size_in_every_total(mechanism: Any) -> None:
    ptk = make(mechanism=mechanism)
    delta = 0 if mechanism == "wishart" else "1e-6"
    release: Any = ptk._plan(1, delta, 1)
    with planted_noise():
        source = SeededSource(1)
        drawn = np.array(
            [ptk.train_dp([], epsilon=1, delta=delta, noise=source)["totals"] for _ in range(1500)]
        )
    wanted_off, wanted_on = (
        (float(release.scale) * math.sqrt(5 / 2), float(release.scale) * math.sqrt(5))
        if mechanism == "wishart"
        else (float(release.sigma) / 7, float(release.sigma) / 5)
    )
    spread = drawn.std(axis=0)
    assert spread[~np.eye(4, dtype=bool)] == pytest.approx(np.full(12, wanted_off), rel=0.15)
    assert spread[np.eye(4, dtype=bool)] == pytest.approx(np.full(4, wanted_on), rel=0.15)


def test_noise_leaves_a_covariance_that_is_semidefinite_and_a_mean_inside_the_bounds() -> None:
    ptk = make()
    for _ in range(20):
        found = ptk.moments(ptk.train_dp([], epsilon="0.1"))
        assert np.linalg.eigvalsh(found.covariance).min() >= -1e-6 * max(
            1, np.abs(found.covariance).max()
        )
        assert all(
            one.lower <= mean <= one.upper for one, mean in zip(VALUES, found.mean, strict=True)
        )


def captured(ptk: Covariance, arrays: Any, table: pa.Table) -> float:
    scaled = np.cov(((matrix(table) - [0, 5, -1]) / [2, 5, 4]).T)
    top = np.linalg.eigvalsh(scaled)[::-1][: ptk.components].sum()
    return float(np.trace(arrays["components"] @ scaled @ arrays["components"].T) / top)


def test_components_are_useful_and_get_better_with_budget_and_windows() -> None:
    table, ptk = cloud(2000), make()
    with planted_noise():
        source = SeededSource(2)
        low, high = (
            np.mean(
                [
                    captured(ptk, ptk.train_dp(table.to_batches(), epsilon=e, noise=source), table)
                    for _ in range(10)
                ]
            )
            for e in ("0.05", "1")
        )
        merged = []
        for _ in range(10):
            state: Any = None
            for window in range(9):
                state = ptk.train_dp(
                    cloud(2000, window).to_batches(), epsilon="0.05", previous=state, noise=source
                )
            merged.append(captured(ptk, state, table))
    assert high > 0.99
    assert low + 0.05 < np.mean(merged) < 1
    assert np.mean(merged) > 0.95


def test_windows_add_up_and_components_keep_their_order_and_signs() -> None:
    ptk = make(components=3)
    first = ptk.train_dp(cloud(3000, 1).to_batches(), epsilon=100)
    merged = ptk.train_dp(cloud(3000, 2).to_batches(), epsilon=100, previous=first)
    assert merged["windows"].tolist() == [2]
    both = ptk.exact([*cloud(3000, 1).to_batches(), *cloud(3000, 2).to_batches()])["totals"]
    assert np.abs(merged["totals"] - both).max() < ptk._trace
    assert np.all(np.sum(merged["components"] * first["components"], axis=1) > 0.95)
    turned = {**first, "components": -first["components"][::-1].copy()}
    followed = ptk.train_dp(cloud(3000, 2).to_batches(), epsilon=100, previous=turned)
    assert np.all(np.sum(followed["components"] * turned["components"], axis=1) > 0.95)


def test_sums_are_exact_however_many_rows_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    table, ptk = cloud(3000), make()
    whole = ptk._sums(table.to_batches())
    monkeypatch.setattr(covariance, "_EXACT", ptk._space.limit * 900)
    assert np.array_equal(ptk._sums(table.to_batches(max_chunksize=400)), whole)


def test_totals_stop_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    ptk = make(mechanism="gaussian")
    monkeypatch.setattr(Covariance, "_sums", lambda *_: np.array([[2**70] * 4] * 4, dtype=object))
    for one in (ptk, make()):
        totals = one.train_dp([], epsilon=1, delta="1e-6" if one is ptk else 0)["totals"]
        assert 0 < totals.min() <= totals.max() <= LIMIT


class HalfNoise(Covariance):
    """Lays half of the noise that it is priced for."""

    def _noisy(self, release: Any, sums: Any, noise: Any) -> Any:
        half: Any = (
            WishartRelease(epsilon=2 * release.epsilon, trace=release.trace)
            if self.mechanism == "wishart"
            else GaussianRelease(sigma=release.sigma / 2, sensitivity=release.sensitivity)
        )
        return super()._noisy(half, sums, noise)


def audited(ptk: Covariance, delta: float) -> float:
    """Add the longest record to none; told by how much of the difference lies along it."""
    record = pa.RecordBatch.from_pydict({"a": [2.0]})
    direction = np.array([ptk._constant / STEPS, 1])
    source = SeededSource(6)

    def runs(batches: Any, count: int) -> Any:
        drawn = [
            ptk.train_dp(batches, epsilon=2, delta=delta, noise=source)["totals"]
            for _ in range(count)
        ]
        return np.array([direction @ one @ direction for one in drawn]).round(3)

    with planted_noise():
        return audit_epsilon(runs, [], [record], count=1000, delta=delta).lower_bound


@pytest.mark.parametrize(("mechanism", "delta"), [("wishart", 0.0), ("gaussian", 0.05)])
def test_the_audit_accepts_the_noise_and_catches_half_of_it(mechanism: Any, delta: float) -> None:
    config: dict[str, Any] = {"values": VALUES[:1], "components": 1, "mechanism": mechanism}
    assert audited(Covariance(**config), delta) <= 2
    assert audited(HalfNoise(**config), delta) > 2


@pytest.mark.parametrize(
    "ptk",
    [
        Covariance(values=VALUES[:1], components=1),
        Covariance(
            values=VALUES[:2],
            components=2,
            norm=0.7,
            scaling="common",
            output="whitened",
            mechanism="gaussian",
        ),
    ],
)
def test_the_contract_is_kept(ptk: Covariance) -> None:
    check_ptk(ptk)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"values": ()}, "values must be 1 to 1024 columns"),
        ({"values": VALUES[:1] * 2}, "none twice"),
        ({"components": 0}, "components must be from 1 to 3"),
        ({"components": 4}, "components must be from 1 to 3"),
        ({"norm": -1}, "norm must be from"),
        ({"mechanism": "laplace"}, "must be one of 'wishart', 'gaussian'"),
        ({"scaling": "none"}, "must be one of 'range', 'common'"),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_field(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        make(**wrong)
    assert caught.value.reason == "CONFIG_INVALID"


def test_arrays_that_are_no_state_are_refused() -> None:
    ptk = make()
    arrays = dict(ptk.exact([]))
    lopsided = arrays["totals"].copy()
    lopsided[0, 1] += 1
    for wrong in (
        {"components": arrays["components"] * 2},
        {"components": arrays["components"][[0, 0]]},
        {"totals": lopsided},
        {"totals": np.full_like(lopsided, 2**61)},
        {"windows": np.zeros(1, dtype=np.int64)},
    ):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            ptk.validate({**arrays, **wrong})
