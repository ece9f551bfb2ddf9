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
            "bets / self.records_per_unit * self.grain",
            "bets * self.grain",
            "test_scores_are_rounded_down_and_stay_within_their_bounds[0.1-share0-3]",
        ),
        (
            "validators: what is no loss counts as the best",
            "np.copyto(known, bound, where",
            "np.copyto(known, 0.0, where",
            "test_what_is_no_loss_counts_as_the_worst",
        ),
    ),
    *within(
        "ptklib/validators/betting.py",
        "tests/validators/test_validity.py",
        (
            "validators: a threshold without the noise",
            "return self.noise.threshold(self.reach, Fraction(1, self.grain), self.eta)",
            "return self.noise.threshold(1, Fraction(1, self.grain), self.eta)",
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
    *within(
        "ptklib/validators/accuracy.py",
        "tests/validators/test_accuracy.py",
        (
            "accuracy: the number of records is taken as exact",
            "off = self._off\n",
            "off = 0\n",
            "test_the_number_of_records_is_in_its_range_as_often_as_is_said",
        ),
        (
            "accuracy: the whole of eta for the statistic",
            "rate = float(eta) * (1 - 1 / _COUNT_PART)",
            "rate = float(eta) * (1 + 1 / _COUNT_PART)",
            "test_a_threshold_keeps_eta_for_every_number_of_records_of_its_range",
        ),
    ),
    *within(
        "ptklib/validators/noisy_law.py",
        "tests/validators/test_accuracy.py",
        (
            "accuracy: one of two draws left out",
            "law = np.convolve(sides[0], sides[1])",
            "law = np.convolve(sides[0], np.eye(1, len(cells), _CELLS)[0])",
            "test_chances_are_those_of_brute_force_or_a_little_more[7-0.3]",
        ),
        (
            "accuracy: half of the noise in its law",
            "float(noise.epsilon) / grain",
            "2 * float(noise.epsilon) / grain",
            "test_a_broken_promise_is_accepted_no_more_often_than_stated[30-0.5]",
        ),
    ),
    *within(
        "ptklib/validators/pilot.py",
        "tests/validators/test_piloted.py",
        (
            "pilot: a record counts for both knots in full",
            "UNIT - upper)",
            "UNIT)",
            "test_a_record_adds_one_whole_to_the_knots_of_a_pilot[1]",
        ),
        (
            "pilot: the records of a user priced as one",
            "added.release(units * UNIT)",
            "added.release(UNIT)",
            "test_a_record_adds_one_whole_to_the_knots_of_a_pilot[3]",
        ),
    ),
    *within(
        "ptklib/validators/piloted.py",
        "tests/validators/test_piloted.py",
        (
            "piloted: a price that does not cover the pilot",
            "self.noise.covering(int(self.pilot.release.sensitivity))",
            "self.noise.covering(2**40)",
            "test_one_price_covers_the_pilot_and_every_test_that_it_may_choose",
        ),
        (
            "piloted: the pilot's records are tested too",
            "TagRange(middle, tags.stop)",
            "TagRange(tags.start, tags.stop)",
            "test_the_parts_of_a_slice_are_cut_by_tag_and_stay",
        ),
    ),
    *within(
        "ptklib/validators/rejecting.py",
        "tests/validators/test_rejecting.py",
        (
            "reject: what a record takes away is not priced",
            "max(each, theta - each) * UNIT",
            "each * UNIT",
            "test_the_price_covers_whatever_a_unit_adds[500-1]",
        ),
        (
            "reject: a threshold without the noise",
            "int(self.release.sensitivity), Fraction(1, UNIT)",
            "1, Fraction(1, UNIT)",
            "test_a_class_that_keeps_the_promise_is_hardly_ever_rejected",
        ),
    ),
    *within(
        "ptklib/validators/published/loss.py",
        "tests/validators/test_published.py",
        (
            "listing 2: no correction for the noise",
            "shift, log, bound = self.correction,",
            "shift, log, bound = 0.0,",
            "test_a_sum_that_may_be_larger_is_taken_for_larger",
        ),
        (
            "listing 2: records that may not be there are a divisor",
            "least = told.records - shift\n        if least <= 0:\n            return False",
            "least = abs(told.records - shift) + 1",
            "test_records_that_may_not_be_there_are_no_divisor",
        ),
        (
            "listing 2: a term that does not scale with the bound",
            "4 * bound * log / least",
            "4 * log / least",
            "test_every_term_scales_with_the_bound",
        ),
    ),
    *within(
        "ptklib/validators/sums/means.py",
        "tests/validators/test_sums.py",
        (
            "means: the noise is not counted",
            " + _noise_of_mean(noise, eta)",
            "",
            "test_the_noise_is_part_of_the_error",
        ),
        (
            "means: values beyond their bounds",
            "np.clip(share, 0.0, 1.0)",
            "np.clip(share, 0.0, 9.0)",
            "test_the_price_covers_whatever_a_record_adds",
        ),
    ),
    *within(
        "ptklib/validators/threshold.py",
        "tests/validators/test_threshold.py",
        (
            "validators: the far half of Gaussian noise left out of the threshold",
            "return float(far + math.exp(min(near, 0.0)))",
            "return float(math.exp(min(near, 0.0)))",
            "test_gaussian_noise_keeps_the_confidence",
        ),
    ),
    *within(
        "ptklib/validators/attempts.py",
        "tests/validators/test_published.py",
        (
            "attempts: the next one spends what the last did",
            "return eta_of_attempt(self.eta, self.made + 1)",
            "return eta_of_attempt(self.eta, max(1, self.made))",
            "test_attempts_spend_all_of_eta_and_no_more",
        ),
    ),
]
