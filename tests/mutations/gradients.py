"""Mistakes in training by noisy gradients: what is summed, who is in a batch, what is priced."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_GRADIENTS"]

_SGD = "ptklib/models/sgd"
_TESTS = "tests/models/sgd"
_LOUD = "test_noise_of_every_stage_is_as_loud_as_priced"

OF_GRADIENTS: list[Mutation] = [
    *within(
        f"{_SGD}/clipped.py",
        f"{_TESTS}/test_clipped.py",
        (
            "gradients: clipped by the first layer alone",
            "length = np.sqrt(np.maximum(_total(lengths), 1.0))",
            "length = np.sqrt(np.maximum(lengths[0], 1.0))",
            "test_the_sum_is_that_of_clipped_gradients",
        ),
        (
            "gradients: lengths not checked after rounding",
            "if not sizes.max(initial=0.0) <= _MOST_SQUARE:",
            "if len(sizes) < 0:",
            "test_a_record_that_rounding_makes_too_long_counts_as_nothing",
        ),
        (
            "gradients: what is not a number is summed",
            "if not sizes.max(initial=0.0) <= _MOST_SQUARE:",
            "if np.nanmax(sizes, initial=0.0) > _MOST_SQUARE:",
            "test_what_is_not_a_number_counts_as_nothing",
        ),
    ),
    *within(
        f"{_SGD}/whole.py",
        f"{_TESTS}/test_clipped.py",
        (
            "gradients: more records in a float32 sum than it holds",
            "ROWS = EXACT // CLIP",
            "ROWS = EXACT",
            "test_sums_at_the_limits_of_float32_are_exact",
        ),
        (
            "gradients: weights that are not whole",
            "np.rint(out, out=out)",
            "np.abs(0.5)",
            "test_sums_are_whole_and_the_same_however_a_batch_is_cut",
        ),
    ),
    *within(
        f"{_SGD}/noise.py",
        f"{_TESTS}/test_plan.py",
        (
            "gradients: a user's records with the noise of one",
            "exact(multiplier) * records * CLIP",
            "exact(multiplier) * CLIP",
            _LOUD,
        ),
        (
            "gradients: noise drawn ahead is used twice",
            "self._used += 1",
            "self._used += self._used == 0",
            "test_noise_that_is_drawn_ahead_is_used_once",
        ),
    ),
    *within(
        f"{_SGD}/run.py",
        f"{_TESTS}/test_plan.py",
        (
            "gradients: noise does not follow its stages",
            "*self.plan.multiplier(step)",
            "*self.plan.multiplier(0)",
            _LOUD,
        ),
    ),
    *within(
        f"{_SGD}/run.py",
        f"{_TESTS}/test_checkpoint.py",
        (
            "gradients: one step more than priced",
            "range(kept.step, self.plan.steps)",
            "range(kept.step, self.plan.steps + 1)",
            "test_every_step_is_released_once_however_often_a_run_is_killed",
        ),
        (
            "gradients: steps that were seen are made again",
            "range(kept.step, self.plan.steps)",
            "range(max(0, kept.step - 1), self.plan.steps)",
            "test_every_step_is_released_once_however_often_a_run_is_killed",
        ),
        (
            "gradients: a new key within an epoch",
            "if turn == 0 and step:",
            "if step == kept.step:",
            "test_members_of_an_epoch_are_the_same_after_a_kill",
        ),
        (
            "gradients: another run takes a checkpoint up",
            "kept.check(digest)",
            "bool(digest)",
            "test_another_run_is_refused",
        ),
    ),
    *within(
        f"{_SGD}/plan.py",
        f"{_TESTS}/test_plan.py",
        (
            "gradients: amplification claimed for batches by tag",
            'if pace.batching == "tags" and pace.rate != 1:',
            "if pace.rate > 1:",
            "test_nothing_is_amplified_by_shuffling",
        ),
        (
            "gradients: a user has a member as rarely as a record",
            "min(Fraction(1), pace.rate * records)",
            "min(Fraction(1), pace.rate)",
            "test_a_user_has_a_member_at_most_as_often_as_priced",
        ),
    ),
    *within(
        f"{_SGD}/members.py",
        f"{_TESTS}/test_members.py",
        (
            "gradients: members drawn more often than priced",
            "places = np.cumsum(passed + 1) + self._last",
            "places = np.cumsum(np.maximum(passed, 1)) + self._last",
            "test_every_record_is_in_a_batch_at_the_rate",
        ),
        (
            "gradients: batches cut by place",
            "numbers = _enciphered(tags, key)",
            "numbers = np.sort(_enciphered(tags, key))",
            "test_a_record_is_in_its_batch_whoever_else_is_there",
        ),
    ),
]
