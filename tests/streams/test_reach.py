"""How far a batch may reach: judged from its event times and the watermark, whoever and whatever
was there before.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptklib.errors import InvalidInput, Refused
from ptkstore.api.stream_spec import MAX_BLOCKS, MAX_HORIZON_BLOCKS
from ptkstore.streams import Ack
from ptkstore.streams.ingest.reach import check_reach
from ptkstore.streams.spans import Spans
from tests.streams import rides
from tests.streams.rides import BASE_MS, HOUR_MS, Store, append_together, batch

FIRST = BASE_MS // HOUR_MS


def verdict(numbers: list[int], oldest_open: int, horizon: int) -> str | None:
    found = numbers[0] if len(set(numbers)) == 1 else np.array(numbers)
    try:
        check_reach(Spans(rides.spec()), found, oldest_open, horizon)
    except (InvalidInput, Refused) as refusal:
        return refusal.reason
    return None


@given(
    st.lists(st.integers(FIRST - 700, FIRST + 900), min_size=1, max_size=700),
    st.integers(FIRST, FIRST + 400),
    st.integers(1, 600),
)
def test_the_rule_is_what_it_says(numbers: list[int], oldest_open: int, horizon: int) -> None:
    blocks = {max(one, oldest_open - 1) for one in numbers}
    far = max(numbers) >= oldest_open + horizon
    assert verdict(numbers, oldest_open, horizon) == (
        "EVENT_TOO_FAR" if far else "BATCH_TOO_WIDE" if len(blocks) > MAX_BLOCKS else None
    )


@given(
    st.lists(st.integers(FIRST, FIRST + 900), min_size=1, max_size=300),
    st.integers(FIRST, FIRST + 400),
    st.integers(0, 400),
)
def test_what_was_in_reach_stays_in_reach(numbers: list[int], oldest_open: int, later: int) -> None:
    """So a batch that was accepted and is sent again is never refused instead of dropped."""
    if verdict(numbers, oldest_open, 500) is None:
        assert verdict(numbers, oldest_open + later, 500) is None


@pytest.mark.parametrize("seen", ["nobody", "everybody", "victim", "others"])
def test_neither_members_nor_open_blocks_have_a_say(
    tmp_path: Path, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptkstore.streams.ingest.reach.MAX_BLOCKS", 8)
    store = Store(tmp_path, rides.user_spec(horizon_blocks=12))
    crowd, victim = list(range(100, 108)), 7
    known = {"nobody": [], "everybody": [*crowd, victim], "victim": [victim], "others": crowd}[seen]
    with store.ledger, store.writer() as writer:
        writer.append(batch(known, hours=[k % 8 for k in range(len(known))]), producer="p", seq=1)
        writer.seal_due(BASE_MS + HOUR_MS)
        hours = [1 + k for k in range(8)]
        widest = batch([*crowd, victim], hours=[*hours, 1])
        assert writer.append(widest, producer="p", seq=2) == Ack(False, BASE_MS + HOUR_MS)
        with pytest.raises(InvalidInput) as error:
            writer.append(batch([*crowd, victim], hours=[*hours, 9]), producer="p", seq=3)
        assert error.value.reason == "BATCH_TOO_WIDE"
        with pytest.raises(Refused) as far:
            writer.append(batch([victim], hours=[13]), producer="p", seq=3)
        assert far.value.reason == "EVENT_TOO_FAR"


@pytest.mark.parametrize(
    ("hours", "reason"),
    [(list(range(MAX_BLOCKS + 1)), "BATCH_TOO_WIDE"), ([5000] * (MAX_BLOCKS + 1), "EVENT_TOO_FAR")],
)
def test_what_is_refused_joins_nobody(users: Store, hours: list[float], reason: str) -> None:
    whos = list(range(len(hours)))
    with users.writer() as writer:
        with pytest.raises((InvalidInput, Refused)) as error:
            writer.append(batch(whos, hours=hours), producer="p", seq=1)
        assert error.value.reason == reason
        writer.append(batch(whos, hours=0), producer="p", seq=1)
        (block, *_) = users.seal_all(writer, 1)
        assert users.whos([block]) == whos


def test_what_is_refused_joins_nobody_with_what_is_accepted_beside_it(users: Store) -> None:
    """Users join when the group is written: those of a batch in it that was refused must not be
    among them.
    """
    whos = list(range(MAX_BLOCKS + 1))
    with users.writer() as writer:
        wide = batch(whos, hours=[1.0 + k for k in whos])
        refusal, accepted = append_together(writer, {1: wide, 2: batch([1000])})
        assert isinstance(refusal, InvalidInput)
        assert refusal.reason == "BATCH_TOO_WIDE"
        assert accepted == Ack(False, BASE_MS)
        writer.append(batch(whos, hours=0), producer="p", seq=1)
        (block, *_) = users.seal_all(writer, 1)
        assert users.whos([block]) == [1000, *whos]


def test_a_stream_has_no_more_open_blocks_than_its_horizon(tmp_path: Path) -> None:
    store = Store(tmp_path, rides.spec(horizon_blocks=5))
    with store.ledger, store.writer() as writer:
        seq = 0
        for step in range(4):
            for hour in range(step, step + 8):
                seq += 1
                try:
                    writer.append(batch([hour], hours=hour), producer="p", seq=seq)
                    assert hour < step + 5
                except Refused:
                    assert hour >= step + 5
            assert len(list((tmp_path / "streams/rides").glob("*.block"))) == step + 5
            writer.seal_due(BASE_MS + (step + 1) * HOUR_MS)


def test_a_history_of_many_blocks_is_taken_in_steps(tmp_path: Path) -> None:
    """The watermark lags behind at first: whatever is refused is taken when it has moved, under the
    same number.
    """
    store = Store(tmp_path, rides.spec(horizon_blocks=24))
    with store.ledger, store.writer() as writer:
        for day in range(5):
            sent = batch([day], hours=24 * day + 12)
            if day:
                with pytest.raises(Refused):
                    writer.append(sent, producer="p", seq=day)
            writer.seal_due(BASE_MS + 24 * day * HOUR_MS)
            assert not writer.append(sent, producer="p", seq=day).duplicate
        assert store.whos(store.seal_all(writer, 5 * 24)[:]) == list(range(5))


def test_everything_that_may_be_open_can_be_sealed_at_once(store: Store) -> None:
    with store.writer() as writer:
        last = MAX_HORIZON_BLOCKS - 1
        writer.append(batch([1], hours=last), producer="p", seq=1)
        with pytest.raises(Refused):
            writer.append(batch([1], hours=last + 1), producer="p", seq=2)


def test_a_cohort_of_an_earlier_version_beyond_every_horizon_is_no_trouble(users: Store) -> None:
    """There, one record could put its user into a cohort ten years ahead."""
    with users.writer() as writer:
        cohorts = writer._cohorts
        assert cohorts is not None
        cohorts.begin()
        tags = np.arange(70_000, dtype=np.uint64)
        cohorts.stage(tags, FIRST + 10_000 + np.arange(70_000))
        cohorts.settle()
        assert writer.append(batch(range(10)), producer="p", seq=1) == Ack(False, BASE_MS)
