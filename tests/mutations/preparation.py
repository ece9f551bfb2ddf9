"""Mistakes in what prepares data for models: prices of preparation, and features that must look at
one image each.
"""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_PREPARATION"]

_ALONE = "test_features_of_an_image_do_not_depend_on_what_is_beside_it_to_the_last_bit"

OF_PREPARATION: list[Mutation] = [
    *within(
        "ptklib/preprocessing/bounds.py",
        "tests/preprocessing/test_preprocessing.py",
        (
            "bounds: every column for all of epsilon",
            "share = whole / len(columns)",
            "share = whole",
            "test_columns_share_the_price_of_their_bounds",
        ),
        (
            "bounds: a user's records for the price of one",
            "read.to_batches(), epsilon=share, noise=noise, records_per_unit=records_per_unit",
            "read.to_batches(), epsilon=share, noise=noise",
            "test_all_records_of_a_user_count",
        ),
    ),
    *within(
        "ptklib/preprocessing/group_means.py",
        "tests/preprocessing/test_preprocessing.py",
        (
            "means by key: a user's records for the price of one",
            "noise=noise,\n        records_per_unit=records_per_unit,",
            "noise=noise,",
            "test_all_records_of_a_user_count",
        ),
    ),
    *within(
        "ptklib/preprocessing/histogram.py",
        "tests/preprocessing/test_preprocessing.py",
        (
            "histogram: a user's records for the price of one",
            "noise=noise,\n        records_per_unit=records_per_unit,",
            "noise=noise,",
            "test_all_records_of_a_user_count",
        ),
    ),
    *within(
        "ptklib/models/images/normalising.py",
        "tests/models/test_images.py",
        (
            "images: on a scale that all images share",
            ".sum(axis=1))[:, None]",
            ".sum(axis=1).max(keepdims=True))[:, None]",
            _ALONE,
        ),
        (
            "images: rounded to longer than the bound",
            "* (1 + 1e-6)",
            "* (1 - 1e-6)",
            "test_no_image_is_longer_than_the_bound",
        ),
    ),
]
