"""Mistakes in the mechanisms: their noise, and the sensitivity and the price of it."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_MECHANISMS"]

OF_MECHANISMS: list[Mutation] = [
    *within(
        "ptklib/privacy/mechanisms/release.py",
        "tests/privacy/test_mechanisms_release.py",
        (
            "laplace: half the sensitivity",
            "noise_scale(reach / level)",
            "noise_scale(reach / level / 2)",
            "test_laplace_noise_has_its_scale",
        ),
        (
            "laplace: epsilon for 1/epsilon",
            "noise_scale(reach / level)",
            "noise_scale(reach * level)",
            "test_laplace_noise_has_its_scale",
        ),
        (
            "laplace: half the noise at the full price",
            "shape, self.scale",
            "shape, self.scale / 2",
            "test_laplace_noise_has_its_scale",
        ),
        (
            "laplace: no noise",
            "shape, self.scale, source=source)",
            "shape, self.scale, source=source) * 0",
            "test_laplace_noise_has_its_scale",
        ),
        (
            "laplace: one draw for all entries",
            "data.shape, self.scale",
            "(1,) * data.ndim, self.scale",
            "test_laplace_noise_has_its_scale",
        ),
        (
            "laplace: cost of half the sensitivity",
            "scale=scale, sensitivity=reach)",
            "scale=2 * scale, sensitivity=reach)",
            "test_costs_are_exact_and_known_before_data",
        ),
        (
            "gaussian: half the sensitivity",
            "sigma=spread, sensitivity=reach)",
            "sigma=spread, sensitivity=reach / 2)",
            "test_costs_are_exact_and_known_before_data",
        ),
        (
            "gaussian: sigma for 1/sigma",
            "shape, self.sigma",
            "shape, 1 / self.sigma",
            "test_gaussian_noise_has_its_scale",
        ),
        (
            "gaussian: half the noise at the full price",
            "sigma, source=",
            "sigma / 2, source=",
            "test_gaussian_noise_has_its_scale",
        ),
        (
            "gaussian: no noise",
            "sigma, source=source)",
            "sigma, source=source) * 0",
            "test_gaussian_noise_has_its_scale",
        ),
        (
            "count: half the sensitivity",
            "noise_scale(1 / level)",
            "noise_scale(1 / level / 2)",
            "test_count_noise_has_its_scale",
        ),
        (
            "count: epsilon for 1/epsilon",
            "noise_scale(1 / level)",
            "noise_scale(level)",
            "test_count_noise_has_its_scale",
        ),
        (
            "count: half the noise at the full price",
            "1, self.scale,",
            "1, self.scale / 2,",
            "test_count_noise_has_its_scale",
        ),
    ),
    *within(
        "ptklib/privacy/mechanisms/inputs.py",
        "tests/privacy/test_mechanisms_release.py",
        (
            "data: a float array is truncated",
            'values.dtype.kind not in "iu"',
            'values.dtype.kind not in "iuf"',
            "test_data_that_is_refused_is_not_quoted",
        ),
        (
            "data: a value is not clamped",
            "return max(-LIMIT, min(LIMIT, int(value)))",
            "return int(value)",
            "test_no_magnitude_is_refused_or_overflows",
        ),
        (
            "data: an array is not clamped",
            "np.iinfo(values.dtype).max > LIMIT",
            "False",
            "test_no_magnitude_is_refused_or_overflows",
        ),
        (
            "sensitivity: zero is taken",
            "if value <= 0:",
            "if value < 0:",
            "test_parameters_that_are_refused",
        ),
        (
            "sensitivity: a float is truncated",
            'np.integer):\n        raise InvalidInput(\n            "',
            'float):\n        raise InvalidInput(\n            "',
            "test_parameters_that_are_refused",
        ),
        (
            "sums overflow",
            "np.clip(noise, -2 * LIMIT, 2 * LIMIT)",
            "noise",
            "test_noise_of_any_size_saturates",
        ),
    ),
    *within(
        "ptklib/privacy/mechanisms/selection.py",
        "tests/privacy/test_mechanisms_selection.py",
        (
            "exponential: half the sensitivity",
            "level / (2 * reach)",
            "level / reach",
            "test_the_exponential_mechanism_has_its_law",
        ),
        (
            "exponential: epsilon for 1/epsilon",
            "level / (2 * reach)",
            "1 / (2 * reach * level)",
            "test_the_exponential_mechanism_has_its_law",
        ),
        (
            "noisy max: half the sensitivity",
            "noise_scale(2 * reach / level)",
            "noise_scale(reach / level)",
            "test_noisy_max_has_its_law",
        ),
        (
            "noisy max: epsilon for 1/epsilon",
            "noise_scale(2 * reach / level)",
            "noise_scale(2 * reach * level)",
            "test_noisy_max_has_its_law",
        ),
        (
            "noisy max: no noise",
            "np.argmax(noise - (",
            "np.argmax(0 * noise - (",
            "test_noisy_max_has_its_law",
        ),
        (
            "noisy max: last of equals",
            "int(np.argmax(noise - (data.max() - data)))",
            "data.size - 1 - int(np.argmax((noise - (data.max() - data))[::-1]))",
            "test_noisy_max_has_its_law",
        ),
    ),
    *within(
        "ptklib/privacy/mechanisms/gibbs.py",
        "tests/privacy/test_mechanisms_selection.py",
        (
            "weighted draw: undecided path skipped",
            "np.flatnonzero(~decided)",
            "np.flatnonzero(~decided)[:0]",
            "test_words_beside_a_boundary_are_decided_as_by_40_digits",
        ),
        (
            "weighted draw: float64 always trusted",
            "slack = 4 * _ROUNDOFF",
            "slack = 0 * _ROUNDOFF",
            "test_words_beside_a_boundary_are_decided_as_by_40_digits",
        ),
        (
            "weighted draw: no more bits for U",
            "int(bits.words(1)[0])",
            "1",
            "test_words_beside_a_boundary_are_decided_as_by_40_digits",
        ),
        (
            "weighted draw: weights turned round",
            "gaps = scores.max() - scores",
            "gaps = scores - scores.min()",
            "test_the_exponential_mechanism_has_its_law",
        ),
    ),
    *within(
        "ptklib/privacy/mechanisms/large_margin.py",
        "tests/privacy/test_mechanisms_large_margin.py",
        (
            "large margin: half the sensitivity in step 1",
            "noise_scale(reach / third,",
            "noise_scale(reach / third / 2,",
            "test_the_thresholds_are_rounded_up_from_exact_tails",
        ),
        (
            "large margin: half the sensitivity in step 2",
            "noise_scale(2 * reach / sixth,",
            "noise_scale(reach / sixth,",
            "test_it_has_its_law",
        ),
        (
            "large margin: half the sensitivity in step 3",
            "third / (2 * reach)",
            "third / reach",
            "test_it_has_its_law",
        ),
        (
            "large margin: epsilon for 1/epsilon",
            "noise_scale(reach / sixth,",
            "noise_scale(reach * sixth,",
            "test_the_number_of_candidates_kept_has_its_law",
        ),
        (
            "large margin: thresholds rounded down",
            "np.ceil(values + ",
            "np.floor(values + ",
            "test_the_thresholds_are_rounded_up_from_exact_tails",
        ),
        (
            "large margin: no room for moving ranks",
            "margin = 2 * self.sensitivity + ",
            "margin = 0 * self.sensitivity + ",
            "test_the_thresholds_are_rounded_up_from_exact_tails",
        ),
        (
            "large margin: the margin forgets r",
            "np.log(r / part)",
            "np.log(np.ones_like(r) / part)",
            "test_the_thresholds_are_rounded_up_from_exact_tails",
        ),
        (
            "large margin: no room for threshold noise",
            "return margin + top + bar + ",
            "return margin + top + ",
            "test_the_thresholds_are_rounded_up_from_exact_tails",
        ),
        (
            "large margin: every query has the whole delta",
            "part / (r * (r + 1))",
            "part / np.ones_like(r)",
            "test_the_thresholds_are_rounded_up_from_exact_tails",
        ),
        (
            "large margin: one candidate too few",
            "int(stops[0]) + 1 if",
            "max(1, int(stops[0])) if",
            "test_the_number_of_candidates_kept_has_its_law",
        ),
        (
            "large margin: no noise on the top score",
            "ranked[0] - ranked[1:] + top_noise",
            "ranked[0] - ranked[1:] + 0 * top_noise",
            "test_the_number_of_candidates_kept_has_its_law",
        ),
        (
            "large margin: no noise on the threshold",
            "self.thresholds(ranked.size) + bar_noise",
            "self.thresholds(ranked.size)",
            "test_the_number_of_candidates_kept_has_its_law",
        ),
    ),
    *within(
        "ptklib/privacy/mechanisms/above_threshold.py",
        "tests/privacy/test_mechanisms_above_threshold.py",
        (
            "above threshold: half the sensitivity",
            "noise_scale(2 * reach / half,",
            "noise_scale(reach / half,",
            "test_it_has_its_law",
        ),
        (
            "above threshold: epsilon for 1/epsilon",
            "noise_scale(reach / half,",
            "noise_scale(reach * half,",
            "test_it_has_its_law",
        ),
        (
            "above threshold: epsilon spent twice",
            "half, bar = level / 2,",
            "half, bar = level,",
            "test_it_has_its_law",
        ),
        (
            "above threshold: no noise on the threshold",
            "int(discrete_laplace(1, ",
            "0 * int(discrete_laplace(1, ",
            "test_it_has_its_law",
        ),
        (
            "above threshold: the same noise again",
            "self.__noise.pop()",
            "self.__noise[-1]",
            "test_it_has_its_law",
        ),
        (
            "above threshold: goes on after True",
            "if self.__spent:",
            "if False:",
            "test_after_true_it_is_spent_and_stays_so",
        ),
    ),
]
