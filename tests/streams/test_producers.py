"""Numbers of senders: what came is dropped, what is new is stored, what was forgotten is refused,
after crashes too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput, Refused
from ptkstore.streams import Ack
from ptkstore.streams.progress import accepted
from ptkstore.streams.progress.accepted import Accepted, Verdict
from ptkstore.streams.progress.senders import UNRECORDED, Sender
from ptkstore.streams.ranges import MAX_RANGES, Ranges
from tests.streams.rides import BASE_MS, FIRST, HOUR_MS, SECOND, Store, batch

ME = Sender("", "p")


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(Refused) as error:
        call()
    return error.value.reason


def progress_file(store: Store) -> Path:
    return store.path / "streams/rides/progress.json"


def progress_of(store: Store) -> dict[str, Any]:
    """Without the digest at its end, which older releases do not write."""
    body: dict[str, Any] = json.loads(progress_file(store).read_bytes().partition(b"\n")[0])
    return body


class TestNumbers:
    def test_accepted_batches_are_a_set_in_little_room(self) -> None:
        found = Accepted()
        found.update((ME, seq) for seq in [*range(0, 1000, 2), *range(999, 0, -2), 2000])
        again = Accepted(json.loads(json.dumps(found.as_json())))
        came = [
            again.judge(ME, one) is Verdict.DUPLICATE for one in (0, 999, 1000, 1999, 2000, 2001)
        ]
        assert came == [True, True, False, False, True, False]
        assert again.judge(Sender("", "q"), 0) is Verdict.NEW
        assert len(json.dumps(found.as_json())) < 200

    @pytest.mark.parametrize("order", [list, lambda numbers: list(reversed(list(numbers)))])
    def test_what_was_forgotten_is_neither_new_nor_accepted(
        self, order: Callable[[range], list[int]]
    ) -> None:
        found = Accepted()
        found.update((ME, 3 * seq + 7) for seq in order(range(5 * MAX_RANGES)))
        again = Accepted(json.loads(json.dumps(found.as_json())))
        newest = 3 * (5 * MAX_RANGES - 1) + 7
        oldest = newest - 3 * (MAX_RANGES - 1)
        verdicts = {
            seq: again.judge(ME, seq)
            for seq in (6, 7, 8, oldest - 3, oldest - 2, oldest, newest, newest + 1)
        }
        assert verdicts == {
            6: Verdict.NEW,
            7: Verdict.FORGOTTEN,
            8: Verdict.FORGOTTEN,
            oldest - 3: Verdict.FORGOTTEN,
            oldest - 2: Verdict.NEW,
            oldest: Verdict.DUPLICATE,
            newest: Verdict.DUPLICATE,
            newest + 1: Verdict.NEW,
        }

    def test_ranges_agree_with_a_plain_set(self) -> None:
        """Numbers in a scrambled order; whatever is not forgotten is told exactly."""
        ranges, plain = Ranges(), set()
        for step in range(4000):
            number = step * 7919 % 5003
            ranges.add(number)
            ranges.trim(200)
            plain.add(number)
            probe = step * 31 % 5003
            if not ranges.forgot(probe):
                assert (probe in ranges) == (probe in plain)

    def test_a_number_in_a_closed_gap_is_refused(self, store: Store) -> None:
        with store.writer() as writer:
            for number in range(MAX_RANGES + 10):
                writer.append(batch([number]), producer="p", seq=10 + 2 * number)
            for seq in (10, 11, 21, 27):
                assert (
                    refused(partial(writer.append, batch([99_999]), producer="p", seq=seq))
                    == "SEQ_FORGOTTEN"
                )
            assert writer.append(batch([99_999]), producer="p", seq=30).duplicate
            assert writer.append(batch([77_777]), producer="p", seq=31) == Ack(False, BASE_MS)
            found = sorted(store.whos(store.seal_all(writer)))
        assert found == [*range(MAX_RANGES + 10), 77_777]

    def test_callers_do_not_share_numbers(self, store: Store) -> None:
        with store.writer() as writer:
            answers = [
                writer.append(batch([k]), producer="p", seq=1, caller=who).duplicate
                for k, who in enumerate("ab")
            ]
            answers.append(writer.append(batch([2]), producer="p", seq=1).duplicate)
        with store.writer() as writer:
            again = [
                writer.append(batch([9]), producer="p", seq=1, caller=who).duplicate
                for who in ("a", "b", "")
            ]
            assert (answers, again) == ([False] * 3, [True] * 3)
            store.seal_all(writer)
        with store.writer() as writer:
            assert all(
                writer.append(batch([9]), producer="p", seq=1, caller=who).duplicate
                for who in ("a", "b", "")
            )
            assert store.whos([FIRST]) == [0, 1, 2]

    def test_names_are_bounded_for_each_caller(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(accepted, "MAX_PRODUCERS", 3)
        with store.writer() as writer:
            for number in range(3):
                writer.append(batch([number]), producer=f"p{number}", seq=0, caller="a")
            assert (
                refused(lambda: writer.append(batch([9]), producer="p3", seq=0, caller="a"))
                == "PRODUCERS_TOO_MANY"
            )
            assert refused(lambda: writer.begin(producer="p3", caller="a")) == "PRODUCERS_TOO_MANY"
            assert not writer.append(batch([3]), producer="p2", seq=1, caller="a").duplicate
            assert not writer.append(batch([4]), producer="p3", seq=0, caller="b").duplicate

    def test_the_longest_names_fit_into_a_frame(self, store: Store) -> None:
        longest = "\U0001f695" * 200
        with store.writer() as writer:
            session = writer.begin(producer=longest, caller=longest)
            writer.append(batch([1]), producer=longest, seq=0, caller=longest, session=session)
        with store.writer() as writer:
            assert writer.append(
                batch([1]), producer=longest, seq=0, caller=longest, session=session
            ).duplicate
        assert store.after_restart() == [1]


class TestSessions:
    def test_a_session_counts_from_zero_and_is_known_after_a_restart(self, store: Store) -> None:
        with store.writer() as writer:
            first, second = writer.begin(), writer.begin()
            for session, who in ((first, 1), (second, 2)):
                assert not writer.append(
                    batch([who]), producer="", seq=0, session=session
                ).duplicate
        with store.writer() as writer:
            assert writer.append(batch([9]), producer="", seq=0, session=first).duplicate
            assert not writer.append(batch([3]), producer="", seq=1, session=second).duplicate
            assert writer.begin() not in (first, second)
        assert store.after_restart() == [1, 2, 3]

    def test_one_that_was_given_out_before_a_crash_is_not_given_out_again(
        self, store: Store
    ) -> None:
        """Nothing was sent in it yet: it may still be used, and nobody else gets it."""
        with store.writer() as writer:
            mine = writer.begin()
        with store.writer() as writer:
            others = [writer.begin() for _ in range(3)]
            for who, session in enumerate([mine, *others]):
                assert not writer.append(
                    batch([who]), producer="", seq=0, session=session
                ).duplicate
            numbers = [int(one.partition("-")[0]) for one in (mine, *others)]
        assert numbers == sorted(set(numbers))
        assert store.after_restart() == [0, 1, 2, 3]

    def test_a_session_belongs_to_its_caller(self, store: Store) -> None:
        with store.writer() as writer:
            session = writer.begin(caller="a")
            foreign = partial(
                writer.append, batch([1]), producer="", seq=0, session=session, caller="b"
            )
            assert refused(foreign) == "SESSION_UNKNOWN"
            writer.begin(caller="b")
            assert not foreign().duplicate, "numbers of its own: it can hurt nobody else"
            assert not writer.append(
                batch([2]), producer="", seq=0, session=session, caller="a"
            ).duplicate
        assert store.after_restart() == [1, 2]

    def test_a_session_does_not_tell_how_many_others_there_are(self, store: Store) -> None:
        with store.writer() as writer:
            numbers = []
            for others in (0, 1, 100):
                for _ in range(others):
                    writer.begin(caller="busy")
                numbers.append(int(writer.begin(caller="me").partition("-")[0]))
        assert numbers == [1, 2, 3]

    @pytest.mark.parametrize(
        "session", ["1", "0-0123456789abcdef", "1-0123", "1-0123456789abcdef\n", "x" * 1000]
    )
    def test_what_is_no_session_is_refused(self, store: Store, session: str) -> None:
        with store.writer() as writer, pytest.raises(InvalidInput, match="SESSION_INVALID"):
            writer.append(batch([1]), producer="", seq=0, session=session)

    def test_one_that_was_never_given_out_is_refused(self, store: Store) -> None:
        with store.writer() as writer:
            assert (
                refused(
                    lambda: writer.append(
                        batch([1]), producer="", seq=0, session="9-0123456789abcdef"
                    )
                )
                == "SESSION_UNKNOWN"
            )
            mine = writer.begin(producer="p", caller="a")
            names: dict[str, str]
            for names in ({"producer": "q", "caller": "a"}, {"producer": "p", "caller": "b"}):
                assert (
                    refused(partial(writer.append, batch([1]), seq=0, session=mine, **names))
                    == "SESSION_UNKNOWN"
                )

    def test_a_new_session_of_a_producer_ends_the_one_before(self, store: Store) -> None:
        with store.writer() as writer:
            writer.append(batch([0]), producer="p", seq=0)
            old = writer.begin(producer="p")
            writer.append(batch([1]), producer="p", seq=0, session=old)
            new = writer.begin(producer="p")
        # Written down when it began: a crash does not bring the old one back.
        with store.writer() as writer:
            for session in (old, ""):
                for seq in (0, 1):
                    late = partial(
                        writer.append, batch([9]), producer="p", seq=seq, session=session
                    )
                    assert refused(late) == "SESSION_ENDED"
            assert (
                refused(lambda: writer.require_session(producer="p", session=old))
                == "SESSION_ENDED"
            )
            writer.require_session(producer="p", session=new)
            assert not writer.append(batch([2]), producer="p", seq=0, session=new).duplicate
        assert store.after_restart() == [0, 1, 2]

    def test_only_the_newest_sessions_of_a_caller_are_remembered(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(accepted, "MAX_SESSIONS", 4)
        with store.writer() as writer:
            foreign = writer.begin(caller="b")
            writer.append(batch([100]), producer="", seq=0, session=foreign, caller="b")
            sessions = [writer.begin(caller="a") for _ in range(7)]
            for who, session in enumerate(sessions):
                writer.append(batch([who]), producer="", seq=0, session=session, caller="a")
        for sealed in (False, True):
            with store.writer() as writer:
                for session in sessions[:3]:
                    late = partial(
                        writer.append, batch([9]), producer="", seq=0, session=session, caller="a"
                    )
                    assert refused(late) == "SESSION_ENDED"
                for who, session in enumerate(sessions[3:], 3):
                    assert writer.append(
                        batch([who]), producer="", seq=0, session=session, caller="a"
                    ).duplicate
                assert writer.append(
                    batch([9]), producer="", seq=0, session=foreign, caller="b"
                ).duplicate
                if not sealed:
                    store.seal_all(writer)
        assert sorted(store.whos([FIRST])) == [0, 1, 2, 3, 4, 5, 6, 100]
        assert len(progress_of(store)["accepted"][""]["callers"]) == 2

    def test_sessions_without_number_fit_into_little_room(self) -> None:
        """Each push in a session of its own, as many as a busy stream has in hours."""
        found = Accepted()
        for _ in range(1 << 17):
            session, _ = found.issue("a", "")
            found.update([(Sender("a", "", session), 0)])
        assert len(json.dumps(found.as_json())) < 64 * accepted.MAX_SESSIONS


class TestCrashes:
    def test_whole_batches_of_forgotten_sessions_are_kept(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One part is in a sealed block, the other in an open one, and the session is over: it is
        no torn batch.
        """
        monkeypatch.setattr(accepted, "MAX_SESSIONS", 2)
        with store.writer() as writer:
            sessions = [writer.begin() for _ in range(5)]
            for who, session in enumerate(sessions):
                writer.append(
                    batch([who, 10 + who], hours=[0, 1]), producer="", seq=0, session=session
                )
            old = writer.begin(producer="p")
            writer.append(batch([5, 15], hours=[0, 1]), producer="p", seq=0, session=old)
            writer.begin(producer="p")
            writer.seal_due(BASE_MS + HOUR_MS)
        with store.writer() as writer:
            writer.seal_due(BASE_MS + 2 * HOUR_MS)
            assert sorted(store.whos([FIRST])) == [0, 1, 2, 3, 4, 5]
            assert sorted(store.whos([SECOND])) == [10, 11, 12, 13, 14, 15]

    def test_a_torn_batch_of_a_session_is_cut_off_and_can_be_sent_again(self, store: Store) -> None:
        with store.writer() as writer:
            session = writer.begin(caller="a")
            writer.append(
                batch([1, 2], hours=[0, 1]), producer="", seq=0, session=session, caller="a"
            )
            path = store.path / f"streams/rides/{SECOND}.block"
            length = path.stat().st_size
            # As it was before the append: a crash before it was answered.
            notes = store.path / "streams/rides/acknowledged"
            before = notes.read_bytes()
            writer.append(
                batch([3, 4], hours=[0, 1]), producer="", seq=1, session=session, caller="a"
            )
        notes.write_bytes(before)
        os.truncate(path, length + 10)
        with store.writer() as writer:
            assert writer.append(
                batch([9]), producer="", seq=0, session=session, caller="a"
            ).duplicate
            again = batch([3, 4], hours=[0, 1])
            assert not writer.append(
                again, producer="", seq=1, session=session, caller="a"
            ).duplicate
        assert store.after_restart() == [1, 2, 3, 4]


class TestUpgrade:
    """A store of a release that knew producers by name alone: in its progress, and in the frames of
    open blocks.
    """

    @pytest.fixture
    def old(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
        with monkeypatch.context() as patch:
            patch.setattr(Sender, "text", property(lambda sender: sender.producer))
            with store.writer() as writer:
                for seq in (0, 1):
                    writer.append(batch([seq]), producer="p", seq=seq)
                writer.seal_due(BASE_MS + HOUR_MS)
                writer.append(batch([2], hours=1), producer="p", seq=2)
        body = progress_of(store)
        body["accepted"] = {"p": [[0, 2]]}
        progress_file(store).write_text(json.dumps(body))
        return store

    def test_its_numbers_count_for_every_caller_that_uses_the_name(self, old: Store) -> None:
        for round_number in range(2):
            with old.writer() as writer:
                for caller in ("", "depot", "other"):
                    for seq in (0, 1, 2):
                        assert writer.append(
                            batch([9], hours=1), producer="p", seq=seq, caller=caller
                        ).duplicate
                    assert not writer.append(
                        batch([9], hours=1), producer="q", seq=round_number, caller=caller
                    ).duplicate
        with old.writer() as writer:
            for who, caller in enumerate(("", "depot", "other"), 10):
                assert not writer.append(
                    batch([who], hours=1), producer="p", seq=3, caller=caller
                ).duplicate
            old.seal_all(writer)
            assert sorted(old.whos([SECOND])) == [2, *[9] * 6, 10, 11, 12]
        with old.writer() as writer:
            assert writer.append(batch([9], hours=9), producer="p", seq=2, caller="depot").duplicate

    def test_a_session_does_not_care_for_them(self, old: Store) -> None:
        with old.writer() as writer:
            session = writer.begin(producer="p", caller="depot")
            assert not writer.append(
                batch([3], hours=1), producer="p", seq=0, caller="depot", session=session
            ).duplicate

    def test_gaps_that_it_closed_count_as_forgotten(self, store: Store) -> None:
        """It kept a thousand ranges, and took everything in the first one for accepted."""
        with store.writer() as writer:
            writer.seal_due(BASE_MS + HOUR_MS)
        body = progress_of(store)
        ranges = [
            [100, 5000],
            *([start, start + 1] for start in range(6000, 6000 + 2 * (MAX_RANGES - 1), 2)),
        ]
        body["accepted"] = {"p": ranges}
        progress_file(store).write_text(json.dumps(body))
        for _ in range(2):
            with store.writer() as writer:
                assert (
                    refused(lambda: writer.append(batch([9]), producer="p", seq=4999))
                    == "SEQ_FORGOTTEN"
                )
                assert writer.append(batch([9]), producer="p", seq=6000).duplicate
                writer.seal_due(writer.watermark_ms + HOUR_MS)
        with store.writer() as writer:
            assert not writer.append(batch([9], hours=5), producer="p", seq=99).duplicate
            assert not writer.append(batch([9], hours=5), producer="p", seq=5000).duplicate

    def test_the_text_of_a_sender_is_told_from_a_plain_name(self) -> None:
        for sender in (
            Sender("", "p"),
            Sender("a" * 32, "", "7-0123456789abcdef"),
            Sender("c", "p", "x"),
        ):
            assert Sender.of_text(sender.text) == sender
        assert Sender.of_text("p") == Sender(UNRECORDED, "p")
