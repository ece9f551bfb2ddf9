"""What a measured profile says, charges and does with PTKs and data that are not as they should
be.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise, product
from multiprocessing import get_context
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from benchmarks._profiler.problems import problem
from benchmarks._profiler.ptks import Mean
from profiler.measuring import measure as measuring
from profiler.measuring.pieces import check_disjoint, parts_of, price_at
from profiler.measuring.results import REACHED, LevelResult
from profiler.measuring.retraining import MOST_STATES, lifted
from profiler.measuring.schedule import schedule
from profiler.measuring.tasks import Answer, Task, TrainTask, charges_of
from profiler.measuring.terms import STATES, ProfileTerms
from profiler.profiles import CERTIFIES
from ptklib.errors import InvalidInput, Refused
from ptklib.privacy.amounts import Number
from ptklib.ptk import Arrays, Batches, Tags
from tests.profiler.small import Planted, RefusingBench, WatchingBench, bench, planted_run, profiled

SECRET = "text 4711"


def test_a_reachable_target_is_reached_with_a_witness_at_every_level() -> None:
    one = problem("mean", 0.05)
    found = profiled("mean", 0.05, "0.1")
    assert [result.status for result in found.results] == [REACHED] * 3
    for result in found.results:
        assert result.state is not None
        one.ptk.validate(result.state)
        assert one.risk(result.state) <= 0.1 == float(result.promised or 0)
    samples = [one for one in found.profile.samples if one is not None]
    assert samples == sorted(samples, reverse=True)
    assert (found.profile.source, float(found.profile.confidence)) == ("measured", 0.95)
    assert found.status == REACHED


def test_what_is_planned_is_what_a_training_needs_and_not_what_a_witness_had() -> None:
    """Few states of a size are planned with more samples; the search ends at the least that passed."""
    found = profiled("histogram", 0.05, "0.1", records=20_000, n_max=1 << 20)
    for result in found.results:
        by_size = {look.samples: look for look in reversed(result.looks)}
        assert result.size is not None
        passed = by_size[result.size]
        states = passed.states
        (*_, last) = result.looks
        if last.samples == result.size and last is not passed:
            assert states + last.states <= MOST_STATES
            confirmed = last.risk + last.margin <= 0.1 + 1e-5
            states = states + last.states if confirmed else states
            assert confirmed or (result.samples or 0) >= 2 * result.size
        assert (result.samples or 0) >= lifted(passed.samples, states)
        assert passed.risk + passed.margin <= 0.1 + 1e-5
        assert all(
            look.risk + look.margin > 0.1 for size, look in by_size.items() if size < result.size
        )
    assert any((result.samples or 0) > (result.size or 0) for result in found.results)
    assert found.as_json()["certifies"] == CERTIFIES


def test_a_target_below_the_least_risk_is_told_once_and_skipped_elsewhere() -> None:
    found = profiled("threshold", 0.3, "0.1")
    assert [result.status for result in found.results] == [
        "SKIPPED",
        "SKIPPED",
        "RISK_ABOVE_TARGET",
    ]
    assert found.profile.samples == (None, None, None)
    assert not any(result.charged for result in found.results[:-1])


@dataclass(frozen=True, kw_only=True)
class Heuristic(Mean):
    """No exact minimiser: the lower test must not run."""

    tags: ClassVar[Tags] = Tags()

    def exact(self, batches: Batches) -> Arrays:
        raise AssertionError("never asked")


def test_a_heuristic_is_not_reached_and_never_accused() -> None:
    found = profiled("mean", 0.24, "0.1", ptk=Heuristic())
    assert [result.status for result in found.results] == ["SKIPPED", "SKIPPED", "NOT_REACHED"]


class TestCharges:
    def test_what_stays_charged_is_what_ran_point_by_point(self) -> None:
        one = problem("mean", 0.05)
        book = bench(one, 150_000, runner=planted_run)
        found = profiled(bench=book)
        ran = [name for result in found.results for name in result.charged]
        assert sorted(charge.name for charge in book.spent) == sorted(ran)
        assert book.reserved == [], "the rest is released"
        assert found.spent == price_at(book.spent)
        plan = schedule(
            one.ptk, ProfileTerms.of("0.1", 1, n_max=1024), ["0.1", "0.3", "1"], 150_000
        )
        worst = plan.worst_case
        assert set(found.spent) < set(worst)
        for piece, cost in found.spent.items():
            assert cost.epsilon(0) <= worst[piece].epsilon(0) + 1e-12
            if "/train-" in piece.name:
                level = float(piece.name.split("/")[0].removeprefix("level "))
                tested = piece.name.endswith("-1") and "-more-" not in piece.name
                assert cost.epsilon(0) == pytest.approx(level + (0.125 if tested else 0))

    def test_states_that_are_read_share_a_charge_and_no_record(self) -> None:
        book = bench(problem("mean", 0.05), 400_000, runner=planted_run)
        found = profiled(bench=book, records=400_000)
        names = [charge.name for charge in book.spent]
        assert len(names) == len(set(names)), "nothing is spent twice"
        for result in found.results:
            read = [name for name in result.charged if "/read-" in name]
            assert (
                len(read)
                == len(result.readings)
                == sum("/reading-" in name for name in result.charged)
                > 0
            )
            states = [int(name.rsplit("-", 1)[1]) for name in read]
            assert states == [one.states for one in result.readings]
            looked = [look.states for look in result.looks]
            assert result.trainings == sum(looked) + sum(states)
        for name in names:
            tasks = [task for task, _ in book.asked.values() if task.charge.name == name]
            check_disjoint(task.piece for task in tasks)
            # What was left of sizes that were not tried confirms, in trainings of another size.
            if "-more-" not in name:
                assert len(tasks) == (int(name.rsplit("-", 1)[1]) if "/read-" in name else 1)
        level = {
            piece: float(piece.name.split("/")[0].removeprefix("level ")) for piece in found.spent
        }
        for piece, cost in found.spent.items():
            if "/read-" in piece.name:
                assert cost.epsilon(0) == pytest.approx(level[piece])
            elif piece.name.endswith("/validation"):
                assert cost.epsilon(0) <= 0.75 + 1e-9, "looks, readings and the count"

    def test_tasks_that_share_a_charge_and_a_record_are_refused(self) -> None:
        plan = schedule(Mean(), ProfileTerms.of("0.1", 1, n_max=64), ["1"], 200_000)
        read, other = plan.levels[0].reads[-1], plan.levels[0].reads[0]
        task = TrainTask(
            read.train, Mean(), plan.levels[0].level, plan.terms.delta, 1, None, 0, Planted()
        )
        parts = [replace(task, part=part) for part in parts_of(read.train.piece, read.states)]
        assert charges_of(parts) == [read.train]
        for wrong in ([*parts, parts[0]], [*parts, task], [replace(task, part=other.train.piece)]):
            with pytest.raises(InvalidInput, match="piece"):
                charges_of(wrong)

    def test_a_refused_budget_charges_nothing(self) -> None:
        book = bench(problem("mean", 0.05), 150_000, kind=RefusingBench)
        found = profiled(bench=book)
        assert {result.status for result in found.results} == {"REFUSED"}
        assert found.results[0].reason == "BUDGET_EXCEEDED"
        assert (book.spent, found.spent) == ([], {})

    def test_an_unreserved_piece_does_not_open(self) -> None:
        one = problem("mean", 0.05)
        plan = schedule(one.ptk, ProfileTerms.of("0.1", 1, n_max=64), ["1"], 50_000)
        with pytest.raises(Refused):
            measuring.measure(one.ptk, plan, [plan.levels[0].level], bench(one, 1000), Planted())

    def test_a_crash_of_the_machinery_gives_the_rest_back(self) -> None:
        class Broken(WatchingBench):
            def run(self, tasks: Sequence[Task]) -> list[Answer]:
                super().run(tasks)
                raise KeyboardInterrupt

        book = bench(problem("mean", 0.05), 150_000, kind=Broken, runner=planted_run)
        with pytest.raises(KeyboardInterrupt):
            profiled(bench=book)
        assert book.reserved == []
        assert len(book.spent) == 2, "what was opened stays: the states of the first size"


@dataclass(frozen=True, kw_only=True)
class Wrong(Mean):
    """Goes wrong in the way that is named."""

    kind: ClassVar[str] = "wrong"
    how: str

    def train_dp(self, batches: Batches, *, epsilon: Number, **options: Any) -> Arrays:
        if self.how == "crash at one level" and float(epsilon) == 0.3:
            raise ValueError(SECRET)
        return super().train_dp(batches, epsilon=epsilon, **options)

    def loss(self, arrays: Arrays, batches: Batches) -> np.ndarray[Any, np.dtype[np.float64]]:
        found = super().loss(arrays, batches)
        wrong = {"nan": found * np.nan, "above": found + 2, "below": found - 2, "short": found[:-1]}
        return wrong.get(self.how, found)

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch | None:
        if self.how != "bad example":
            return None
        raise ValueError(SECRET)


class TestReadings:
    def test_they_go_on_until_the_risk_has_crossed_what_passes_and_the_estimate_lies_there(
        self,
    ) -> None:
        seen = set()
        for kind, seed in product(("mean", "histogram", "threshold"), range(3)):
            for result in profiled(kind, 0.05, records=400_000, seed=seed).results:
                sizes = [one.samples for one in result.readings]
                if not sizes:
                    continue
                assert sizes[0] == result.size
                ways = {other / one for one, other in pairwise(sizes)}
                assert ways <= {0.5} or ways <= {2.0}
                # The last two, or the only one where there is no larger size to read.
                assert min(sizes[-2:]) <= (result.estimate or 0) <= max(sizes[-2:])
                risks = [one.risk for one in result.readings]
                assert ways != {0.5} or risks[-1] > risks[0]
                seen |= ways
        assert 0.5 in seen, "sizes are read until the risk has crossed"

    def test_without_them_the_looks_tell(self) -> None:
        terms = ProfileTerms.of("0.1", 1, n_max=1024, states=0)
        for result in profiled("histogram", records=400_000, terms=terms).results:
            assert result.readings == ()
            missed = [look.samples for look in result.looks if look.samples < (result.size or 0)]
            assert max(missed, default=1) <= (result.estimate or 0) <= (result.size or 0)

    def test_one_that_fails_leaves_the_witness(self) -> None:
        class Unlucky(WatchingBench):
            def run(self, tasks: Sequence[Task]) -> list[Answer]:
                found = super().run(tasks)
                return [
                    replace(one, arrays=None, value=None, failure="died")
                    if "/read-" in task.charge.name
                    else one
                    for task, one in zip(tasks, found, strict=True)
                ]

        book = bench(problem("mean", 0.05), 400_000, kind=Unlucky, runner=planted_run)
        for result in profiled(bench=book, records=400_000).results:
            assert (result.status, result.readings) == ("REACHED", ())
            assert result.state is not None
            assert result.reason == "a reading failed: died"
            assert result.estimate

    def test_they_scatter_less_than_looks(self) -> None:
        spreads = []
        for states in (0, STATES):
            terms = ProfileTerms.of("0.1", 1, n_max=512, states=states)
            found = [
                profiled("least squares", levels=["0.3"], records=100_000, seed=seed, terms=terms)
                for seed in range(16)
            ]
            spreads.append(np.std([np.log(one.results[0].estimate or 1) for one in found]))
        assert spreads[1] < spreads[0] * 0.75


class TestBadInput:
    @pytest.mark.parametrize("how", ["nan", "above", "below"])
    def test_losses_outside_0_to_1_end_a_level_with_a_reason(self, how: str) -> None:
        found = profiled(ptk=Wrong(how=how))
        assert {result.status for result in found.results} == {"FAILED"}
        assert all(result.reason.startswith("LOSS_INVALID") for result in found.results)
        assert all(result.trainings <= MOST_STATES for result in found.results), (
            "no more than the first size"
        )

    def test_a_few_invalid_losses_are_not_told_apart_but_count_as_the_worst(self) -> None:
        """Whether one record has an invalid loss is data: only through noise may it show."""

        @dataclass(frozen=True, kw_only=True)
        class OneInvalid(Mean):
            def loss(
                self, arrays: Arrays, batches: Batches
            ) -> np.ndarray[Any, np.dtype[np.float64]]:
                found = super().loss(arrays, batches)
                found[:1] = np.nan
                return found

        assert {result.status for result in profiled(ptk=OneInvalid()).results} == {"REACHED"}

    def test_the_wrong_number_of_losses(self) -> None:
        assert all(
            "LOSS_INVALID" in result.reason for result in profiled(ptk=Wrong(how="short")).results
        )

    def test_a_crash_at_one_level_leaves_the_others(self) -> None:
        found = profiled(ptk=Wrong(how="crash at one level"))
        assert [result.status for result in found.results] == ["REACHED", "FAILED", "REACHED"]
        failed = found.results[1]
        assert failed.reason.startswith("ValueError at test_measured.py:")
        assert SECRET not in str(found.as_json())
        assert failed.charged, "what was opened stays charged"
        assert found.profile.samples[1] is not None, "the curve answers for it"

    def test_a_ptk_that_fails_on_invented_records_is_told_before_any_charge(self) -> None:
        book = bench(problem("mean", 0.05), 150_000)
        found = profiled(ptk=Wrong(how="bad example"), bench=book)
        assert {result.status for result in found.results} == {"FAILED"}
        assert (book.reserved, book.spent) == ([], [])

    def test_too_little_data_says_how_much_is_needed(self) -> None:
        book = bench(problem("mean", 0.05), 300)
        found = profiled(records=300, bench=book)
        assert {result.status for result in found.results} == {"TOO_LITTLE_DATA"}
        assert "records are needed" in found.results[0].reason
        assert book.spent == []

    def test_fewer_records_than_planned_never_make_a_witness(self) -> None:
        """The slice turns out to be almost empty, which nobody is told: the tests must hold for any
        number of records.
        """
        book = bench(problem("mean", 0.05), 40, runner=planted_run)
        assert "REACHED" not in {result.status for result in profiled(bench=book).results}


class TestWorkers:
    @pytest.mark.parametrize("executor", ["none", "one", "two", "processes"])
    def test_the_same_results_for_any_number_of_workers(self, executor: str) -> None:
        makers: dict[str, Any] = {
            "none": lambda: None,
            "one": lambda: ThreadPoolExecutor(1),
            "two": lambda: ThreadPoolExecutor(2),
            "processes": lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
        }
        pool: Executor | None = makers[executor]()
        one = problem("histogram", 0.05)
        try:
            book = bench(one, 100_000, executor=pool, runner=planted_run)
            found = profiled("histogram", records=100_000, bench=book)
        finally:
            if pool is not None:
                pool.shutdown()
        plain = profiled("histogram", 0.05, records=100_000)
        assert found.as_json() == plain.as_json()
        for one_result, other in zip(found.results, plain.results, strict=True):
            assert one_result.state is not None
            assert other.state is not None
            np.testing.assert_array_equal(one_result.state["f"], other.state["f"])

    def test_another_seed_gives_another_profile(self) -> None:
        looks = [[result.looks for result in profiled(seed=seed).results] for seed in (0, 1)]
        assert looks[0] != looks[1]

    def test_progress_is_told_and_cancelling_stops_before_the_next_round(self) -> None:
        told: list[str] = []
        found = profiled("threshold", progress=told.append, cancelled=lambda: len(told) >= 2)
        assert told[0].startswith("epsilon 1, ")
        assert "CANCELLED" in {result.status for result in found.results}
        assert sum(result.trainings for result in found.results) <= 2 * 3 * MOST_STATES

    def test_known_levels_are_not_measured_again(self) -> None:
        first = profiled()
        heard: list[LevelResult] = []
        book = bench(problem("mean", 0.05), 150_000, runner=planted_run)
        known = {result.level: result for result in first.results[1:]}
        again = profiled(bench=book, known=known, finished=heard.append)
        assert [result.level for result in heard] == [first.results[0].level]
        assert {charge.name.split("/")[0] for charge in book.spent} == {"level 0.1"}
        assert again.profile == first.profile


def test_results_survive_json() -> None:
    for result in profiled().results:
        assert LevelResult.from_json(result.as_json()) == replace(result, state=None)


def test_tasks_say_nothing_of_states_when_printed() -> None:
    one = problem("mean", 0.05)
    plan = schedule(one.ptk, ProfileTerms.of("0.1", 1, n_max=64), ["1"], 50_000)
    charge = plan.levels[0].trains[0].charges[0]
    task = TrainTask(charge, one.ptk, plan.levels[0].level, plan.terms.delta, 1, None, 0, Planted())
    assert "array" not in repr(task) + repr(Answer(arrays={"f": np.zeros(3)}))
