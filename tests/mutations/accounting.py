"""Mistakes in samplers, in amounts, costs and filters, and in the audits of all that."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_ACCOUNTING"]

OF_ACCOUNTING: list[Mutation] = [
    *within(
        "ptklib/privacy/noise/sampler.py",
        "tests/privacy/test_sampler.py",
        (
            "sampler: rounds instead of floor",
            "np.floor(y, out=near)\n    np.copyto",
            "np.rint(y, out=near)\n    np.copyto",
            "TestLaws::test_frequencies_match_the_closed_form",
        ),
        (
            "sampler: Gaussian without its 1/2",
            "Probit, 2.0**-64, 0.5, size",
            "Probit, 2.0**-64, 0.0, size",
            "TestLaws::test_frequencies_match_the_closed_form",
        ),
        (
            "sampler: Laplace without its offset",
            "offset = -size * log1p(expm1(-1 / size) / 2)",
            "offset = 0.0",
            "TestLaws::test_frequencies_match_the_closed_form",
        ),
        (
            "sampler: undecided path skipped",
            "(lowest != highest) | open_ended",
            "open_ended",
            "TestSlowPath::test_forced_draws_equal_mpmath",
        ),
        (
            "sampler: the first cell is not open-ended",
            "open_ended = u == 0",
            "open_ended = u < 0",
            "TestSlowPath::test_tails_beyond_ten_sigma_are_reached",
        ),
    ),
    *within(
        "ptklib/privacy/noise/exact.py",
        "tests/privacy/test_sampler.py",
        (
            "sampler: exact Gaussian without its 1/2",
            "Fraction(2 * k - 1, 2) / sigma",
            "Fraction(k) / sigma",
            "TestSlowPath::test_forced_draws_equal_mpmath",
        ),
        (
            "sampler: no more bits for U",
            "u = (u << _STEP_BITS) | more()",
            "u = (u << _STEP_BITS) | 1",
            "TestSlowPath::test_forced_draws_equal_mpmath",
        ),
    ),
    *within(
        "ptklib/privacy/fixed_point.py",
        "tests/privacy/test_fixed_point.py",
        (
            "fixed point: rounding missing from the sensitivity",
            "max(abs(self.lower_units), abs(self.upper_units)",
            "int(max(abs(self.lower), abs(self.upper)) / self.resolution",
            "TestSensitivity::test_counts_the_rounding_of_the_bounds",
        ),
        (
            "fixed point: truncates",
            "np.rint(reals, out=reals)",
            "np.trunc(reals, out=reals)",
            "TestEncode::test_table",
        ),
        (
            "fixed point: not clipped after rounding",
            "np.clip(reals.astype(np.int64), self.lower_units, self.upper_units",
            "reals.astype(np.int64",
            "TestEncode::test_table",
        ),
    ),
    *within(
        "ptklib/privacy/amounts.py",
        "tests/privacy/test_amounts.py",
        (
            "amounts: charges rounded down",
            "-((-value.numerator * unit) // value.denominator)",
            "value.numerator * unit // value.denominator",
            "test_charges_round_up_and_capacities_down",
        ),
        (
            "amounts: capacities rounded up",
            "value.numerator * unit // value.denominator",
            "ceil_units(value, unit)",
            "test_charges_round_up_and_capacities_down",
        ),
    ),
    *within(
        "ptklib/privacy/filters/basic.py",
        "tests/privacy/test_mutation_gaps.py",
        (
            "basic filter: capacity rounded up",
            "capacity = (floor_units(epsilon, NANO)",
            "capacity = (ceil_units(epsilon, NANO)",
            "test_a_basic_capacity_is_rounded_down_and_its_demand_up",
        ),
        (
            "basic filter: demand rounded down",
            "demand = (ceil_units(known[0], NANO)",
            "demand = (floor_units(known[0], NANO)",
            "test_a_basic_capacity_is_rounded_down_and_its_demand_up",
        ),
    ),
    *within(
        "ptklib/privacy/filters/gaussian.py",
        "tests/privacy/test_mutation_gaps.py",
        (
            "gaussian filter: capacity rounded up",
            "return last_true(fits, low, high)",
            "return last_true(fits, low, high) + 1",
            "test_a_gaussian_capacity_is_the_last_that_fits",
        ),
    ),
    *within(
        "ptklib/privacy/filters/renyi.py",
        "tests/privacy/test_mutation_gaps.py",
        (
            "renyi filter: capacity rounded up",
            ".floor(curves.",
            ".ceil(curves.",
            "test_a_renyi_capacity_is_the_conversion_at_its_share_rounded_down",
        ),
        (
            "renyi filter: every order has the whole delta",
            "delta * share)",
            "delta)",
            "test_a_renyi_capacity_is_the_conversion_at_its_share_rounded_down",
        ),
    ),
    *within(
        "ptklib/privacy/filters/strong.py",
        "tests/privacy/test_mutation_gaps.py",
        (
            "strong filter: capacity rounded up",
            "floor((curves.",
            "ceil((curves.",
            "test_strong_composition_is_the_theorem_rounded_down",
        ),
        (
            "strong filter: a forgotten logarithm",
            " * (1 + curves.log(weight * square + 1) / 2)",
            "",
            "test_strong_composition_is_the_theorem_rounded_down",
        ),
    ),
    *within(
        "ptklib/privacy/curves.py",
        "tests/privacy/test_mutation_gaps.py",
        (
            "renyi filter: a forgotten logarithm",
            "(_PRECISE.mp.log(precise(delta)) + _PRECISE.mp.log(a)",
            "_PRECISE.mp.log(a",
            "test_a_renyi_capacity_is_the_conversion_at_its_share_rounded_down",
        ),
    ),
    *within(
        "ptklib/privacy/costs/laplace.py",
        "tests/privacy/test_mutation_gaps.py",
        (
            "discrete laplace cost: the continuous curve",
            ", 1 / self.scale",
            "",
            "test_the_renyi_curve_of_discrete_laplace_is_that_of_its_probabilities",
        ),
    ),
    *within(
        "ptklib/privacy/costs/pure.py",
        "tests/privacy/test_mutation_gaps.py",
        (
            "exponential cost: half the range",
            "** 2 / 8",
            "** 2 / 32",
            "test_an_exponential_cost_bounds_the_worst_bounded_range_pair",
        ),
    ),
    *within(
        "ptklib/auditing/kinds.py",
        "tests/auditing/test_kinds.py",
        (
            "audits: remainders of trainings are not looked at",
            "for k, modulus in enumerate(MODULI))]",
            "for k, modulus in enumerate(MODULI[:0]))]",
            "test_an_unnoised_lowest_bit_is_caught[profiler look]",
        ),
    ),
    *within(
        "ptklib/auditing/mechanisms.py",
        "tests/auditing/test_kinds.py",
        (
            "audits: remainders of releases are not looked at",
            "for each in told)) for modulus in MODULI]",
            "for each in told)) for modulus in MODULI[:0]]",
            "test_an_unnoised_lowest_bit_is_caught[statistics, laplace]",
        ),
    ),
    *within(
        "ptklib/testing/ptk_privacy_checks.py",
        "tests/ptks/test_check_ptk.py",
        (
            "audits: check_ptk forgets remainders",
            'not audit_result.contradicts(claim),\n            f"the remainder',
            'bool(claim),\n            f"the remainder',
            "test_a_broken_ptk_is_caught[LowestBit]",
        ),
    ),
]
