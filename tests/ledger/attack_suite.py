"""Attacks that once worked, or nearly, wherever the journal is: each stays closed. Subclass
`AttackSuite`, and give it the fixtures ``address`` of a place with no ledger yet and ``book`` of
one made by `places.open_book` with the blocks a and b.
"""

from __future__ import annotations

import base64
import multiprocessing
import os
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from ptklib.errors import BudgetExceeded, GrantRefused, InvalidInput, JournalUnavailable
from ptklib.ledger.grants import Grant
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore.ledger import Ledger
from tests.ledger.places import open_ledger

A = [Slice(("a",))]
TENTH = PureCost(epsilon="0.1")


def _job(ledger: Ledger) -> Any:
    """A charge whose owner went away right after handing it in."""
    jobs: list[Any] = []
    writer = ledger._writer
    real = writer._group.enqueue

    def keep(job: Any) -> Any:
        jobs.append(job)
        raise KeyboardInterrupt

    writer._group.enqueue = keep  # type: ignore[method-assign, assignment]
    try:
        with pytest.raises(KeyboardInterrupt):
            ledger.charge("s", A, TENTH)
    finally:
        writer._group.enqueue = real  # type: ignore[method-assign]
    writer._restore()
    jobs[0].run(writer._state)
    return jobs[0]


def _use_inherited(ledger: Ledger, answers: Any) -> None:
    try:
        ledger.left("s", ["a"])
    except JournalUnavailable as error:
        answers.put(error.reason)


class AttackSuite:
    """What no ledger may allow."""

    def test_commands_that_waited_unapplied_are_journalled_in_the_order_they_were_applied(
        self, book: str
    ) -> None:
        with open_ledger(book) as ledger:
            writer = ledger._writer
            # Another process wrote a moment ago: the first command waits unapplied, the second
            # comes when that is over.
            writer._shared_until = time.monotonic() + 60
            with writer._group.alone():
                first = threading.Thread(target=ledger.charge, args=("s", A, TENTH))
                first.start()
                while not writer._group._waiting:
                    time.sleep(0.001)
                writer._shared_until = 0.0
                second = threading.Thread(target=ledger.charge, args=("s", A, TENTH))
                second.start()
                while len(writer._group._waiting) < 2:
                    time.sleep(0.001)
            first.join(30)
            second.join(30)
            ledger.verify()
        with open_ledger(book) as ledger:
            assert ledger.left("s", ["a"]) * 10 == 8

    def test_an_interruption_between_applying_and_handing_in_leaves_nothing_behind(
        self, book: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(_item: object) -> Any:
            raise KeyboardInterrupt

        with open_ledger(book) as ledger:
            with monkeypatch.context() as patch:
                patch.setattr(ledger._writer._group, "enqueue", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    ledger.charge("s", A, TENTH)
            assert ledger.charge("s", A, TENTH) == 0
            assert ledger.left("s", ["a"]) * 10 == 9
            ledger.verify()

    def test_a_caller_that_is_interrupted_while_waiting_blocks_nobody(self, book: str) -> None:
        with open_ledger(book) as ledger:
            group = ledger._writer._group
            ticket = group.enqueue(_job(ledger))
            ticket.abandoned = True
            done = threading.Event()

            def client() -> None:
                ledger.charge("s", A, TENTH)
                done.set()

            threads = [threading.Thread(target=client, daemon=True) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert done.is_set()
            assert ledger.verify().entries == 6

    def test_a_key_used_again_after_its_block_retired_jams_nothing(self, book: str) -> None:
        with open_ledger(book) as ledger:
            first = ledger.reserve("s", A, TENTH, key="k")
            ledger.retire("s", ["a"], why="old")
            second = ledger.reserve("s", [Slice(("b",))], TENTH, key="k")
            ledger.release(first)
            assert ledger.find("s", "k") == second.charge
            ledger.spend(second)
            assert ledger.expire() == 0
            ledger.verify()

    def test_one_key_twice_in_a_batch_is_one_charge(self, book: str) -> None:
        with open_ledger(book) as ledger:
            request = ledger.request("s", A, TENTH, key="k")
            grants = ledger.reserve_all([request, ledger.request("s", A, TENTH), request])
            assert [grant.charge for grant in grants] == [0, 1, 0]
            assert ledger.left("s", ["a"]) * 10 == 8

    def test_a_refusal_does_not_rest_on_what_is_no_longer_so(self, book: str) -> None:
        with open_ledger(book) as ours, open_ledger(book) as theirs:
            theirs.create_stream("t", Policy())
            ours.add_blocks("t", ["x"])
            grant = ours.reserve("s", A, PureCost(epsilon=1))
            with pytest.raises(BudgetExceeded):
                theirs.charge("s", A, TENTH)
            theirs.release(grant)
            ours.charge("s", A, TENTH)

    def test_a_text_is_not_a_list_of_names(self, book: str) -> None:
        with open_ledger(book) as ledger:
            ledger.set_quota("s", "team", "0.1")
            for attempt in (
                lambda: ledger.reserve("s", A, PureCost(epsilon="0.9"), contexts="team"),
                lambda: ledger.charge("s", A, PureCost(epsilon="0.9"), contexts="team"),
                lambda: ledger.add_blocks("s", "xyz"),
                lambda: ledger.left("s", "ab"),
                lambda: Slice("ab"),  # type: ignore[arg-type]
            ):
                with pytest.raises(InvalidInput) as refusal:
                    attempt()
                assert refusal.value.reason == "NAME_INVALID"

    def test_a_lapsed_reservation_frees_its_key(self, address: str) -> None:
        now = [1000.0]
        with open_ledger(address, clock=lambda: now[0]) as ledger:
            ledger.create_stream("s", Policy(epsilon=1, delta=0))
            ledger.add_blocks("s", ["a"])
            dead = ledger.reserve("s", A, TENTH, key="k", ttl_seconds=10)
            now[0] += 11
            grant = ledger.reserve("s", A, TENTH, key="k", ttl_seconds=10)
            assert grant.charge != dead.charge
            ledger.spend(grant)
            assert ledger.left("s", ["a"]) * 10 == 9

    @pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1, 0, 1e30])
    def test_a_lifetime_must_make_sense(self, book: str, seconds: float) -> None:
        with open_ledger(book) as ledger, pytest.raises(InvalidInput):
            ledger.reserve("s", A, TENTH, ttl_seconds=seconds)

    def test_a_grant_with_impossible_names_or_numbers_is_forged(self, book: str) -> None:
        with open_ledger(book) as ledger:
            for body in (
                '[-1,"s",[[["a"],0,9]],5]',
                '[0,"\\ud800",[[["a"],0,9]],5]',
                '[0,"s",[[["\\ud800"],0,9]],5]',
            ):
                with pytest.raises(GrantRefused) as refusal:
                    Grant.from_token(base64.urlsafe_b64encode(bytes(32) + body.encode()).decode())
                assert refusal.value.reason == "GRANT_FORGED"
            with pytest.raises(GrantRefused):
                ledger.spend(Grant(-1, "s", tuple(A), 1, bytes(32)))

    def test_ranges_that_exist_can_be_used_however_many_there_are(
        self, book: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from ptklib.ledger import decide
        from ptklib.ledger.slices import TagRange

        monkeypatch.setattr(decide, "MAX_RANGES", 5)
        with open_ledger(book) as ledger:
            ranges = [TagRange.of_shares(f"{k}/5", f"{k + 1}/5") for k in range(5)]
            for k, tags in enumerate(ranges):
                ledger.charge("s", [Slice(("a",), tags)], PureCost(epsilon=f"0.0{k + 1}"))
            ledger.charge("s", [Slice(("a",), ranges[2])], TENTH)
            with pytest.raises(Exception, match="TOO_MANY_RANGES"):
                ledger.charge("s", [Slice(("a",), TagRange.of_shares("0.05", "0.1"))], TENTH)
            many = [
                Slice(("b",), TagRange.of_shares(f"{k}/20", f"{2 * k + 1}/40")) for k in range(10)
            ]
            with pytest.raises(Exception, match="TOO_MANY_RANGES"):
                ledger.charge("s", many, TENTH)

    def test_closing_while_others_submit_gives_clear_errors(self, book: str) -> None:
        ledger = open_ledger(book)
        strange: list[BaseException] = []

        def client() -> None:
            try:
                while True:
                    with suppress(BudgetExceeded):
                        ledger.charge("s", A, PureCost(epsilon="0.000001"))
            except JournalUnavailable:
                return
            except BaseException as error:
                strange.append(error)

        threads = [threading.Thread(target=client) for _ in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        ledger.close()
        for thread in threads:
            thread.join(30)
        assert not strange
        with open_ledger(book) as again:
            again.verify()

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_a_ledger_inherited_by_a_forked_process_says_so(self, book: str) -> None:
        with open_ledger(book) as ledger:
            context = multiprocessing.get_context("fork")
            answers = context.Queue()
            child = context.Process(target=_use_inherited, args=(ledger, answers))
            child.start()
            assert answers.get(timeout=30) == "LEDGER_FORKED"
            child.join(30)
            assert os.getpid() != child.pid

    def test_reading_is_not_starved_by_writers(self, book: str) -> None:
        with open_ledger(book) as ledger:
            stop = threading.Event()

            def client() -> None:
                while not stop.is_set():
                    ledger.charge("s", [Slice(("b",))], PureCost(epsilon="0.000000001"))

            threads = [threading.Thread(target=client) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                reads = [ledger.left("s", ["a"]) for _ in range(20)]
            finally:
                stop.set()
                for thread in threads:
                    thread.join(30)
            assert reads == [1] * 20
            ledger.verify()
