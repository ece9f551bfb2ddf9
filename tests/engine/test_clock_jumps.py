"""A clock that jumps closes no window, and the doctor measures by the clock on the wall how long
raw data is held.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptklib.errors import Refused
from ptkstore import Store
from ptkstore.api.views import Finding
from ptkstore.engine.clock_guard import TOLERANCE_MS, ClockGuard
from ptkstore.engine.window.running import due_windows
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.progress.moves import Moves
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec
from tests.rpc.small import serving

DAY = DAY_MS / 1000
HOUR = 3600.0


class Clock:
    """A clock on the wall, and the time since the machine was started."""

    def __init__(self, wall: float = FIRST_MS / 1000, steady: float = 1000.0) -> None:
        self.wall, self.since_start = wall, steady

    def __call__(self) -> float:
        return self.wall

    def steady(self) -> float:
        return self.since_start

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.since_start += seconds

    def guard(self, path: Path, boot: str = "one", other: float | None = None) -> ClockGuard:
        other_ms = None if other is None else int(other * 1000)
        return ClockGuard(path, self, steady=self.steady, boot=boot, other_ms=lambda: other_ms)


def opened(path: Path, clock: Clock, **changes: object) -> Store:
    store = Store(path, workers=0, clock=clock)
    store.parts.clock_guard = clock.guard(path)
    if not store.streams():
        store.create_stream(spec(**changes))
    return store


def refused(store: Store) -> str:
    with pytest.raises(Refused) as error:
        store.run("rides")
    return error.value.reason


def by_the_clock(store: Store) -> list[Finding]:
    return [one for one in store.doctor() if one.what == "exposure of rides by the clock"]


def test_a_jump_of_ten_days_closes_no_window(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as store:
        store.register(
            "busy", stream="rides", kind="statistics", config=config("count"), target=0.1
        )
        store.push("rides", day(0), seq=0)
        clock.pass_(DAY + HOUR)
        watermark = store.parts.watermark_ms("rides")
        clock.wall += 10 * DAY
        assert refused(store) == "CLOCK_IMPLAUSIBLE"
        assert store.parts.watermark_ms("rides") == watermark
        assert store.cycles("rides") == []
        # Put right, it is believed again at once, and one window is complete.
        clock.wall -= 10 * DAY
        assert [(one.window, one.status) for one in store.run("rides")] == [
            (FIRST_MS // DAY_MS, "DONE")
        ]
        assert {one.level for one in store.doctor()} == {"OK"}


def test_a_store_with_a_clock_of_its_own_is_held_against_the_time_that_passes(
    tmp_path: Path,
) -> None:
    """Without anybody saying what the steady time is: the machine's."""
    now = [FIRST_MS / 1000 + DAY + HOUR]
    with Store(tmp_path, workers=0, clock=lambda: now[0]) as store:
        store.create_stream(spec())
        now[0] += 10 * DAY
        assert refused(store) == "CLOCK_IMPLAUSIBLE"
        now[0] -= 10 * DAY
        assert len(store.run("rides")) == 1


def test_time_that_passes_is_no_jump(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as store:
        for number in range(4):
            clock.pass_(DAY)
            # A clock that is slewed or put right by a little.
            clock.wall += 60
            assert len(store.run("rides")) == 1, number


def test_an_operator_confirms_a_clock_that_is_right_after_all(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as store:
        clock.pass_(DAY)
        # A virtual machine that stood still.
        clock.wall += 10 * DAY
        assert refused(store) == "CLOCK_IMPLAUSIBLE"
        # What is declared for the past says nothing of the clock.
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert refused(store) == "CLOCK_IMPLAUSIBLE"
        assert len(store.run("rides", until_ms=int(clock() * 1000))) == 10
        clock.pass_(DAY)
        assert len(store.run("rides")) == 1


def test_watermarks_that_are_declared_need_no_clock(tmp_path: Path) -> None:
    """Data of years ago, and of a simulation ahead of its time."""
    for begin in (FIRST_MS / 1000 + 300 * DAY, FIRST_MS / 1000 - 300 * DAY):
        clock = Clock(wall=begin)
        with opened(tmp_path / str(int(begin)), clock) as store:
            for number in range(3):
                assert len(store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)) == 1


def test_a_machine_that_was_off_for_ten_days_catches_up_and_a_restarted_process_does_not(
    tmp_path: Path,
) -> None:
    clock = Clock(steady=5 * HOUR)
    with opened(tmp_path, clock) as store:
        clock.pass_(HOUR)
        clock.wall += 10 * DAY
        assert refused(store) == "CLOCK_IMPLAUSIBLE"
        # A restart of the process does not make a jump true: the machine has not been off.
        store.parts.clock_guard = clock.guard(tmp_path)
        assert refused(store) == "CLOCK_IMPLAUSIBLE"
        # After a start of the machine there is nothing else to go by.
        clock.since_start = 30.0
        store.parts.clock_guard = clock.guard(tmp_path, boot="two")
        assert len(store.run("rides")) == 10


def test_the_clock_of_the_database_decides_where_there_is_one(tmp_path: Path) -> None:
    clock = Clock()
    for ahead, taken in (
        (0, True),
        (TOLERANCE_MS / 1000 - 1, True),
        (TOLERANCE_MS / 1000 + 1, False),
        (-9 * DAY, True),
    ):
        path = tmp_path / str(ahead)
        path.mkdir()
        guard = clock.guard(path, other=clock() - ahead)
        # Ten days that the machine knows nothing of change nothing: two clocks say the same.
        clock.since_start -= 10
        if taken:
            assert guard.now_ms() == int(clock() * 1000)
        else:
            with pytest.raises(Refused, match="CLOCK_IMPLAUSIBLE"):
                guard.now_ms()


def test_a_guard_that_finds_a_damaged_file_compares_anew(tmp_path: Path) -> None:
    clock = Clock()
    clock.guard(tmp_path)
    (tmp_path / "clock.json").write_text("{")
    assert clock.guard(tmp_path).now_ms() == FIRST_MS


def test_a_server_refuses_to_close_windows_by_a_clock_that_jumped(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, store), Store(server.address) as remote:
        remote.create_stream(spec())
        jumped = Clock(wall=time.time())
        store.parts.clock_guard = jumped.guard(tmp_path)
        jumped.wall += 10 * DAY
        with pytest.raises(Refused, match="CLOCK_IMPLAUSIBLE"):
            remote.run("rides")
        assert remote.operations("rides").operations == ()
        assert store.parts.watermark_ms("rides") == FIRST_MS


def test_the_doctor_names_a_watermark_that_is_ahead_of_the_clock(tmp_path: Path) -> None:
    clock = Clock(wall=FIRST_MS / 1000 + DAY)
    with opened(tmp_path, clock) as store:
        assert [one.level for one in by_the_clock(store)] == ["OK"]
        store.run("rides", until_ms=FIRST_MS + 11 * DAY_MS)
        (found,) = by_the_clock(store)
        assert found.level == "ERROR"
        assert "10 days ahead of the clock" in found.detail
        clock.pass_(10 * DAY)
        (found,) = by_the_clock(store)
        assert (found.level, "ahead" in found.detail) == ("WARNING", False)


def test_the_doctor_names_blocks_that_were_sealed_long_ago_and_a_watermark_that_stands_still(
    tmp_path: Path,
) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as store:
        store.push("rides", day(0), seq=0)
        clock.pass_(DAY)
        # Sealed, and never run.
        due_windows(store.parts, "rides", FIRST_MS + DAY_MS)
        clock.pass_(DAY)
        assert [one.level for one in by_the_clock(store)] == ["OK"]
        clock.pass_(1.5 * DAY)
        sealed, still = by_the_clock(store)
        assert (sealed.level, still.level) == ("ERROR", "WARNING")
        assert "2026-01-01T00:00Z" in sealed.detail
        assert "2 blocks" in sealed.detail
        assert "has not moved" in still.detail
        store.run("rides", until_ms=int(clock() * 1000))
        assert [one.level for one in by_the_clock(store)] == ["OK"]
        clock.pass_(DAY)
        store.run("rides")
    # Only what is held is remembered, in whole minutes.
    moves = Moves.read(Vault(tmp_path, "rides").files)
    assert len(moves._moves) == 2
    assert moves.last_ms is not None
    assert moves.last_ms % 60_000 == 0
