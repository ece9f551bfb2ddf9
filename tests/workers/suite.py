"""What every kind of `Workers` promises (`ptkstore/workers/protocol.py`), whatever runs the jobs.

A test class of a kind inherits `WorkersSuite` and gives the fixture ``workers``; one whose jobs run
in processes of their own inherits `ApartSuite` as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import safetensors.numpy

from ptklib.validators.verdict import LossVerdict
from ptkstore.workers.protocol import PROFILE_LOST, PTK_FAILED, STOPPED, TrainOutcome, Workers
from tests.workers.jobs import KEYS, DyingNoise, Planted, job, profile_job, rides, validate_job

__all__ = ["ApartSuite", "WorkersSuite", "totals"]


def totals(outcome: TrainOutcome) -> list[int]:
    """How many records were counted in each zone."""
    assert outcome.arrays is not None, outcome
    return [int(count) for count in safetensors.numpy.load(outcome.arrays)["totals"][:, 0]]


class WorkersSuite:
    """The treaty, for any kind."""

    def test_every_job_gets_one_outcome(self, workers: Workers) -> None:
        opener = Planted((rides(0, 1, 1), rides(2, 2, 2)))
        jobs = [job(name, opener=opener) for name in "abcde"]
        outcomes = list(workers.train(jobs))
        assert sorted(outcome.name for outcome in outcomes) == list("abcde")
        assert {tuple(totals(outcome)) for outcome in outcomes} == {(1, 2, 3, 0, 0, 0, 0, 0, 0, 0)}
        profiled = list(workers.profile(profile_job(name, 0, 1, 1) for name in "abc"))
        assert sorted(outcome.name for outcome in profiled) == list("abc")
        assert {outcome.answer.failure for outcome in profiled} == {""}
        assert all(outcome.answer.arrays is not None for outcome in profiled)
        assert list(workers.train([])) == []
        assert list(workers.profile([])) == []

    def test_what_comes_of_a_job_does_not_depend_on_order_or_company(
        self, workers: Workers
    ) -> None:
        opener = Planted((rides(*range(10)), rides(*range(10))))
        jobs = [job(f"{start}-{stop}", start, stop, opener=opener) for start, stop in RANGES]
        alone = {one.name: totals(next(iter(workers.train([one])))) for one in jobs}
        for order in (jobs, jobs[::-1], jobs[1:] + jobs[:1]):
            assert {done.name: totals(done) for done in workers.train(order)} == alone
        # However little may be kept in memory.
        assert {done.name: totals(done) for done in workers.train(jobs, 0)} == alone

    def test_jobs_of_several_openers_see_their_own_records(self, workers: Workers) -> None:
        openers = [Planted((rides(*[zone] * (zone + 1)),)) for zone in range(3)]
        jobs = [job(f"{k}{zone}", opener=openers[zone]) for k in range(2) for zone in range(3)]
        for outcome in workers.train(jobs):
            zone = int(outcome.name[1])
            assert totals(outcome)[zone] == sum(totals(outcome)) == zone + 1

    def test_jobs_are_given_back_one_by_one(self, workers: Workers) -> None:
        made: list[str] = []

        def one_by_one() -> Iterator[object]:
            for name in "abcdefgh":
                made.append(name)
                yield profile_job(name, 0)

        outcomes = workers.profile(one_by_one())  # type: ignore[arg-type]
        next(outcomes)
        assert len(made) < 8, "no more are made than there are workers: they hold records"
        assert len(list(outcomes)) == 7
        # Those that nobody waits for do not come back later.
        trained = workers.train([job(name) for name in "abcd"])
        next(trained)
        trained.close()  # type: ignore[attr-defined]
        assert sorted(done.name for done in workers.train([job("e"), job("f")])) == ["e", "f"]

    def test_a_failure_is_an_outcome_and_never_a_text(self, workers: Workers) -> None:
        outcomes = {
            done.name: done
            for done in workers.train(
                [
                    job("good", opener=Planted((rides(1),))),
                    job("bad", opener=Planted((rides(1),), "raise")),
                    job("beyond", 0, 11, opener=Planted((rides(1),), open=(0, 10))),
                    job("never made", config={"secret": 1}),
                    job("good too", opener=Planted((rides(1, 1),))),
                ]
            )
        }
        assert (totals(outcomes["good"])[1], totals(outcomes["good too"])[1]) == (1, 2)
        assert (outcomes["bad"].arrays, outcomes["bad"].failure) == (None, PTK_FAILED)
        # Before the first record was read, type and place may be told.
        assert "OPENED_TOO_FAR" in outcomes["beyond"].failure
        assert "CONFIG_FIELDS" in outcomes["never made"].failure
        told = [text for one in outcomes.values() for text in (one.failure, one.logged)]
        assert "a text with records" not in " ".join(told)
        assert "ValueError at jobs.py" in outcomes["bad"].logged

    def test_a_failure_of_a_profile_is_an_outcome_too(self, workers: Workers) -> None:
        jobs = [profile_job("good", 1), profile_job("bad", 1, column="other")]
        failures = {done.name: done.answer.failure for done in workers.profile(jobs)}
        assert failures == {"good": "", "bad": PTK_FAILED}

    def test_states_are_tested_on_the_records_of_their_slices(self, workers: Workers) -> None:
        openers = {"none": Planted(()), "many": Planted((rides(*[1] * 100),))}
        jobs = [validate_job(name, opener=opener) for name, opener in openers.items()]
        outcomes = {done.name: done for done in workers.validate(jobs)}
        assert {done.failure for done in outcomes.values()} == {""}
        verdicts = {name: done.verdict for name, done in outcomes.items()}
        evidence = {
            name: verdict.evidence
            for name, verdict in verdicts.items()
            if isinstance(verdict, LossVerdict)
        }
        assert evidence.keys() == verdicts.keys()
        assert len(set(evidence.values())) == 2, "the records decide"
        assert list(workers.validate([])) == []

    def test_a_failure_of_a_test_is_an_outcome_too(self, workers: Workers) -> None:
        jobs = [
            validate_job("bad", opener=Planted((rides(1),), "raise")),
            validate_job("beyond", 0, 11, opener=Planted((rides(1),), open=(0, 10))),
            validate_job("never made", config={"secret": 1}),
            validate_job("good", opener=Planted((rides(1),))),
        ]
        outcomes = {done.name: done for done in workers.validate(jobs)}
        assert (outcomes["bad"].verdict, outcomes["bad"].failure) == (None, PTK_FAILED)
        assert "OPENED_TOO_FAR" in outcomes["beyond"].failure
        assert "CONFIG_FIELDS" in outcomes["never made"].failure
        assert outcomes["good"].verdict is not None
        told = [text for one in outcomes.values() for text in (one.failure, one.logged)]
        assert "a text with records" not in " ".join(told)

    def test_close_while_busy_fails_what_is_under_way(self, workers: Workers) -> None:
        outcomes = workers.train([job(f"{k}", opener=Planted((rides(1),))) for k in range(6)])
        first = next(outcomes)
        workers.close()
        rest = list(outcomes)
        assert sorted([first.name, *(done.name for done in rest)]) == [str(k) for k in range(6)]
        # What was done by then may have come through; nothing else was.
        assert {done.failure for done in rest} <= {"", PTK_FAILED}
        assert PTK_FAILED in {done.failure for done in rest}
        workers.close()

    def test_memory_is_told(self, workers: Workers) -> None:
        assert workers.memory_bytes > 0
        workers.warm()


RANGES = [(0, 3), (2, 7), (5, 10), (0, 10), (9, 10), (4, 4)]


class ApartSuite:
    """What is promised besides where jobs run in processes of their own."""

    def test_they_are_apart(self, workers: Workers) -> None:
        assert workers.apart

    @pytest.mark.parametrize("deed", ["die", "leave"])
    def test_a_worker_that_dies_fails_its_jobs_and_no_others_and_none_is_tried_again(
        self, workers: Workers, deed: str
    ) -> None:
        fatal, sound = Planted((rides(1),), deed), Planted((rides(1),))
        # Two workers: the first has a and c, the second b and d.
        jobs = [job(name, opener=fatal if name == "a" else sound) for name in "abcd"]
        outcomes = {done.name: done for done in workers.train(jobs)}
        assert [outcomes[name].failure for name in "abcd"] == [PTK_FAILED, "", PTK_FAILED, ""]
        assert outcomes["a"].logged == STOPPED
        # It is replaced.
        assert all(done.arrays is not None for done in workers.train(jobs[1:]))

    def test_a_worker_that_dies_in_a_test_fails_it_and_no_other(self, workers: Workers) -> None:
        deeds = {"a": Planted((rides(1),), "die"), "b": Planted((rides(1),))}
        jobs = [validate_job(name, opener=opener) for name, opener in deeds.items()]
        outcomes = {done.name: done for done in workers.validate(jobs)}
        assert (outcomes["a"].verdict, outcomes["a"].failure) == (None, PTK_FAILED)
        assert outcomes["a"].logged == STOPPED
        assert outcomes["b"].verdict is not None

    def test_a_worker_that_dies_in_a_profile_is_no_verdict(self, workers: Workers) -> None:
        jobs = [profile_job("a", 1), profile_job("b", 1, noise=DyingNoise()), profile_job("c", 1)]
        outcomes = {done.name: done for done in workers.profile(jobs)}
        failures = {name: done.answer.failure for name, done in outcomes.items()}
        assert failures == {"a": "", "b": PROFILE_LOST, "c": ""}
        assert outcomes["b"].answer.charged
        assert outcomes["b"].logged == STOPPED

    def test_memory_is_limited(self, workers: Workers) -> None:
        greedy = job("greedy", opener=Planted((rides(1),), "take too much"))
        outcomes = {
            done.name: done
            for done in workers.train([greedy, job("b", opener=Planted((rides(1),)))])
        }
        assert (outcomes["greedy"].failure, outcomes["greedy"].logged) == (PTK_FAILED, STOPPED)
        assert totals(outcomes["b"])[1] == 1

    def test_a_worker_gets_no_key_beyond_the_grant(self, workers: Workers) -> None:
        assert len(KEYS) == 2
        (counted,) = workers.train([job("a", opener=Planted((), "count keys"))])
        assert totals(counted)[0] == 1
