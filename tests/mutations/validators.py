"""Mistakes in validators: their prices, their thresholds, what they take a promise to be."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_VALIDATORS"]

_AUDIT = "test_a_right_validator_is_bounded_by_a_quarter_of_its_claim_or_more"
_BOLD = f"{_AUDIT}[loss validator, bold stake]"
_CAREFUL = f"{_AUDIT}[loss validator, careful stake]"

OF_VALIDATORS: list[Mutation] = [
    *within(
        "ptklib/validators/betting.py",
        "tests/auditing/test_validators.py",
        (
            "validators: half of the sensitivity",
            "reach = units * max(-int(low), int(high))",
            "reach = units * max(-int(low), int(high)) // 2",
            _BOLD,
        ),
        (
            "validators: the best record's score as the sensitivity",
            "reach = units * max(-int(low), int(high))",
            "reach = units * int(high)",
            _BOLD,
        ),
        (
            "validators: evidence without noise",
            "LossVerdict.of(int(told.values[0]),",
            "LossVerdict.of(int(self.scores(losses).sum()),",
            _BOLD,
        ),
        (
            "validators: an unnoised lowest bit",
            "LossVerdict.of(int(told.values[0]),",
            "LossVerdict.of(int(told.values[0]) // 2 * 2 + int(self.scores(losses).sum()) % 2,",
            _CAREFUL,
        ),
    ),
    *within(
        "ptklib/validators/betting.py",
        "tests/validators/test_betting.py",
        (
            "validators: scores rounded up",
            "np.floor(np.asarray(values) - _SLACK)",
            "np.ceil(np.asarray(values) + _SLACK)",
            "test_scores_are_rounded_down_and_stay_within_their_bounds[0.1-share0-1]",
        ),
        (
            "validators: the records of a user priced as one",
            "reach = units * max(",
            "reach = max(",
            "test_the_price_covers_whatever_a_unit_adds[0.1-share0-4]",
        ),
        (
            "validators: the scores of a user's records are not divided",
            "bets / self.records_per_unit * UNIT",
            "bets * UNIT",
            "test_scores_are_rounded_down_and_stay_within_their_bounds[0.1-share0-3]",
        ),
        (
            "validators: what is no loss counts as the best",
            "np.copyto(known, float(self.bound), where",
            "np.copyto(known, 0.0, where",
            "test_what_is_no_loss_counts_as_the_worst",
        ),
    ),
    *within(
        "ptklib/validators/betting.py",
        "tests/validators/test_validity.py",
        (
            "validators: a threshold without the noise",
            "return least_threshold(self.release.scale, Fraction(1, UNIT), self.eta)",
            "return least_threshold(Fraction(1), Fraction(1, UNIT), self.eta)",
            "test_a_broken_promise_is_accepted_no_more_often_than_stated",
        ),
    ),
    *within(
        "ptklib/validators/threshold.py",
        "tests/validators/test_threshold.py",
        (
            "validators: the far half of the noise left out of the threshold",
            "return far / (1 + q) + (1",
            "return (1",
            "test_it_is_the_least_that_keeps_the_confidence",
        ),
    ),
    *within(
        "ptklib/validators/verdict.py",
        "tests/validators/test_betting.py",
        (
            "validators: every attempt with the whole of eta",
            "eta_exact(eta) / (attempt * (attempt + 1))",
            "eta_exact(eta) / 1",
            "test_attempts_share_the_confidence",
        ),
    ),
    *within(
        "ptklib/validators/interval.py",
        "tests/validators/test_interval.py",
        (
            "interval: the records of a user priced as one",
            "sensitivity=units * UNIT)",
            "sensitivity=UNIT)",
            "test_the_price_covers_whatever_a_unit_adds[4]",
        ),
        (
            "interval: a loss beyond its bounds",
            "np.clip(known, 0.0, 1.0, out=known)",
            "np.clip(known, 0.0, 7.0, out=known)",
            "test_the_price_covers_whatever_a_unit_adds[1]",
        ),
        (
            "interval: the noise is not counted",
            "lambdas * (thetas - kappas) / epsilon, lambdas * kappas / epsilon",
            "lambdas * (thetas - kappas) / 20 / epsilon, lambdas * kappas / 20 / epsilon",
            "test_it_holds_the_mean_as_often_as_it_says[0.5-40-0.05]",
        ),
        (
            "interval: the records of a user count one by one",
            "each = self.records_per_unit * UNIT",
            "each = UNIT",
            "test_records_of_one_user_count_as_one",
        ),
    ),
    *within(
        "ptklib/validators/interval.py",
        "tests/auditing/test_validators.py",
        (
            "interval: half of the sensitivity",
            "sensitivity=units * UNIT)",
            "sensitivity=units * UNIT // 2)",
            f"{_AUDIT}[loss interval]",
        ),
        (
            "interval: an unnoised lowest bit",
            "ToldLosses(int(told[0]), int(told[1]))",
            "ToldLosses(int(told[0]) // 2 * 2 + int(self.sums(losses)[0]) % 2, int(told[1]))",
            f"{_AUDIT}[loss interval]",
        ),
    ),
]
