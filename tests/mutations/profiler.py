"""Mistakes in the profiler: its prices, its pieces of the data, its tests."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_PROFILER"]

OF_PROFILER: list[Mutation] = [
    *within(
        "profiler/measuring/tasks.py",
        "tests/auditing/test_profiler.py",
        (
            "profiler: a look at half noise",
            "records_per_unit * UNIT)",
            "records_per_unit * UNIT // 2)",
            "test_a_step_of_the_profiler_stays_within_its_charge[profiler look]",
        ),
        (
            "profiler: the lower test at half noise",
            "* UNIT + math.",
            "* UNIT // 2 + math.",
            "test_a_step_of_the_profiler_stays_within_its_charge[profiler training and lower test]",
        ),
        (
            "profiler: a look without noise",
            "value=int(noisy[0]), invalid",
            "value=told, invalid",
            "test_a_step_of_the_profiler_stays_within_its_charge[profiler look]",
        ),
        (
            "profiler: a lower test without noise",
            "arrays=arrays, value=int(noisy[0])",
            "arrays=arrays, value=value",
            "test_a_step_of_the_profiler_stays_within_its_charge[profiler training and lower test]",
        ),
        (
            "profiler: a look with an unnoised lowest bit",
            "value=int(noisy[0]), invalid",
            "value=int(noisy[0]) // 2 * 2 + told % 2, invalid",
            "test_a_step_of_the_profiler_stays_within_its_charge[profiler look]",
        ),
        (
            "profiler: a lower test with an unnoised lowest bit",
            "arrays=arrays, value=int(noisy[0])",
            "arrays=arrays, value=int(noisy[0]) // 2 * 2 + value % 2",
            "test_a_step_of_the_profiler_stays_within_its_charge[profiler training and lower test]",
        ),
    ),
    *within(
        "profiler/measuring/tasks.py",
        "tests/profiler/test_tasks.py",
        (
            "profiler: the count of invalid losses for free",
            "return release.cost + count.cost if",
            "return release.cost if",
            "test_a_look_costs_its_sum_and_its_count",
        ),
        (
            "profiler: losses that are none are summed as they are",
            "np.where(valid, losses, 1.0) * UNIT",
            "losses * UNIT",
            "test_a_loss_that_is_none_counts_as_one_record_and_as_the_worst",
        ),
        (
            "profiler: the best state is told as the worst",
            "told = min(sums) if",
            "told = max(sums) if",
            "test_what_is_told_of_several_states_is_the_worst",
        ),
        (
            "profiler: texts of errors leave",
            "Answer(failure=failure_of(error))",
            "Answer(failure=str(error))",
            "test_of_what_a_ptk_raises_only_the_type_and_the_place_leave",
        ),
    ),
    *within(
        "profiler/measuring/tasks.py",
        "tests/profiler/test_measured.py",
        (
            "profiler: tasks share a charge and records",
            "check_disjoint(task.piece for task in sharing)",
            "pass",
            "TestCharges::test_tasks_that_share_a_charge_and_a_record_are_refused",
        ),
    ),
    *within(
        "profiler/measuring/schedule.py",
        "tests/auditing/test_profiler.py",
        (
            "profiler: the lower test for free",
            "price if plan.lower is None else price + plan.lower.cost",
            "price",
            "test_a_step_of_the_profiler_stays_within_its_charge[profiler training and lower test]",
        ),
    ),
    *within(
        "profiler/measuring/schedule.py",
        "tests/profiler/test_schedule.py",
        (
            "profiler: looks take what counts take",
            "(1 - _COUNT_PART - read_part) / looks",
            "(1 - read_part) / looks",
            "test_the_worst_case_is_the_sum_of_what_may_run",
        ),
        (
            "profiler: every look at the whole price",
            "(1 - _COUNT_PART - read_part) / looks",
            "(1 - _COUNT_PART - read_part)",
            "test_the_worst_case_is_the_sum_of_what_may_run",
        ),
        (
            "profiler: every reading at the price of all",
            "read_part / READINGS",
            "read_part",
            "test_the_worst_case_is_the_sum_of_what_may_run",
        ),
        (
            "profiler: pieces that overlap",
            "check_disjoint({charge.piece for charge in whole.charges})",
            "pass",
            "test_levels_laid_over_each_other_are_not_handed_out",
        ),
    ),
    *within(
        "profiler/measuring/retraining.py",
        "tests/profiler/test_retraining.py",
        (
            "profiler: few states are planned as many are",
            "return step / _STEPS",
            "return 1.0",
            "test_few_states_are_planned_with_more_samples_and_many_with_as_many",
        ),
    ),
    *within(
        "profiler/measuring/constant.py",
        "tests/profiler/test_constant.py",
        (
            "profiler: the constant sees the inputs",
            "if name == label",
            "if name != ''",
            "test_inputs_move_nothing_in_what_is_learnt_or_lost",
        ),
    ),
    *within(
        "profiler/measuring/pieces.py",
        "tests/profiler/test_schedule.py",
        (
            "profiler: pieces may overlap",
            "if other.start < piece.stop:",
            "if other.start < piece.start:",
            "test_what_cannot_be_is_refused",
        ),
    ),
    *within(
        "profiler/measuring/bounds.py",
        "tests/profiler/test_bounds.py",
        (
            "profiler: the failures of all looks for one",
            "UPPER_FAILURE / looks)",
            "UPPER_FAILURE)",
            "test_more_looks_and_larger_units_ask_for_more",
        ),
        (
            "profiler: a user's records for one",
            "UNIT, float(target)) / records_per_unit",
            "UNIT, float(target))",
            "test_more_looks_and_larger_units_ask_for_more",
        ),
        (
            "profiler: the rate of a looser target",
            "_rate(centre / UNIT, float(target))",
            "_rate(centre / UNIT, min(0.99, float(target) * 1.5))",
            "test_the_upper_test_rarely_passes_what_it_must_not",
        ),
        (
            "profiler: thresholds rounded down",
            "ceil(best * UNIT * (1 + 1e-9)) + 1",
            "floor(best * UNIT / 2)",
            "test_the_lower_test_rarely_accuses_a_reachable_target",
        ),
    ),
]
