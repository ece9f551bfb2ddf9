"""Who has joined: kept for ever, noticed when it is not, told to nobody."""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ptkstore.streams import StreamDamaged, StreamWriter
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.cohorts import member_log as member_log_module
from ptkstore.streams.cohorts.member_log import CHUNK_BYTES, MemberLog, Members
from ptkstore.streams.tags import Tags, user_tags
from tests.streams import rides
from tests.streams.rides import BASE_MS, HOUR_MS, Store, batch

A, B = (f"users-2026-01-01T0{k}:00Z" for k in range(2))
SYNCS = ("fsync", "fdatasync")


def log(store: Store) -> Path:
    (found,) = (store.path / "streams/rides").glob("members*")
    return found


def witness(store: Store) -> Path:
    return store.path / "keys/rides/members.witness"


def flipped(path: Path, place: int) -> None:
    body = bytearray(path.read_bytes())
    body[place] ^= 1 << place % 8
    path.write_bytes(body)


def refusal(store: Store) -> str:
    with pytest.raises(StreamDamaged) as error:
        store.writer()
    return error.value.reason


@pytest.fixture
def joined(users: Store) -> Store:
    """Users 0 to 29 joined one after the other; their cohort is sealed and destroyed."""
    with users.writer() as writer:
        for who in range(30):
            writer.append(batch([who]), producer="p", seq=who)
        writer.seal_due(BASE_MS + HOUR_MS)
        writer.expire(A)
    return users


class TestDamage:
    @pytest.mark.parametrize("share", [0.0, 0.1, 0.33, 0.5, 0.8, 0.99])
    def test_a_flipped_bit_stops_the_stream_and_nothing_is_cut(
        self, joined: Store, share: float
    ) -> None:
        path = log(joined)
        # 30 records of one user: 76 bytes each; the rest of the file is padding.
        length = min(path.stat().st_size, 30 * 76)
        flipped(path, int(share * length))
        before = path.read_bytes()
        assert refusal(joined) == "STREAM_DAMAGED"
        assert path.read_bytes() == before

    def test_every_bit_of_the_last_record_counts(self, joined: Store) -> None:
        path = log(joined)
        whole = path.read_bytes()
        for place in range(29 * 76, 30 * 76):
            flipped(path, place)
            assert refusal(joined) == "STREAM_DAMAGED", place
            path.write_bytes(whole)
        joined.writer().close()

    def test_padding_is_not_missed(self, joined: Store) -> None:
        flipped(log(joined), 30 * 76)
        with joined.writer() as writer:
            assert (writer._cohorts.find(tags_of(joined, range(30))) >= 0).all()  # type: ignore[union-attr]

    @pytest.mark.parametrize("length", [0, 1, 76, 29 * 76, 30 * 76 - 1])
    def test_a_file_that_was_cut_is_noticed(self, joined: Store, length: int) -> None:
        os.truncate(log(joined), length)
        assert refusal(joined) == "STREAM_DAMAGED"

    @pytest.mark.parametrize("which", [log, witness])
    def test_a_file_that_is_gone_is_noticed(
        self, joined: Store, which: Callable[[Store], Path]
    ) -> None:
        which(joined).unlink()
        assert refusal(joined) == "STREAM_DAMAGED"

    def test_both_files_gone_are_noticed(self, joined: Store) -> None:
        witness(joined).unlink()
        log(joined).unlink()
        assert refusal(joined) == "STREAM_DAMAGED"

    def test_an_older_copy_is_noticed(self, users: Store) -> None:
        with users.writer() as writer:
            writer.append(batch([1]), producer="p", seq=1)
        older = log(users).read_bytes()
        with users.writer() as writer:
            writer.append(batch([2]), producer="p", seq=2)
        log(users).write_bytes(older)
        assert refusal(users) == "STREAM_DAMAGED"

    def test_records_of_another_stream_or_place_are_none(self, joined: Store) -> None:
        path = log(joined)
        body = path.read_bytes()
        path.write_bytes(body[76:152] + body[:76] + body[152:])
        assert refusal(joined) == "STREAM_DAMAGED"

    def test_a_witness_that_was_torn_leaves_the_one_before(self, joined: Store) -> None:
        """A crash tears the slot that is being written; the record is whole and chained, so nobody
        is forgotten.
        """
        slots = witness(joined).read_bytes()
        for slot in (0, 1):
            witness(joined).write_bytes(
                slots[: slot * 4096] + os.urandom(40) + slots[slot * 4096 + 40 :]
            )
            with joined.writer() as writer:
                writer.append(batch(range(30), hours=1), producer="q", seq=slot)
                assert (
                    writer._cohorts.find(tags_of(joined, range(30))) == BASE_MS // HOUR_MS  # type: ignore[union-attr]
                ).all()
            slots = witness(joined).read_bytes()
        witness(joined).write_bytes(os.urandom(8192))
        assert refusal(joined) == "STREAM_DAMAGED"


def tags_of(store: Store, whos: range) -> Tags:
    return user_tags(pa.array(list(whos), pa.int64()), Vault(store.path, "rides").tag_key())


class TestCrashes:
    @pytest.mark.parametrize("torn", [0, 1, 40, 75, 76, 100, 4096])
    def test_what_lies_behind_the_witnessed_end_may_be_torn(self, users: Store, torn: int) -> None:
        """A record that was begun and not witnessed: a whole one is taken, any other counts for
        nothing.
        """
        with users.writer() as writer:
            writer.append(batch([1]), producer="p", seq=1)
        acknowledged = users.path / "streams/rides/acknowledged"
        before, noted = witness(users).read_bytes(), acknowledged.read_bytes()
        with users.writer() as writer:
            writer.append(batch([2], hours=1), producer="p", seq=2)
        witness(users).write_bytes(before)
        acknowledged.write_bytes(noted)
        body = log(users).read_bytes()
        log(users).write_bytes(body[: 76 + torn] + bytes(one ^ 0xFF for one in body[76 + torn :]))
        block = users.path / f"streams/rides/{B}.block"
        os.truncate(block, 0)
        with users.writer() as writer:
            found = writer._cohorts.find(tags_of(users, range(1, 3)))  # type: ignore[union-attr]
            assert found[0] == BASE_MS // HOUR_MS
            assert (found[1] >= 0) == (torn >= 76)
            assert not writer.append(batch([2], hours=1), producer="p", seq=2).duplicate
            assert writer._cohorts.find(tags_of(users, range(2, 3)))[0] == BASE_MS // HOUR_MS + 1  # type: ignore[union-attr]

    @pytest.mark.parametrize("late", ["oldest_open", "quarantine"])
    def test_a_batch_that_is_sent_again_after_a_crash_at_any_sync_gives_the_same(
        self, tmp_path: Path, late: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Users 1 and 2 are known, 3 to 6 are new; whatever became durable, sending again puts each
        where it belongs, and so does what they send later: frames without a join would let them join
        elsewhere.
        """
        first, second, third = (
            batch([1, 2], hours=[0, 1]),
            batch([1, 2, 3, 4, 5, 6, 3], hours=[2, 2, 0, 1, 2, 3, 1]),
            batch([3, 4, 5], hours=[3, 3, 3]),
        )
        outcomes = []
        for stop_after in range(40):
            store = Store(
                _folder(tmp_path, stop_after), rides.user_spec(late=late, records_per_user=5)
            )
            with store.ledger:
                writer = store.writer()
                writer.append(first, producer="p", seq=1)
                with monkeypatch.context() as patch:
                    died = _dying(patch, stop_after)
                    try:
                        writer.append(second, producer="p", seq=2)
                    except KeyboardInterrupt:
                        assert died()
                writer.close()
                with store.writer() as writer:
                    writer.append(second, producer="p", seq=2)
                    writer.append(third, producer="p", seq=3)
                    blocks = store.seal_all(writer)
                    outcomes.append([sorted(store.whos([one])) for one in blocks])
            if not died():
                break
        assert stop_after > 5, "there was something to interrupt"
        assert all(one == outcomes[-1] for one in outcomes)
        assert outcomes[-1] == [[1, 1, 3, 3, 3], [2, 2, 4, 4], [5, 5], [6], []]

    def test_after_a_failed_write_the_same_writer_knows_what_is_durable(
        self, users: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with users.writer() as writer:
            cohorts = writer._cohorts
            assert cohorts is not None
            tags = tags_of(users, range(4))
            for number, place in enumerate(("log", "witness")):
                cohorts.begin()
                cohorts.stage(tags[number : number + 1], np.array([number]))
                with monkeypatch.context() as patch:
                    _failing(patch, place)
                    with pytest.raises(OSError, match="No space left"):
                        cohorts.settle()
                cohorts.begin()
                cohorts.stage(tags[2 + number : 3 + number], np.array([7]))
                cohorts.settle()
        with users.writer() as writer:
            found = writer._cohorts.find(tags)  # type: ignore[union-attr]
            assert found[2:].tolist() == [7, 7]
            assert all(one in (k, np.iinfo(np.int64).min) for k, one in enumerate(found[:2]))


def _folder(path: Path, number: int) -> Path:
    made = path / f"run-{number}"
    made.mkdir()
    return made


def _dying(patch: pytest.MonkeyPatch, stop_after: int) -> Callable[[], bool]:
    """Let the process be interrupted at the sync with that number; the answer says whether it came
    to that.
    """
    calls = [0]
    real = {name: getattr(os, name) for name in SYNCS}

    def dying(name: str) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            calls[0] += 1
            if calls[0] > stop_after:
                raise KeyboardInterrupt
            real[name](descriptor)

        return sync

    for name in SYNCS:
        patch.setattr(os, name, dying(name))
    return lambda: calls[0] > stop_after


def _failing(patch: pytest.MonkeyPatch, place: str) -> None:
    real = os.fdatasync
    calls = [0]

    def full(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == ("log", "witness").index(place) + 1:
            raise OSError(28, "No space left on device")
        real(descriptor)

    patch.setattr(os, "fdatasync", full)


def v1_entry(tags: Tags, number: int) -> bytes:
    """An entry as versions before the log wrote it."""
    head, body = struct.pack(">Qq", len(tags), number), tags.astype("<u8").tobytes()
    return head + struct.pack(">I", zlib.crc32(body, zlib.crc32(head))) + body


class TestOldFormat:
    @pytest.fixture
    def old(self, users: Store) -> Store:
        """A store as an earlier version left it: 0 to 9 in a cohort that is gone, 10 to 12 in the
        next.
        """
        with users.writer() as writer:
            writer.seal_due(BASE_MS + HOUR_MS)
        log(users).unlink()
        witness(users).unlink()
        progress = users.path / "streams/rides/progress.json"
        # Nor was there a digest behind it.
        progress.write_text(
            progress.read_text().partition("\n")[0].replace('"members_kept":true,', "")
        )
        number = BASE_MS // HOUR_MS
        entries = [
            v1_entry(tags_of(users, range(10)), number),
            v1_entry(tags_of(users, range(10, 13)), number + 1),
        ]
        (users.path / "streams/rides/members").write_bytes(b"".join(entries))
        return users

    def test_members_of_earlier_versions_stay_members(self, old: Store) -> None:
        for seq in (1, 2):
            with old.writer() as writer:
                writer.append(batch([0, 9, 10, 12, 50], hours=2), producer="p", seq=seq)
        assert [one.name for one in (old.path / "streams/rides").glob("members*")] == [
            "members-1.log"
        ]
        with old.writer() as writer:
            old.seal_all(writer, 3)
            assert sorted(old.whos([B])) == [10, 10, 12, 12]
            assert old.whos(["users-2026-01-01T02:00Z"]) == [50, 50]

    @pytest.mark.parametrize("place", [3, 8, 17, 21, 99, 100, 106, 107, 110, 130])
    def test_damage_of_the_old_file_is_noticed(self, old: Store, place: int) -> None:
        path = old.path / "streams/rides/members"
        flipped(path, place)
        before = path.read_bytes()
        assert refusal(old) == "STREAM_DAMAGED"
        assert path.read_bytes() == before

    @pytest.mark.parametrize("cut", [1, 10, 24, 43])
    def test_an_entry_that_a_crash_cut_short_was_not_acknowledged(
        self, old: Store, cut: int
    ) -> None:
        path = old.path / "streams/rides/members"
        path.write_bytes(path.read_bytes()[:-cut])
        with old.writer() as writer:
            found = writer._cohorts.find(tags_of(old, range(13)))  # type: ignore[union-attr]
            assert (found >= 0).tolist() == [True] * 10 + [False] * 3

    @pytest.mark.parametrize("stop_after", range(7))
    def test_an_upgrade_that_was_interrupted_is_done_again(
        self, old: Store, stop_after: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            died = _dying(patch, stop_after)
            with pytest.raises(KeyboardInterrupt):
                old.writer()
            assert died()
        with old.writer() as writer:
            assert (writer._cohorts.find(tags_of(old, range(13))) >= 0).all()  # type: ignore[union-attr]


class TestNothingIsTold:
    def test_the_log_is_as_long_for_one_user_as_for_many(self, tmp_path: Path) -> None:
        sizes = []
        for number in (0, 1, 3000):
            store = Store(_folder(tmp_path, number), rides.user_spec())
            with store.ledger, store.writer() as writer:
                writer.append(batch(range(number)), producer="p", seq=1)
                writer.seal_due(BASE_MS + HOUR_MS)
                writer.expire(A)
                sizes.append(log(store).stat().st_size)
        assert sizes == [CHUNK_BYTES] * 3

    def test_neither_tags_nor_cohorts_are_in_clear(self, joined: Store) -> None:
        body = log(joined).read_bytes() + witness(joined).read_bytes()
        for tag in tags_of(joined, range(30)).tolist():
            assert struct.pack("<Q", tag) not in body
        for form in ("<q", ">q"):
            assert struct.pack(form, BASE_MS // HOUR_MS) not in body

    @pytest.mark.parametrize("late", ["oldest_open", "quarantine"])
    @pytest.mark.parametrize(
        ("whos", "hours"),
        [
            ([7], [2]),
            ([7], [0]),
            ([7], [6]),
            ([7, 100], [2, 2]),
            ([7, 100, 101], [2, 3, 9]),
            ([7, 7, 7, 102], [0, 2, 5, 3]),
            ([7, *range(200, 240)], [k % 9 for k in range(41)]),
        ],
    )
    def test_an_append_makes_and_syncs_as_many_files_whoever_is_in_it(
        self,
        tmp_path: Path,
        late: str,
        whos: list[int],
        hours: list[float],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """User 7 is nobody, of a cohort that is gone, of the oldest open one, or of one or another
        that is open.
        """
        heard: list[object] = []
        for joined_at in (None, 0, 2, 3, 4):
            store = Store(_folder(tmp_path, len(heard)), rides.user_spec(late=late))
            with store.ledger, store.writer() as writer:
                people = [60, 61, 62, 63, 64, 65]
                joins = [50 if joined_at is None else 7, *people]
                times = [joined_at or 0, 0, 0, 2, 3, 4, 4]
                writer.append(batch(joins, hours=times), producer="p", seq=1)
                writer.seal_due(BASE_MS + 2 * HOUR_MS)
                writer.append(batch(people, hours=2), producer="p", seq=2)
                with monkeypatch.context() as patch:
                    calls = counted(patch)
                    answer = writer.append(batch(whos, hours=hours), producer="p", seq=3)
                files = sorted(
                    one.name
                    for folder in ("streams", "keys")
                    for one in (store.path / folder).rglob("*")
                )
                heard.append((answer, calls, files))
        assert all(one == heard[0] for one in heard)


def counted(patch: pytest.MonkeyPatch) -> dict[str, int]:
    calls = dict.fromkeys(SYNCS, 0)
    real = {name: getattr(os, name) for name in SYNCS}

    def counting(name: str) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            calls[name] += 1
            real[name](descriptor)

        return sync

    for name in SYNCS:
        patch.setattr(os, name, counting(name))
    return calls


class TestLog:
    @pytest.fixture
    def made(self, tmp_path: Path) -> tuple[Vault, MemberLog]:
        vault = Vault(tmp_path, "s")
        vault.prepare()
        found = MemberLog(vault, bytes(32))
        found.rewrite(members(range(0)))
        return vault, found

    def test_a_log_of_many_short_records_is_made_anew(
        self, made: tuple[Vault, MemberLog], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(member_log_module, "_MANY", 1000)
        vault, found = made
        for who in range(2000):
            found.write(members(range(who, who + 1)))
        (long,) = vault.files.glob("members-*.log")
        size = long.stat().st_size
        again = MemberLog(vault, bytes(32))
        known = again.read()
        assert again.is_long_for(known)
        again.rewrite(known)
        (short,) = vault.files.glob("members-*.log")
        assert short != long
        assert short.stat().st_size < size / 2
        kept = MemberLog(vault, bytes(32)).read()
        assert sorted(kept.tags.tolist()) == list(range(2000))
        assert (kept.numbers == -5).all()

    def test_another_key_reads_nothing(self, made: tuple[Vault, MemberLog]) -> None:
        vault, found = made
        found.write(members(range(3)))
        with pytest.raises(StreamDamaged):
            MemberLog(vault, bytes(31) + b"1").read()

    def test_a_witness_of_another_stream_vouches_for_nothing(
        self, made: tuple[Vault, MemberLog], tmp_path: Path
    ) -> None:
        vault, found = made
        found.write(members(range(3)))
        other = Vault(tmp_path, "t")
        other.prepare()
        shutil.copy(vault.keys / "members.witness", other.keys)
        shutil.copy(vault.files / "members-1.log", other.files)
        with pytest.raises(StreamDamaged):
            MemberLog(other, bytes(32)).read()


def members(whos: range) -> Members:
    return Members(np.array(whos, dtype=np.uint64), np.full(len(whos), -5, dtype=np.int64))


def test_a_damaged_list_of_members_does_not_keep_a_restore_from_ending_the_stream(
    joined: Store,
) -> None:
    from ptkstore.streams.cohorts.cohorts import forget_members
    from ptkstore.streams.progress.progress import Progress

    flipped(log(joined), 5)
    assert refusal(joined) == "STREAM_DAMAGED"
    vault = Vault(joined.path, "rides")
    progress = Progress.read(vault.files, 0)
    progress.members_kept = False
    progress.write(vault.files)
    forget_members(vault, vault.tag_key())
    with StreamWriter.open(joined.path, joined.spec) as writer:
        writer.give_up(BASE_MS + 5 * HOUR_MS)
