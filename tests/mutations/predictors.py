"""Mistakes in models that predict: what a record may move, and what is priced."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_PREDICTORS"]

_JOINT = "test_no_record_moves_a_release_by_more_than_its_sensitivity"
_PRICE = "test_boosting_costs_what_an_accountant_of_others_says"
_ROUND = "test_a_round_is_moved_by_the_products_and_the_square_of_a_residual_together"

OF_PREDICTORS: list[Mutation] = [
    *within(
        "ptklib/models/linear/plans.py",
        "tests/models/test_linear_privacy.py",
        (
            "linear: a user's products for the price of one record",
            "products = budget.records * root_above",
            "products = root_above",
            "test_all_records_of_a_user_count",
        ),
        (
            "linear: two sums of the label for the price of one",
            "root_above(2 * GRAIN**4)",
            "root_above(GRAIN**4)",
            _JOINT,
        ),
        (
            "linear: every round has the whole rest",
            "rest = (1 - _PRODUCTS**2 - _LABEL**2) / rounds",
            "rest = 1 - _PRODUCTS**2 - _LABEL**2",
            _PRICE,
        ),
        (
            "linear: rounds at no cost to the products",
            "rest = (1 - _PRODUCTS**2 - _LABEL**2) / rounds",
            "rest = Fraction(1) / rounds",
            _PRICE,
        ),
        (
            "linear: the label of moments for free",
            "ON**2 * ((structure.limit + GRAIN**2) ** 2 - structure.limit**2)",
            "0",
            _JOINT,
        ),
        (
            "linear: half of the sensitivity in L1",
            "(length**2 + structure.limit + GRAIN**2) // 2",
            "(length**2 + structure.limit + GRAIN**2) // 4",
            _JOINT,
        ),
        (
            "linear: adassp's three releases for the price of one",
            "root_above(3)",
            "root_above(1)",
            "test_adassp_takes_more_noise_where_that_of_the_paper_is_too_little",
        ),
        (
            "linear: the squares of residuals for free",
            "most**2 * (structure.rows.limit + STEPS**2)",
            "most**2 * structure.rows.limit",
            _ROUND,
        ),
        (
            "linear: the noise of a round does not follow its clip",
            "return release_of(self.multiplier, self.records",
            "return release_of(self.multiplier / most, self.records",
            "test_every_round_has_the_noise_that_was_priced_whatever_it_clips_at",
        ),
    ),
    *within(
        "ptklib/models/linear/structure.py",
        "tests/models/test_linear_privacy.py",
        (
            "linear: half of the joint sensitivity of products",
            "ON**2 * (self.limit**2 - known * GRAIN**4)",
            "ON**2 * (self.limit**2 - known * GRAIN**4) // 4",
            _JOINT,
        ),
        (
            "linear: squares of shortened rows left out of the bound",
            "if self.squares_known else 0",
            "if self.width else 0",
            _JOINT,
        ),
    ),
    *within(
        "ptklib/models/linear/reading.py",
        "tests/models/test_linear_privacy.py",
        (
            "linear: residuals that are not clipped",
            "np.clip(apart, -most, most)",
            "np.clip(apart, -most, 2 * most)",
            _ROUND,
        ),
        (
            "linear: a record without a label counts",
            "LabelledRows(rows[~bad], label[~bad])",
            "LabelledRows(rows, label)",
            "test_a_label_that_is_missing_moves_nothing",
        ),
    ),
    *within(
        "ptklib/models/rows.py",
        "tests/models/test_inputs.py",
        (
            "rows: longer than the norm by rounding",
            "* (1 - 2.0**-40)",
            "* (1 + 2.0**-8)",
            "test_no_row_is_longer_than_its_norm_by_any_rounding",
        ),
    ),
    *within(
        "ptklib/models/products.py",
        "tests/models/test_inputs.py",
        (
            "products: rounded by where a row stands",
            "np.rint(wide / grids) * grids",
            "wide",
            "test_a_product_is_the_same_wherever_a_row_stands",
        ),
    ),
]
