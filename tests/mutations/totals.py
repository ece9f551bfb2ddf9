"""Mistakes in the feature models that are totals: counts, statistics, quantiles, ratios."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_TOTALS"]

OF_TOTALS: list[Mutation] = [
    *within(
        "ptklib/price_first.py",
        "tests/ptks/test_quantiles.py",
        (
            "ptks: a user's records for the price of one, of every kind",
            "Budget.of(epsilon, delta, records_per_unit)",
            "Budget.of(epsilon, delta, 1)",
            "test_the_price_is_one_release_and_exactly_epsilon",
        ),
        (
            "ptks: a last state that nobody has checked",
            "self.validate(previous)",
            "pass",
            "test_it_keeps_the_contract",
        ),
    ),
    *within(
        "ptklib/ptks/counts/budget.py",
        "tests/ptks/test_counts.py",
        (
            "counts: every table at the whole epsilon",
            "share * budget.epsilon,",
            "budget.epsilon,",
            "test_the_price_is_exactly_epsilon",
        ),
        (
            "counts: rows of a hash for free",
            "shares = [weight / whole / row for",
            "shares = [weight / whole for",
            "test_the_price_is_exactly_epsilon",
        ),
        (
            "counts: a user's records for the price of one",
            "sigma=records * sigma / math.sqrt(share)",
            "sigma=sigma / math.sqrt(share)",
            "test_gaussian_tables_spend_no_more_than_the_price",
        ),
        (
            "counts: rows not priced",
            "tables[share] += row",
            "tables[share] += 1",
            "test_the_price_is_exactly_epsilon",
        ),
    ),
    *within(
        "ptklib/ptks/counts/ptk.py",
        "tests/ptks/test_counts.py",
        (
            "counts: noise of the wrong table",
            "made.releases[place + 1] is release",
            "made.releases[place + 1] is not None",
            "test_every_cell_has_noise_of_the_stated_scale",
        ),
        (
            "counts: records without a label count",
            "keep = labels < classes",
            "keep = labels <= classes",
            "test_exact_cells_are_the_plain_tables",
        ),
        (
            "counts: variances of windows forgotten",
            'arrays["variances"] = arrays["variances"] + previous["variances"]',
            "pass",
            "test_windows_add_up_and_get_better",
        ),
    ),
    *within(
        "ptklib/serving/steps.py",
        "tests/ptks/test_counts.py",
        (
            "counts: rare values shrink too much",
            "noise = variance * (len(prior) - 2 + len(prior) * even)",
            "noise = variance * (len(prior) + len(prior) * even)",
            "test_a_rare_value_falls_back_to_the_prior_as_its_noise_says",
        ),
    ),
    *within(
        "ptklib/ptks/counts/estimate.py",
        "tests/ptks/test_counts.py",
        (
            "counts: the smallest row, which noise drags down",
            "np.median(rows, axis=0)",
            "np.min(rows, axis=0)",
            "test_rows_are_combined_by_their_median",
        ),
    ),
    *within(
        "ptklib/ptks/tables/hashing.py",
        "tests/ptks/test_hashing.py",
        (
            "hashing: a null is a value",
            "codes[absent] = self.width",
            "codes[absent] = 0",
            "test_the_hash_never_changes",
        ),
    ),
    *within(
        "ptklib/ptks/quantiles/ptk.py",
        "tests/ptks/test_quantiles.py",
        (
            "quantiles: the levels of the tree for the price of one",
            "return levels, levels",
            "return 1, levels",
            "test_the_price_is_one_release_and_exactly_epsilon",
        ),
        (
            "quantiles: gaussian levels for the price of one",
            "return levels, levels",
            "return levels, 1",
            "test_gaussian_noise_is_calibrated_to_the_root_of_the_levels",
        ),
        (
            "quantiles: a distribution that falls",
            "below.sort(axis=1)",
            "pass",
            "test_sums_that_fall_are_sorted_before_they_are_read",
        ),
        (
            "quantiles: values that are no numbers count",
            "codes[bad] = self._cells.unknown * bins",
            "pass",
            "test_a_record_without_key_or_value_contributes_nothing",
        ),
    ),
    *within(
        "ptklib/ptks/quantiles/choosing.py",
        "tests/ptks/test_quantiles_chosen.py",
        (
            "quantiles: all of epsilon for every quantile that is chosen",
            "epsilon=whole / len(shares), sensitivity",
            "epsilon=whole, sensitivity",
            "test_the_price_is_epsilon_whatever_is_chosen",
        ),
        (
            "quantiles: a user's records for the price of one where bins are chosen",
            "sensitivity=records * _reach(share)",
            "sensitivity=_reach(share)",
            "test_a_user_with_records_of_several_keys_is_covered_by_one_epsilon",
        ),
        (
            "quantiles: scores that one record moves by more than was said",
            "return max(share.numerator, share.denominator - share.numerator)",
            "return min(share.numerator, share.denominator - share.numerator)",
            "test_the_range_of_the_loss_is_at_most_epsilon_for_all_neighbours",
        ),
    ),
    *within(
        "ptklib/ptks/tables/keyed.py",
        "tests/auditing/test_kinds.py",
        (
            "quantiles: counts with an unnoised lowest bit",
            "given.plan.release(self._totals(given.batches), source=given.noise).values",
            "given.plan.release(t := self._totals(given.batches), source=given.noise).values"
            " // 2 * 2 + t % 2",
            "test_a_kind_stays_within_its_claim_and_is_not_far_below[quantiles, laplace]",
        ),
    ),
    *within(
        "ptklib/ptks/tables/noisy_totals.py",
        "tests/ptks/test_quantiles.py",
        (
            "totals: a user's records for the price of one",
            "=budget.records * l1)",
            "=l1)",
            "test_the_price_is_one_release_and_exactly_epsilon",
        ),
        (
            "totals: the root of a sensitivity rounded down",
            ") + 1, _ROOT_STEP",
            "), _ROOT_STEP",
            "test_gaussian_noise_is_calibrated_to_the_root_of_the_levels",
        ),
    ),
    *within(
        "ptklib/ptks/ratios/forms.py",
        "tests/ptks/test_ratios.py",
        (
            "ratios: the larger form for both",
            "ceil(max(map(sum, moved)))",
            "ceil(max(map(max, moved)))",
            "test_a_record_moves_the_totals_by_the_reach_at_most",
        ),
        (
            "ratios: a corner of the records forgotten",
            "(Fraction(steps), steps / slope),",
            "",
            "test_a_record_moves_the_totals_by_the_reach_at_most",
        ),
    ),
    *within(
        "ptklib/ptks/tables/ranking.py",
        "tests/ptks/test_ranking.py",
        (
            "ranking: the last are first",
            'placed[np.argsort(-totals, kind="stable")]',
            'placed[np.argsort(totals, kind="stable")]',
            "test_counts_are_ranked_and_shared",
        ),
    ),
    *within(
        "ptklib/ptks/tables/corners.py",
        "tests/ptks/test_statistics.py",
        (
            "statistics: corners that do not add up",
            "np.stack([steps * n - w, w], axis=1)",
            "np.stack([steps * n, w], axis=1)",
            "test_two_keys_are_a_product_and_agree_with_arrow",
        ),
    ),
    *within(
        "ptklib/ptks/tables/keyed.py",
        "tests/auditing/test_kinds.py",
        (
            "statistics: totals with an unnoised lowest bit",
            "given.plan.release(self._totals(given.batches), source=given.noise).values",
            "given.plan.release(t := self._totals(given.batches), source=given.noise).values"
            " // 2 * 2 + t % 2",
            "test_a_kind_stays_within_its_claim_and_is_not_far_below[statistics, laplace]",
        ),
        (
            "statistics: totals without noise",
            "given.plan.release(self._totals(given.batches), source=given.noise).values",
            "self._totals(given.batches)",
            "test_a_kind_stays_within_its_claim_and_is_not_far_below[statistics, laplace]",
        ),
    ),
]
