"""The samplers: exact laws, exact slow path, a proven float bound, and nothing insecure or out of
range.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from benchmarks.noise import SAMPLERS, fit, forced_agreement, position, slack
from ptklib.errors import InsecureNoise, InvalidInput
from ptklib.privacy.noise import exact as sampler_slow
from ptklib.privacy.noise import probit as sampler_probit
from ptklib.privacy.noise import sampler
from ptklib.privacy.noise.sampler import discrete_laplace, geometric, rounded_gaussian
from ptklib.testing.noise import PlantedSource, SeededSource, planted_noise

_NAMES = list(SAMPLERS)
_TINY = 1e-9
_SIGN = 2**63
_mp: Any = mpmath.MPContext()
_mp.prec = 700


def _law(name: str, scale: Fraction) -> Any:
    laws: dict[str, Callable[[Fraction], Any]] = {
        "Laplace": sampler._laplace_law,
        "geometric": sampler._geometric_law,
        "Gaussian": sampler._gaussian_law,
    }
    return laws[name](scale)


class TestLaws:
    """The right law is accepted at p > 1e-9, and the same test rejects a scale that is off by
    30%.
    """

    @pytest.mark.parametrize("scale", [0.5, 1, 2, 5])
    @pytest.mark.parametrize("name", _NAMES)
    def test_frequencies_match_the_closed_form(self, name: str, scale: float) -> None:
        sample = SAMPLERS[name](400_000, scale)
        assert fit(name, sample, scale) > _TINY
        assert fit(name, sample, scale * 1.3) < _TINY
        assert fit(name, sample, scale * 0.7) < _TINY

    @pytest.mark.parametrize("scale", [10**3, 10**6, 10**9, 2**40])
    @pytest.mark.parametrize("name", _NAMES)
    def test_large_scales_fill_equal_bins_equally(self, name: str, scale: int) -> None:
        sample = SAMPLERS[name](20_000, scale) / scale
        cdf = {
            "Laplace": stats.laplace.cdf,
            "geometric": stats.expon.cdf,
            "Gaussian": stats.norm.cdf,
        }[name]

        def p_value(values: np.ndarray) -> float:
            # A half-integer off at scale 1000 moves the bins by less than the test can see at this
            # size.
            return float(
                stats.chisquare(
                    np.bincount((cdf(values) * 16).astype(int).clip(0, 15), minlength=16)
                ).pvalue
            )

        assert p_value(sample) > _TINY
        assert p_value(sample * 1.3) < _TINY
        assert p_value(sample * 0.7) < _TINY

    def test_the_wrong_laws_are_told_apart(self) -> None:
        """The discrete Gaussian is not the rounded one, nor a rounded continuous Laplace the
        discrete one.
        """
        discrete = np.exp(-(np.arange(-20, 21) ** 2) / (2 * 0.5**2))
        sample = np.random.default_rng(1).choice(
            np.arange(-20, 21), 400_000, p=discrete / discrete.sum()
        )
        assert fit("Gaussian", sample, 0.5) < _TINY
        rounded = np.rint(np.random.default_rng(1).laplace(0, 1, 400_000)).astype(np.int64)
        assert fit("Laplace", rounded, 1) < _TINY

    def test_signs_are_fair_and_zero_is_not_doubled(self) -> None:
        sample = discrete_laplace(400_000, 2)
        positive, negative = int((sample > 0).sum()), int((sample < 0).sum())
        assert stats.binomtest(positive, positive + negative).pvalue > _TINY
        q = np.exp(-0.5)
        assert (
            stats.binomtest(int((sample == 0).sum()), len(sample), (1 - q) / (1 + q)).pvalue > _TINY
        )
        assert int(geometric(10_000, 3).min()) == 0

    def test_draws_are_not_correlated_within_or_between_calls(self) -> None:
        a, b = (rounded_gaussian(200_000, 100) / 100 for _ in range(2))
        for one, other in ((a, b), (a[1:], a[:-1]), (a[1 << 15 :], a[: -(1 << 15)])):
            assert abs(float(np.mean(one * other))) * np.sqrt(len(one)) < 7


class TestSlowPath:
    @pytest.mark.parametrize("scale", ["1/1000", "1/3", "1", "7.5", "1e6", "1e9", str(2**40)])
    @pytest.mark.parametrize("name", _NAMES)
    def test_forced_draws_equal_mpmath(self, name: str, scale: str) -> None:
        assert (
            forced_agreement(name, Fraction(scale), 16 if Fraction(scale) >= 1 else 8, seed=3) == 1
        )

    @pytest.mark.parametrize("name", _NAMES)
    def test_a_cell_that_holds_a_boundary_takes_later_bits_and_obeys_them(self, name: str) -> None:
        """Just below the boundary U <= T(k), so the draw is k; just above it is k - 1: the planted
        bits decide.
        """
        law = _law(name, Fraction(1000))
        for k in (1, 2, 700, 3000):
            u, rest = divmod(sum(law.tail(k, 63 + 64)) // 2, 2**64)
            for word, draw in ((rest - 10, k), (rest + 10, k - 1)):
                for sign, expected in ((0, draw), (_SIGN, draw if name == "geometric" else -draw)):
                    source = PlantedSource([sign + u, word])
                    with planted_noise():
                        assert SAMPLERS[name](1, 1000, source=source).tolist() == [expected]
                    assert source.left == 0

    def test_bits_are_extended_as_often_as_needed(self) -> None:
        law = _law("Laplace", Fraction(3))
        u, rest = divmod(sum(law.tail(4, 63 + 256)) // 2, 2**256)
        words = [(rest >> shift) % 2**64 for shift in (192, 128, 64, 0)]
        for last, draw in ((words[3] - 10, 4), (words[3] + 10, 3)):
            source = PlantedSource([u, *words[:3], last])
            with planted_noise():
                assert discrete_laplace(1, 3, source=source).tolist() == [draw]
            assert source.left == 0

    @pytest.mark.parametrize("zeros", [0, 1, 2])
    @pytest.mark.parametrize("scale", ["1/2", "1", "1000", "1e9"])
    @pytest.mark.parametrize("name", _NAMES)
    def test_tails_beyond_ten_sigma_are_reached(self, name: str, scale: str, zeros: int) -> None:
        later = [*([0] * zeros), 12345, *range(1, 40)]
        with planted_noise():
            (draw,) = SAMPLERS[name](1, scale, source=PlantedSource([0, *later])).tolist()
        u = 0
        for word in later[:5]:
            u = (u << 64) | word
        wanted = int(
            _mp.floor(position(name, Fraction(scale), Fraction(2 * u + 1, 2 ** (63 + 5 * 64 + 1))))
        )
        assert draw == wanted
        assert draw > 10 * float(Fraction(scale))

    @given(
        x=st.fractions(0, 200, max_denominator=10**6) | st.fractions(0, Fraction(1, 10**6)),
        bits=st.sampled_from([64, 127, 191, 255, 300]),
    )
    def test_enclosures_hold_and_are_narrow(self, x: Fraction, bits: int) -> None:
        at = _mp.mpf(x.numerator) / x.denominator
        for (low, high), exact in (
            (sampler_slow.negative_exp(x, bits), _mp.exp(-at)),
            (sampler_slow.upper_half(x, bits), _mp.erfc(at / _mp.sqrt(2))),
        ):
            assert low <= exact * _mp.mpf(2) ** bits <= high
            assert high - low <= 4

    @pytest.mark.parametrize("scale", ["1/1000", "1/3", "1", "1e6", "1e9"])
    def test_tails_are_the_closed_forms(self, scale: str) -> None:
        s, bits = Fraction(scale), 191
        at = _mp.mpf(s.numerator) / s.denominator
        for k in (1, 2, 5, max(1, int(s)), max(1, int(9 * s))):
            for name, exact in (
                ("Laplace", 2 * _mp.exp(-k / at) / (1 + _mp.exp(-1 / at))),
                ("geometric", _mp.exp(-k / at)),
                ("Gaussian", _mp.erfc((k - _mp.mpf("0.5")) / at / _mp.sqrt(2))),
            ):
                low, high = _law(name, s).tail(k, bits)
                assert low <= exact * _mp.mpf(2) ** bits <= high
                assert high - low <= 12
        assert all(_law(name, s).tail(0, bits)[1] == 2**bits for name in _NAMES)

    def test_settle_needs_no_bounds(self) -> None:
        law = _law("Gaussian", Fraction(10**6))
        u = 2**62 + 12345  # U is one half: the median of |Z| is 0.674490
        assert sampler_slow.settle(law.tail, u, 63, lambda: 1, 674_000, 675_000) == 674_490
        assert sampler_slow.settle(law.tail, u, 63, lambda: 1, 0, None) == 674_490


class TestFastPath:
    @pytest.mark.parametrize("scale", ["1/1000", "1", "1e9"])
    @pytest.mark.parametrize("name", _NAMES)
    def test_the_error_bound_has_sixteen_fold_slack(self, name: str, scale: str) -> None:
        assert slack(name, Fraction(scale), 150, seed=7) >= 16

    @pytest.mark.parametrize("name", _NAMES)
    def test_agrees_with_the_slow_path_for_every_word(self, name: str) -> None:
        """Also where float64 decides alone, and at cells chosen to be hard."""
        hard = [0, 1, 2, 3, *sampler._hard_cells().tolist()]
        words = np.array(
            [*hard, *(SeededSource(2).words(200) >> np.uint64(1)).tolist()], dtype=np.uint64
        )
        for scale in (Fraction(1, 1000), Fraction(1), Fraction(10**5, 7), Fraction(2**40)):
            law = _law(name, scale)
            out = np.empty(len(words), dtype=np.int64)
            # Ones for later bits: any constant will do, as long as both paths see the same.
            sampler._from_words(words.copy(), law, lambda: 2**64 - 1, out)
            slow = [
                sampler_slow.settle(law.tail, int(u), 63, lambda: 2**64 - 1, 0, None) for u in words
            ]
            assert out.tolist() == slow

    @pytest.mark.parametrize("name", _NAMES)
    def test_few_draws_are_undecided(self, name: str) -> None:
        for scale, most in ((1, 3), (10**3, 3), (10**6, 5), (10**9, 60)):
            words = SeededSource(4).words(1 << 18)
            undecided = sampler._from_words(
                words, _law(name, Fraction(scale)), lambda: 5, np.empty(1 << 18, dtype=np.int64)
            )
            assert undecided <= most

    def test_the_bound_is_what_decides(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the tolerances taken away, the fast path gets hard cells wrong: the tests above can
        fail.
        """
        law = _law("Laplace", Fraction(10**9))
        wrong = 0
        with monkeypatch.context() as patch:
            patch.setattr(sampler._Law, "coarse", property(lambda self: -1.0))
            for k in range(10**9, 10**9 + 40):
                u, rest = divmod(sum(law.tail(k, 127)) // 2, 2**64)
                for word, draw in ((rest - 10, k), (rest + 10, k - 1)):
                    out = np.empty(1, dtype=np.int64)
                    sampler._from_words(
                        np.array([u], dtype=np.uint64), law, itertools.repeat(word).__next__, out
                    )
                    wrong += int(out[0]) != draw
        assert wrong >= 20

    def test_the_coarse_test_covers_the_fine_one(self) -> None:
        for name, scale in itertools.product(
            _NAMES, (Fraction(1, 1000), Fraction(1), Fraction(10**9), Fraction(2**40))
        ):
            law = _law(name, scale)
            u = np.maximum(
                (SeededSource(3).words(20_000) >> np.uint64(1)).astype(np.int64)
                >> np.arange(20_000) % 63,
                1,
            )
            y = np.empty(len(u))
            law.position(u, y, law.curve_for(len(u)))
            inside = y <= law.far
            assert 1000 < inside.sum() < len(u)
            assert (law.tolerance(y, u)[inside] <= law.coarse).all()

    def test_probit_is_ndtri(self) -> None:
        p = np.concatenate(
            [np.random.default_rng(1).random(50_000) / 2, 2.0 ** -np.arange(1, 64), [0.5, 2.0**-64]]
        )
        found = sampler_probit.Probit(len(p))(p.copy())
        assert float(np.max(np.abs(found - special.ndtri(p)) / (1 + np.abs(found)))) < 2.0**-49
        assert sampler_probit.seams() < 0.5

    def test_threads_do_not_disturb_each_other(self) -> None:
        found: dict[int, list[int]] = {}

        def work(seed: int) -> None:
            with planted_noise():
                found[seed] = rounded_gaussian(50_000, 10**9, source=SeededSource(seed)).tolist()

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with planted_noise():
            for seed, draws in found.items():
                assert draws == rounded_gaussian(50_000, 10**9, source=SeededSource(seed)).tolist()
        assert len(found) == 4


class TestSelfTest:
    @pytest.fixture(autouse=True)
    def _fresh(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        sampler._self_test.cache_clear()
        yield
        monkeypatch.undo()
        sampler_probit._coefficients.cache_clear()
        sampler._self_test.cache_clear()
        sampler._self_test()

    def _fails(self) -> None:
        with pytest.raises(InsecureNoise) as caught:
            geometric(1, 1)
        assert caught.value.reason == "SAMPLER_SELF_TEST_FAILED"

    def test_passes_here(self) -> None:
        sampler._self_test()

    def test_a_worse_log_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sampler, "_log", lambda size: lambda p: np.log(p) * (1 + 2.0**-48))
        self._fails()

    def test_a_log_that_is_wrong_near_one_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            sampler, "_log", lambda size: lambda p: np.log(p) - 2.0**-49 * (p > 0.99)
        )
        self._fails()

    def test_a_worse_ndtri_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sampler_probit._coefficients.cache_clear()
        monkeypatch.setattr(sampler_probit, "ndtri", lambda p: special.ndtri(p) * (1 + 2.0**-48))
        self._fails()

    def test_one_wrong_cell_of_the_table_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sampler_probit._coefficients()[0][9_000] += 2.0**-47
        self._fails()


class TestArguments:
    @pytest.mark.parametrize("name", _NAMES)
    @pytest.mark.parametrize(
        ("scale", "reason"),
        [
            (0, "SCALE_NOT_POSITIVE"),
            ("0.0", "SCALE_NOT_POSITIVE"),
            (-1, "AMOUNT_NEGATIVE"),
            (float("nan"), "AMOUNT_NOT_FINITE"),
            (float("inf"), "AMOUNT_NOT_FINITE"),
            (True, "AMOUNT_NOT_A_NUMBER"),
            (2**40 + 1, "SCALE_TOO_LARGE"),
            ("0.0009999", "SCALE_TOO_SMALL"),
        ],
    )
    def test_bad_scales(self, name: str, scale: Any, reason: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            SAMPLERS[name](1, scale)
        assert caught.value.reason == reason

    @pytest.mark.parametrize(
        "scale", [2**40, "0.001", Fraction(1, 3), 0.1, np.float64(2.5), np.int64(3)]
    )
    def test_good_scales(self, scale: Any) -> None:
        for draw in SAMPLERS.values():
            assert draw(5, scale).dtype == np.int64

    @pytest.mark.parametrize(
        "shape", [0, 1, (), (0,), (3, 4), (2, 0, 5), np.int64(4), (1 << 15) + 1]
    )
    def test_shapes(self, shape: Any) -> None:
        for draw in SAMPLERS.values():
            assert draw(shape, 10).shape == np.empty(shape).shape

    @pytest.mark.parametrize("shape", [-1, (2, -1), 1.5, "3", True, None, [2]])
    def test_bad_shapes(self, shape: Any) -> None:
        with pytest.raises(InvalidInput) as caught:
            discrete_laplace(shape, 1)
        assert caught.value.reason == "SHAPE_INVALID"

    def test_a_seed_repeats_and_calls_without_one_do_not(self) -> None:
        with planted_noise():
            one, two = (rounded_gaussian((50, 40), 10**6, source=SeededSource(9)) for _ in range(2))
        assert np.array_equal(one, two)
        assert not np.array_equal(rounded_gaussian(100, 10**6), rounded_gaussian(100, 10**6))
