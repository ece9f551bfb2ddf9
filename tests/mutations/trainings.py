"""Mistakes in what a training costs: schedules, looks, sampled runs, and the choice of the best."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_TRAININGS"]

OF_TRAININGS: list[Mutation] = [
    *within(
        "ptklib/privacy/schedules/runs.py",
        "tests/privacy/test_schedules.py",
        (
            "run: charged at the noise of its start",
            "total = sum((1 / sigma**2 for sigma in self.sigmas), Fraction(0))",
            "total = Fraction(len(self.sigmas)) / self.sigmas[0] ** 2",
            "test_noise_is_that_of_the_schedule_and_so_is_the_price",
        ),
        (
            "run: shuffled batches priced as sampled ones",
            "return ReshuffledGaussianCost(sigma=self.sigmas[0], epochs=len(self.sigmas))",
            'return SampledRunCost(rate="0.01", sigmas=self.sigmas, steps=[100] * len(self.sigmas))',
            "test_shuffled_batches_are_not_amplified",
        ),
        (
            "run: one step a period",
            "steps=[self.steps] * len(self.sigmas)",
            "steps=[1] * len(self.sigmas)",
            "test_noise_is_that_of_the_schedule_and_so_is_the_price",
        ),
    ),
    *within(
        "ptklib/privacy/schedules/base.py",
        "tests/privacy/test_schedules.py",
        (
            "schedule: sigmas rounded down",
            "math.ceil(Fraction(value) * 10**PLACES)",
            "math.floor(Fraction(value) * 10**PLACES)",
            "test_a_schedule_is_its_decay_function_rounded_up",
        ),
    ),
    *within(
        "ptklib/privacy/schedules/solving.py",
        "tests/privacy/test_schedules.py",
        (
            "solving: one step of decay too many",
            "return at(last_true(fits, 0, max(1, end)))",
            "return at(last_true(fits, 0, max(1, end)) + 1)",
            "test_table_three_the_decay_for_a_number_of_epochs",
        ),
        (
            "solving: the epoch that breaks the budget counted",
            "if spent > limit:\n            break\n        epochs += 1",
            "epochs += 1\n        if spent > limit:\n            break",
            "test_table_two_the_epochs_of_a_budget",
        ),
    ),
    *within(
        "ptklib/privacy/schedules/calibration.py",
        "tests/privacy/test_schedules.py",
        (
            "calibration: a little over the budget",
            "if spent <= target:",
            "if spent <= target * 1.01:",
            "test_calibrated_noise_meets_the_promise_and_is_least",
        ),
    ),
    *within(
        "ptklib/privacy/schedules/validation.py",
        "tests/privacy/test_schedules.py",
        (
            "validation: a look not charged",
            "ParallelCost(parts=[training, paid]) if self.apart else training + paid",
            "ParallelCost(parts=[training, paid]) if self.apart else training",
            "test_every_private_look_is_charged",
        ),
        (
            "validation: only comparisons charged",
            "return (period_count(epochs) - 1) // self.period * self.period",
            "return (period_count(epochs) - 1) // self.period",
            "test_every_private_look_is_charged",
        ),
        (
            "validation: the floor a period late",
            "self._fallen(epoch // self.period)",
            "self._fallen(max(0, epoch - 1) // self.period)",
            "test_no_run_has_less_noise_than_the_floor",
        ),
        (
            "validation: noise of a look for one record of many",
            "sigma=self.sigma * self.records_per_unit, sensitivity",
            "sigma=self.sigma, sensitivity",
            "test_a_private_look_has_the_noise_that_is_charged",
        ),
        (
            "validation: an allowance spent twice",
            "<= self._left\n",
            "<= 2 * self._left\n",
            "test_an_allowance_ends_before_it_is_exceeded_and_costs_all_of_itself",
        ),
    ),
    *within(
        "ptklib/privacy/loss_distribution.py",
        "tests/privacy/test_loss_distribution.py",
        (
            "loss distribution: records are only removed",
            "for removed in (True, False):",
            "for removed in (True,):",
            "test_both_directions_count",
        ),
        (
            "loss distribution: losses moved down",
            "upper = np.clip(_raised(upper, mixed, gap), 0, mixed)",
            "upper = np.zeros_like(mixed)",
            "test_the_delta_of_one_step_is_that_of_its_densities",
        ),
        (
            "loss distribution: one step of each kind",
            "power += kind.steps * (np.log(size) + 1j * np.angle(spectrum))",
            "power += 1 * (np.log(size) + 1j * np.angle(spectrum))",
            "test_it_is_above_the_truth_and_within_a_thousandth_of_it",
        ),
    ),
    *within(
        "ptklib/privacy/costs/sampled_run.py",
        "tests/privacy/test_loss_distribution.py",
        (
            "sampled run: a Gaussian-DP bound it has not",
            "if self.rate < 1:",
            "if self.rate < 0:",
            "test_what_each_filter_takes_of_a_run",
        ),
    ),
    *within(
        "ptklib/privacy/costs/parallel.py",
        "tests/privacy/test_loss_distribution.py",
        (
            "parallel cost: the least part",
            "np.max([part.renyi(orders) for part in self.parts], axis=0)",
            "np.min([part.renyi(orders) for part in self.parts], axis=0)",
            "test_parallel_costs_are_the_largest_in_every_currency",
        ),
    ),
    *within(
        "ptklib/privacy/costs/stopping.py",
        "tests/privacy/test_private_selection.py",
        (
            "best of runs: charged once",
            "extra = (1 + float(self.shape)) * float",
            "extra = 0 * float",
            "test_the_bound_holds_for_random_pairs_of_outputs",
        ),
        (
            "best of runs: pure price of one",
            "((2 + self.shape) * known[0], Fraction(0))",
            "(known[0], Fraction(0))",
            "test_the_best_of_pure_runs_costs_two_and_the_shape_times_one",
        ),
        (
            "best of runs: how many there are forgotten",
            "power = (order - 1) * (known + mean * self.base.delta(level)) + math.log(mean)",
            "power = (order - 1) * known",
            "test_the_bound_holds_for_random_pairs_of_outputs",
        ),
    ),
    *within(
        "ptklib/privacy/selection/stopping.py",
        "tests/privacy/test_private_selection.py",
        (
            "stopping: nothing is rejected",
            "share *= (place + self.shape) / (place + 1)",
            "share *= 1",
            "test_the_number_of_runs_has_its_law",
        ),
    ),
    *within(
        "ptklib/privacy/selection/coins.py",
        "tests/privacy/test_private_selection.py",
        (
            "coins: a remainder for a number below",
            "< bound:\n            return drawn",
            "< 2 * bound:\n            return drawn % bound",
            "test_a_number_below_a_bound_is_below_it_and_uniform",
        ),
    ),
    *within(
        "ptklib/privacy/selection/disjoint.py",
        "tests/privacy/test_private_selection.py",
        (
            "disjoint selection: twice as sure as paid",
            "rate = self.epsilon / self.records_per_unit",
            "rate = 2 * self.epsilon / self.records_per_unit",
            "test_the_choice_has_its_law_and_its_price_is_that_of_its_range",
        ),
        (
            "disjoint selection: one record of a user",
            "rate = self.epsilon / self.records_per_unit",
            "rate = self.epsilon",
            "test_a_user_with_many_records_is_paid_for",
        ),
    ),
]
