"""The doctor looks at who has joined, and says nothing of how many."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.safekeeping.restoring import give_up_past
from ptkstore.streams import StreamDamaged
from tests.engine.small import DAY_MS, FIRST_MS, day, spec

WHAT = "members of rides"


def user_spec() -> StreamSpec:
    return spec(
        unit="user",
        user_column="driver",
        policy=Policy(unit="user", epsilon=1, delta="1e-6"),
        block_seconds=0,
    )


def finding(store: Store) -> tuple[str, str]:
    ((level, text),) = [(one.level, one.detail) for one in store.doctor() if one.what == WHAT]
    return level, text


def damage(path: Path) -> None:
    (log,) = (path / "streams/rides").glob("members-*.log")
    body = bytearray(log.read_bytes())
    body[100] ^= 1
    log.write_bytes(body)


def test_damage_is_found_while_the_writer_is_open_and_when_it_is_not(tmp_path: Path) -> None:
    told = set()
    with Store(tmp_path, workers=0) as store:
        store.create_stream(user_spec())
        told.add(finding(store))
        for number, rows in enumerate((1, 700)):
            store.push("rides", day(0, rows), producer="p", seq=number)
            told.add(finding(store))
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        told.add(finding(store))
        assert told == {("OK", "everybody who joined a cohort is known, the chain is intact")}
        damage(tmp_path)
        assert finding(store)[0] == "ERROR"
    with Store(tmp_path, workers=0) as store:
        level, text = finding(store)
        assert (level, text.split(":")[0]) == ("ERROR", "STREAM_DAMAGED")
        with pytest.raises(StreamDamaged):
            store.push("rides", day(1, 10))


def test_streams_of_events_have_no_members(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        store.create_stream(spec())
        assert not [one for one in store.doctor() if one.what == WHAT]


def test_a_restore_ends_a_stream_whose_members_are_damaged(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        store.create_stream(user_spec())
        store.push("rides", day(0, 100))
    damage(tmp_path)
    with Store(tmp_path, workers=0) as store:
        (given_up,) = give_up_past(store.parts, FIRST_MS + DAY_MS)
        assert given_up.goes_on_ms is None
    with Store(tmp_path, workers=0) as store:
        with pytest.raises(Exception, match="STREAM_ENDED"):
            store.push("rides", day(1, 10))
        assert finding(store)[0] == "OK"
