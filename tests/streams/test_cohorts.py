from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice, TagRange
from ptkstore.api.columns import Column
from ptkstore.streams.cohorts.member_log import CHUNK_BYTES
from tests.streams import rides
from tests.streams.rides import BASE_MS, HOUR_MS, Store, batch

A, B, C = (f"users-2026-01-01T0{k}:00Z" for k in range(3))


def test_a_user_joins_the_cohort_of_the_first_record_and_stays(users: Store) -> None:
    with users.writer() as writer:
        # User 1 is first seen in hour 0 and user 2 in hour 1; their later records follow them,
        # whatever their time.
        writer.append(batch([1, 2], hours=[0, 1]), producer="p", seq=1)
        writer.append(batch([2, 1], hours=[0, 1]), producer="p", seq=2)
        users.seal_all(writer, 2)
        assert users.whos([A]) == [1, 1]
        assert users.whos([B]) == [2, 2]


@pytest.mark.parametrize("late", ["oldest_open", "quarantine"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_user_never_reaches_a_second_block(tmp_path: Path, late: str, restart: bool) -> None:
    store = Store(tmp_path, rides.user_spec(late=late))
    with store.ledger:
        writer = store.writer()
        writer.append(batch([1, 2]), producer="p", seq=1)
        store.seal_all(writer, 1)
        if restart:
            writer.close()
            writer = store.writer()
        writer.append(batch([1, 2, 3], hours=1), producer="p", seq=2)
        writer.expire(A)
        writer.append(batch([1, 4], hours=1), producer="p", seq=3)
        store.seal_all(writer, 3)
        assert sorted(store.whos([B])) == [3, 4]
        assert store.whos([C]) == []
        writer.close()


@pytest.mark.parametrize(("late", "expected"), [("oldest_open", [1, 1]), ("quarantine", [1])])
def test_new_users_with_late_records_follow_the_rule(
    tmp_path: Path, late: str, expected: list[int]
) -> None:
    store = Store(tmp_path, rides.user_spec(late=late))
    with store.ledger, store.writer() as writer:
        writer.seal_due(BASE_MS + HOUR_MS)
        writer.append(batch([1], hours=0), producer="p", seq=1)
        # One who was quarantined joined nothing and may still join.
        writer.append(batch([1], hours=1), producer="p", seq=2)
        store.seal_all(writer, 2)
        assert store.whos([B]) == expected


def test_records_per_user_are_bounded_by_arrival(users: Store) -> None:
    whos = [1, 1, 2, 1, 3, 2, 2, 1]
    with users.writer() as writer:
        times = [k / 1000 for k in range(len(whos))]
        writer.append(batch(whos[:4], hours=times[:4]), producer="p", seq=1)
        writer.append(batch(whos[4:], hours=times[4:]), producer="p", seq=2)
        users.seal_all(writer, 1)
        opened = users.reader.open_slice(users.grant([A]), users.ledger)
        table = pa.Table.from_batches(opened)
    assert table.column("who").to_pylist() == [1, 1, 2, 3, 2]
    offsets = [
        round((one - BASE_MS) / 3600) for one in table.column("at").cast(pa.int64()).to_pylist()
    ]
    assert offsets == [0, 1, 2, 4, 5]


def test_the_bound_holds_in_every_slice_and_count(users: Store) -> None:
    with users.writer() as writer:
        for seq in range(5):
            writer.append(
                batch([who for who in range(300) for _ in range(3)]), producer="p", seq=seq
            )
        users.seal_all(writer, 1)
    parts = [users.whos([A], TagRange.of_shares(*one)) for one in ((0, "0.5"), ("0.5", 1))]
    for part in parts:
        assert len(part) == 2 * len(set(part))
    assert not set(parts[0]) & set(parts[1]), "all records of a user lie in the same slices"
    assert sorted(parts[0] + parts[1]) == sorted([*range(300), *range(300)])
    grant = users.ledger.reserve("rides", [Slice((A,))], users.spec.count_release().cost)
    assert abs(users.reader.count_blocks(grant, users.ledger)[A] - 600) < 200 * 25


def test_other_users_do_not_matter(tmp_path: Path) -> None:
    """Adding a user moves nobody else: neighbours differ in that user's records only."""
    found = []
    for name, extra in (("without", []), ("with", [(77, 0.0), (77, 2.0)])):
        store = Store(tmp_path / name, rides.user_spec())
        (tmp_path / name).mkdir(exist_ok=True)
        with store.ledger, store.writer() as writer:
            for seq in range(3):
                rows = [(who, float(who % 3)) for who in range(seq * 5, seq * 5 + 10)]
                rows = [*extra, *rows]
                writer.append(
                    batch([r[0] for r in rows], hours=[r[1] for r in rows]), producer="p", seq=seq
                )
                writer.seal_due(BASE_MS + (seq + 1) * HOUR_MS)
            found.append(
                {block: [who for who in store.whos([block]) if who != 77] for block in (A, B, C)}
            )
    assert found[0] == found[1]


def test_names_of_users_may_be_text_and_are_not_kept(tmp_path: Path) -> None:
    columns = (rides.COLUMNS[0], Column(name="who", type="string"))
    store = Store(
        tmp_path, rides.user_spec(columns=columns, policy=Policy(unit="user", epsilon=100, delta=0))
    )
    names = ["zoë-the-first", "adam-the-second", "zoë-the-first"]
    times = pa.array([BASE_MS] * 3, pa.timestamp("ms"))
    with store.ledger, store.writer() as writer:
        writer.append(
            pa.record_batch([times, pa.array(names)], names=["at", "who"]), producer="p", seq=1
        )
        store.seal_all(writer, 1)
        opened = store.reader.open_slice(store.grant([A]), store.ledger)
        assert pa.Table.from_batches(opened).column("who").to_pylist() == names
        writer.expire(A)
        kept = b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file())
    assert not any(one.encode() in kept for one in names)
    assert (tmp_path / "streams/rides/members-1.log").stat().st_size == CHUNK_BYTES
